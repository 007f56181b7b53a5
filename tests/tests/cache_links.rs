//! Links with one cache: killed, several at once, on a full disk, with every file of the cache damaged. Afterwards the next
//! link is right and the cache verifies clean.
//!
//! What is right is what the program prints, and objects equal to those of a link without a cache.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use data_encoding::HEXLOWER;
use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_executor::result::{Key, NewOutput, NewResult, OutputFile};
use distlto_record::report::Measured;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::Toolchain;
use distlto_tests::{distlto, small_disk};
use serde_json::Value;

const MODULES: u32 = 6;
/// Where a cache keeps the digests of compilers.
const COMPILERS: &str = "compilers-v1";

/// A program that is a chain of calls over all modules, in a directory of its own.
struct Program {
    directory: PathBuf,
    clang: PathBuf,
    cache: PathBuf,
    /// What it prints.
    expected: u32,
    /// Whether a compiler makes the objects, whose digest takes long to find out, and not the linker.
    by_compiler: bool,
}

impl Program {
    fn create(directory: &Path, cache: &Path) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let clang = Toolchain::from_env()?.tool("clang")?;
        let (directory, cache) = (directory.to_owned(), cache.to_owned());
        let mut program = Self { directory, clang, cache, expected: 0, by_compiler: false };
        let main =
            "#include <stdio.h>\nint f0(int);\nint main(void) { printf(\"%d\\n\", f0(0)); return 0; }\n";
        program.compile("main", main)?;
        for (number, next) in (0..MODULES - 1).zip(1..) {
            let text = format!("int f{next}(int);\nint f{number}(int x) {{ return f{next}(x); }}\n");
            program.compile(&format!("f{number}"), &text)?;
        }
        program.edit(1)?;
        Ok(program)
    }

    /// Gives the program something else to print. The function that does is imported into every module, so that all
    /// backends have another result.
    fn edit(&mut self, number: u32) -> Result<()> {
        self.expected = number;
        let last = MODULES - 1;
        self.compile(&format!("f{last}"), &format!("int f{last}(int x) {{ return x + {number}; }}\n"))
    }

    fn compile(&self, name: &str, text: &str) -> Result<()> {
        let source = format!("{name}.c");
        fs::write(self.directory.join(&source), text)?;
        let mut command = Command::new(&self.clang);
        command.args(["-O2", "-flto=thin", "-c", &source]).current_dir(&self.directory);
        succeed(&mut command).map(drop)
    }

    /// A link that knows nothing of an earlier one.
    fn link(&self, options: &[&str]) -> Result<Command> {
        let _ = fs::remove_file(self.directory.join("program"));
        let mut command = Command::new(distlto::binary()?);
        command.arg("link").arg("--cache").arg(&self.cache).args(options);
        if self.by_compiler {
            command.arg("--compiler").arg(&self.clang);
        }
        command.arg("--").arg(&self.clang);
        command.args(["-O2", "-flto=thin"]);
        command.arg(format!("--ld-path={}", Toolchain::from_env()?.tool("ld.lld")?.display()));
        command.args(["-o", "program", "main.o"]);
        command.args((0..MODULES).map(|number| format!("f{number}.o"))).current_dir(&self.directory);
        Ok(command)
    }

    /// Links to the end and runs the program; gives what the link said.
    fn run(&self) -> Result<String> {
        let mut command = self.link(&[])?;
        let output = capture(&mut command)?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        self.check()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn check(&self) -> Result<()> {
        let said = succeed(&mut Command::new(self.directory.join("program")))?;
        let said = String::from_utf8_lossy(&said.stdout);
        ensure!(said.trim() == self.expected.to_string(), "it prints {said} instead of {}", self.expected);
        Ok(())
    }
}

/// An empty cache.
fn cache(scratch: &Path) -> Result<PathBuf> {
    let cache = scratch.join("cache");
    fs::create_dir(&cache)?;
    Ok(cache)
}

/// What `distlto cache stats` or `verify` says of a cache; it must succeed.
fn ask(what: &str, cache: &Path) -> Result<Value> {
    let mut command = Command::new(distlto::binary()?);
    let said = succeed(command.args(["cache", what, "--json", "--cache"]).arg(cache))?;
    let said: Value = serde_json::from_slice(&said.stdout)?;
    Ok(said["cache"].clone())
}

fn hits(cache: &Path) -> Result<u64> {
    ask("stats", cache)?["hits"].as_u64().context("a number")
}

fn temporaries(cache: &Path) -> Result<usize> {
    Ok(fs::read_dir(cache.join("results-v1/tmp"))?.count())
}

fn start(command: &mut Command) -> Result<Child> {
    Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// Every module and `main`.
const BACKENDS: u64 = MODULES as u64 + 1;

#[test]
fn killed_at_fifty_moments() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cache = cache(scratch.path())?;
    let mut program = Program::create(&scratch.path().join("p"), &cache)?;
    let begun = Instant::now();
    program.run()?;
    let cold = begun.elapsed();
    let random = RandomState::new();
    for round in 0..50u32 {
        program.edit(round + 3)?;
        let mut child = start(&mut program.link(&[])?)?;
        let moment = random.hash_one(round) % (cold.as_micros() as u64).max(1);
        std::thread::sleep(Duration::from_micros(moment));
        child.kill()?;
        child.wait()?;
        ask("verify", &cache)?;
        if round % 5 == 4 {
            program.run()?;
            ensure!(temporaries(&cache)? == 0, "{} temporaries are left", temporaries(&cache)?);
        }
    }
    let before = hits(&cache)?;
    let said = program.run()?;
    ensure!(complaints(&said).is_empty(), "{said}");
    ensure!(hits(&cache)? == before + BACKENDS, "a link that was made before is not all hits");
    Ok(())
}

/// What a link says of its cache, but for how many results were from there: that is said of a link that takes long.
fn complaints(said: &str) -> Vec<String> {
    let of_cache = said.lines().filter(|line| line.contains("cache"));
    of_cache.filter(|line| !line.contains("from the cache")).map(str::to_owned).collect()
}

fn at_once(links: usize) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cache = cache(scratch.path())?;
    let programs: Vec<_> = (0..links)
        .map(|number| Program::create(&scratch.path().join(format!("p{number}")), &cache))
        .collect::<Result<_>>()?;
    for round in 0..2 {
        let mut commands: Vec<_> =
            programs.iter().map(|program| program.link(&["-j2"])).collect::<Result<_>>()?;
        let children: Vec<_> = commands.iter_mut().map(start).collect::<Result<_>>()?;
        for ((command, child), program) in commands.iter().zip(children).zip(&programs) {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "{}", told(command, &output));
            ensure!(
                complaints(&String::from_utf8_lossy(&output.stderr)).is_empty(),
                "{}",
                told(command, &output)
            );
            program.check()?;
        }
        ask("verify", &cache)?;
        ensure!(temporaries(&cache)? == 0, "{} temporaries are left", temporaries(&cache)?);
        if round == 1 {
            ensure!(hits(&cache)? >= BACKENDS * links as u64, "the second time all are hits");
        }
    }
    Ok(())
}

#[test]
fn two_at_once() -> Result<()> {
    at_once(2)
}

#[test]
fn eight_at_once() -> Result<()> {
    at_once(8)
}

/// Every record, and every blob.
fn files(cache: &Path, part: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for shard in fs::read_dir(cache.join("results-v1").join(part))? {
        for file in fs::read_dir(shard?.path())? {
            files.push(file?.path());
        }
    }
    Ok(files)
}

#[test]
fn every_file_damaged() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cache = cache(scratch.path())?;
    let program = Program::create(&scratch.path().join("p"), &cache)?;
    program.run()?;
    for part in ["blobs", "records"] {
        let files = files(&cache, part)?;
        ensure!(files.len() as u64 >= BACKENDS, "{files:?}");
        for file in &files {
            let mut bytes = fs::read(file)?;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::remove_file(file)?;
            fs::write(file, bytes)?;
        }
        // The record of the link knows of its objects without those of the store.
        fs::remove_dir_all(cache.join("links-v1"))?;
        let before = hits(&cache)?;
        let said = program.run()?;
        ensure!(hits(&cache)? == before, "a damaged {part} was a hit");
        for file in &files {
            let name = file.to_str().context("text")?;
            ensure!(said.matches(name).count() == 1, "{name} is not told of once:\n{said}");
        }
        ask("verify", &cache)?;
        let said = program.run()?;
        ensure!(complaints(&said).is_empty() && hits(&cache)? == before + BACKENDS, "{said}");
    }
    Ok(())
}

/// Puts another whole object into every result of a cache, as a compiler that errs could have.
fn poison(cache: &Path, object: &Path) -> Result<u64> {
    let open = Cache::open(cache, CacheLimits::default())?;
    let mut poisoned = 0;
    for file in files(cache, "records")? {
        let digits = file.strip_prefix(cache.join("results-v1/records"))?.to_string_lossy().replace('/', "");
        let key = HEXLOWER.decode(digits.as_bytes())?;
        let key = Key(key.try_into().map_err(|key| anyhow!("{key:?}"))?);
        let record = open.get(&key).context("a record")?;
        if !record.note.is_empty() {
            // What is found by a linker's key is the user's own.
            open.forget(&key);
            continue;
        }
        let output = |output: &OutputFile| (output.role, output.name.clone());
        let names: Vec<_> = record.outputs.iter().map(output).collect();
        let outputs: Vec<_> =
            names.iter().map(|(role, name)| NewOutput { role: *role, name, file: object }).collect();
        let measured = Measured::default();
        let result = NewResult {
            module: &record.module,
            outputs: &outputs,
            stderr: b"",
            measured,
            by_engine: false,
            is_unobserved: false,
            note: "",
        };
        open.put(&key, &result).context("kept")?;
        poisoned += 1;
    }
    Ok(poisoned)
}

/// Two checkouts have one cache, which has wrong objects: neither gets them, and the second finds those that the first made.
#[test]
fn wrong_objects_under_right_keys() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cache = cache(scratch.path())?;
    let create = |name: &str| {
        Program::create(&scratch.path().join(name), &cache)
            .map(|program| Program { by_compiler: true, ..program })
    };
    let program = create("p")?;
    program.run()?;
    let object = scratch.path().join("unrelated.o");
    let mut clang = Command::new(&program.clang);
    fs::write(scratch.path().join("unrelated.c"), "int unrelated;")?;
    succeed(clang.args(["-c", "unrelated.c", "-o", "unrelated.o"]).current_dir(scratch.path()))?;
    ensure!(poison(&cache, &object)? == BACKENDS);
    let other = create("q")?;
    let said = other.run()?;
    let dropped = |said: &str| {
        let lines = said.lines().filter(|line| line.starts_with("distlto: warning: "));
        let ends = "; the cached result is dropped, and it is compiled anew";
        lines.filter(|line| line.contains("it does not define ") && line.ends_with(ends)).count() as u64
    };
    ensure!(dropped(&said) == BACKENDS, "{said}");
    let before = hits(&cache)?;
    for program in [&program, &other] {
        let said = program.run()?;
        ensure!(dropped(&said) == 0, "{said}");
    }
    ensure!(hits(&cache)? == before + 2 * BACKENDS, "what was made anew is not in the cache");
    Ok(())
}

#[test]
fn what_is_remembered_of_compilers_is_looked_after() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let cache = cache(scratch.path())?;
    let file = cache.join(COMPILERS);
    let program = Program::create(&scratch.path().join("p"), &cache)?;
    Program { by_compiler: true, ..program }.run()?;
    let remembered = fs::read(&file)?;
    ask("verify", &cache)?;
    ensure!(ask("prune", &cache)?["forgotten"] == 0 && fs::read(&file)? == remembered);
    fs::write(&file, &remembered[..remembered.len() - 1])?;
    let mut verify = Command::new(distlto::binary()?);
    let output = capture(verify.args(["cache", "verify", "--cache"]).arg(&cache))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.code() == Some(3) && said.contains(COMPILERS) && !file.exists(), "{said}");
    ask("verify", &cache)?;
    Ok(())
}

#[test]
fn a_full_disk_costs_time_only() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    // The small file system is seen by the script alone.
    let program = Program::create(&scratch.path().join("p"), Path::new("CACHE"))?;
    let link = distlto_tests::run::shown(&program.link(&[])?).replace("CACHE", "\"$SMALL/cache\"");
    let script = format!(
        "
        mkdir \"$SMALL/cache\"
        for turn in 1 2 3 4; do
          rm -f program
          ({link}) 2> said-$turn
          ./program
          {distlto} cache verify --cache \"$SMALL/cache\" > verified
          grep -q ' 0 damaged' verified
          [ -z \"$(ls -A \"$SMALL/cache/results-v1/tmp\")\" ]
          [ $turn -ne 2 ] || cat /dev/zero > \"$SMALL/other\" 2> /dev/null || true
          [ $turn -ne 3 ] || rm \"$SMALL/other\"
        done
        ",
        distlto = distlto::binary()?.display(),
    );
    let said = small_disk::run(&program.directory, 48, &script)?;
    ensure!(said.lines().all(|line| line == program.expected.to_string()), "{said}");
    ensure!(said.lines().count() == 4, "{said}");
    let complaints = (1..=4).map(|turn| fs::read_to_string(program.directory.join(format!("said-{turn}"))));
    let complaints = complaints.collect::<Result<Vec<_>, _>>()?;
    ensure!(complaints[0].contains("No space left on device"), "the disk was never full: {complaints:?}");
    Ok(())
}
