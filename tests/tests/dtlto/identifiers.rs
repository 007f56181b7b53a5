//! Job files of version 0.0, whose modules have identifiers that are no files: the example of the proposal of 2023, built
//! from real bitcode. What has to come out is what the compiler makes of the plain files.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, fail, succeed, told};
use distlto_tests::toolchain::Toolchain;
use serde_json::{Value, json};

use super::small::utf8;

const MAIN: &str = r#"
#include <stdio.h>
int a(int), c(int);
int main(void) {
  int total = 0;
  for (int i = 0; i < 100; i++)
    total += i % 10 ? a(i) : c(i);
  printf("%d\n", total);
  return 0;
}
"#;
const A: &str = "int a(int x) { return x % 7 ? x * 3 : x - 1; }\n";
const C: &str = "int c(int x) { int t = 0; for (int i = 0; i < x % 10; i++) t += i * x; return t; }\n";
const PROFILE: &str = "main:10100:1\n 3: 1000\n 4: 990 a:980\na:9800:980\n 0: 980\nc:50:10\n 0: 10\n";
/// What stands for `<uid>` in the proposal.
const UID: &str = "8157";

/// The three modules, their thin link with archives, and the objects that plain files give.
struct Example {
    folder: Folder,
    /// `libmain.a(main.o at 82)`, `c.o`, `liba.a(a.o at 78)`.
    modules: [String; 3],
    shards: [String; 3],
    expected: [Vec<u8>; 3],
}

impl Example {
    fn create(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("dtlto/{name}"))?;
        folder.write("samples.txt", PROFILE)?;
        run(&folder, "%profdata merge -sample samples.txt -o my.profdata")?;
        for (name, text) in [("main", MAIN), ("a", A), ("c", C)] {
            folder.write(&format!("{name}.c"), text)?;
            let flags = "-O2 -flto=thin -gline-tables-only -fprofile-sample-use=my.profdata";
            run(&folder, &format!("%clang {flags} -c {name}.c -o {name}.o"))?;
            fs::remove_file(folder.path.join(format!("{name}.c")))?;
        }
        let expected = plain_objects(&folder)?;
        run(&folder, "%ar rcs libmain.a main.o")?;
        run(&folder, "%ar rcs liba.a a.o")?;
        thin_link(&folder, "libmain.a c.o liba.a")?;
        let index = fs::read_to_string(folder.path.join("index"))?;
        let find = |start: &str| {
            let line = index.lines().find(|line| line.starts_with(start));
            line.map(str::to_owned).with_context(|| format!("no {start} in\n{index}"))
        };
        let modules = [find("libmain.a(main.o at ")?, find("c.o")?, find("liba.a(a.o at ")?];
        let imports = fs::read_to_string(folder.path.join(format!("{}.imports", modules[0])))?;
        ensure!(imports.lines().count() == 2, "main.o imports\n{imports}");
        let object = |name: &str| format!("{name}.native.o");
        let objects =
            [object(&format!("main.{UID}.o")), object(&format!("c.{UID}")), object(&format!("a.{UID}.o"))];
        let shards = objects.map(|object| format!("{object}.thinlto.bc"));
        for (module, shard) in modules.iter().zip(&shards) {
            fs::rename(folder.path.join(format!("{module}.thinlto.bc")), folder.path.join(shard))?;
            fs::remove_file(folder.path.join(format!("{module}.imports")))?;
        }
        fs::remove_file(folder.path.join("index"))?;
        fs::rename(folder.path.join("main.o"), folder.path.join(format!("main.{UID}.o")))?;
        Ok(Self { folder, modules, shards, expected })
    }

    fn objects(&self) -> [&str; 3] {
        [0, 1, 2].map(|at| self.shards[at].trim_end_matches(".thinlto.bc"))
    }

    /// The job file of the proposal, with these entries for the two archive members.
    fn job_file(&self, main: Value, a: Value) -> Result<Value> {
        let mut args: Vec<Value> = words_before().into_iter().map(Value::from).collect();
        args.extend([json!("-o"), json!(["", "outputs", 0]), json!("-emit-obj"), json!("-x"), json!("ir")]);
        args.extend([json!(["", "inputs", 0]), json!(["-fthinlto-index=", "inputs", 1])]);
        args.extend(["-triple", "x86_64-pc-linux-gnu"].map(Value::from));
        let [main_object, c_object, a_object] = self.objects();
        let [main_shard, c_shard, a_shard] = &self.shards;
        Ok(json!({
            "version": {"major": 0, "minor": 0},
            "common": {
                "args": args,
                "codegen-tool": utf8(&self.folder.toolchain.tool("clang")?)?,
                "inputs": ["my.profdata"],
                "modules": [main, "c.o", a],
            },
            "jobs": [
                {"inputs": [0, main_shard, 1, 2], "outputs": [main_object]},
                {"inputs": [2, a_shard], "outputs": [a_object]},
                {"inputs": [1, c_shard], "outputs": [c_object]},
            ],
        }))
    }

    fn distribute(&self, job_file: &Value, options: &[&str]) -> Result<Command> {
        self.folder.write("job.json", job_file.to_string())?;
        let mut command = Command::new(distlto::distributor()?);
        command.args(options).arg("job.json").current_dir(&self.folder.path);
        Ok(command)
    }

    /// The commands that the proposal gives, in the jobs' order.
    fn commands(&self) -> Result<Vec<Vec<String>>> {
        let clang = self.folder.toolchain.tool("clang")?;
        let command = |at: usize| {
            let (module, shard, object) = (&self.modules[at], &self.shards[at], self.objects()[at]);
            let index = format!("-fthinlto-index={shard}");
            let mut words = vec![utf8(&clang)?.to_owned()];
            words.extend(words_before().map(str::to_owned));
            let rest =
                ["-o", object, "-emit-obj", "-x", "ir", module, &index, "-triple", "x86_64-pc-linux-gnu"];
            words.extend(rest.map(str::to_owned));
            Ok(words)
        };
        [0, 2, 1].into_iter().map(command).collect()
    }

    fn names(&self) -> Result<BTreeSet<String>> {
        let entries = fs::read_dir(&self.folder.path)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// Runs the jobs: the objects are right, they make the program, and nothing else is there that was not before.
    fn check(&self, job_file: &Value) -> Result<()> {
        let dry_run = capture(&mut self.distribute(job_file, &["--dry-run"])?)?;
        let printed = String::from_utf8(dry_run.stdout)?;
        let printed: Vec<_> = printed.lines().map(|line| shlex::split(line).unwrap_or_default()).collect();
        ensure!(dry_run.status.success() && printed == self.commands()?, "{printed:#?}");
        let before = self.names()?;
        let mut jobs = self.distribute(job_file, &[])?;
        let output = succeed(&mut jobs)?;
        ensure!(output.stdout.is_empty() && output.stderr.is_empty(), "{}", told(&jobs, &output));
        let after = self.names()?;
        let made: Vec<&str> = after.difference(&before).map(String::as_str).collect();
        let mut expected = self.objects().to_vec();
        expected.sort_unstable();
        ensure!(made == expected && before.is_subset(&after), "beside the objects there are {made:?}");
        self.objects_are_right("")?;
        let line = format!("%clang -o program {}", self.objects().join(" "));
        run(&self.folder, &line)?;
        let said = succeed(&mut Command::new(self.folder.path.join("program")))?;
        ensure!(said.stdout == b"12157\n", "{}", String::from_utf8_lossy(&said.stdout));
        Ok(())
    }

    fn objects_are_right(&self, below: &str) -> Result<()> {
        for (object, expected) in self.objects().iter().zip(&self.expected) {
            let found = fs::read(self.folder.path.join(below).join(object))?;
            ensure!(found == *expected, "{below}{object} is not what the compiler makes of the plain file");
        }
        Ok(())
    }
}

/// What the commands begin with.
fn words_before() -> [&'static str; 5] {
    ["-cc1", "-O2", "-ffunction-sections", "-fdata-sections", "-fprofile-sample-use=my.profdata"]
}

fn run(folder: &Folder, line: &str) -> Result<()> {
    succeed(&mut folder.command(line, "")?).map(drop)
}

fn thin_link(folder: &Folder, inputs: &str) -> Result<()> {
    let options =
        "--thinlto-index-only=index --thinlto-emit-imports-files -e main --lto-sample-profile=my.profdata";
    run(folder, &format!("%lld {options} -o unused {inputs}"))
}

/// The objects of main.o, c.o and a.o, thin-linked and compiled as the files that they are.
fn plain_objects(folder: &Folder) -> Result<[Vec<u8>; 3]> {
    thin_link(folder, "main.o c.o a.o")?;
    let mut objects = [const { Vec::new() }; 3];
    for (name, object) in ["main", "c", "a"].iter().zip(&mut objects) {
        let words = words_before().join(" ");
        let rest = format!(
            "-emit-obj -x ir {name}.o -fthinlto-index={name}.o.thinlto.bc -triple x86_64-pc-linux-gnu"
        );
        run(folder, &format!("%clang {words} -o plain.o {rest}"))?;
        *object = fs::read(folder.path.join("plain.o"))?;
        for file in ["plain.o", &format!("{name}.o.thinlto.bc"), &format!("{name}.o.imports")] {
            fs::remove_file(folder.path.join(file))?;
        }
    }
    Ok(objects)
}

#[test]
fn the_example_of_the_proposal() -> Result<()> {
    let example = Example::create("version-0")?;
    let [main, _, a] = &example.modules;
    fs::remove_file(example.folder.path.join("libmain.a"))?;
    fs::remove_file(example.folder.path.join("liba.a"))?;
    example.check(&example.job_file(json!([main, format!("main.{UID}.o")]), json!([a, "a.o"]))?)
}

/// No unpacked file is named, or one that is itself a member: it is taken out of the archive.
#[test]
fn members_are_unpacked_where_no_file_is_named() -> Result<()> {
    let example = Example::create("version-0-archives")?;
    let [main, _, a] = &example.modules;
    for name in ["a.o".to_owned(), format!("main.{UID}.o")] {
        fs::remove_file(example.folder.path.join(name))?;
    }
    let job_file = example.job_file(json!(main), json!([a, a]))?;
    example.check(&job_file)?;
    // Another member is at that offset, or none.
    run(&example.folder, "%ar rcs liba.a my.profdata c.o")?;
    let (code, said) = fail(&mut example.distribute(&job_file, &[])?)?;
    ensure!(code == 3 && said.contains("liba.a has no member a.o at byte "), "exit code {code}:\n{said}");
    fs::remove_file(example.folder.path.join("liba.a"))?;
    let (code, said) = fail(&mut example.distribute(&job_file, &[])?)?;
    ensure!(
        code == 3 && said.contains("missing") && said.contains("liba.a(a.o at "),
        "exit code {code}:\n{said}"
    );
    Ok(())
}

/// A failed compilation can be repeated by the command that is told, although its directory is gone.
#[test]
fn a_failure_can_be_repeated() -> Result<()> {
    let example = Example::create("version-0-failure")?;
    let [main, _, a] = &example.modules;
    let mut job_file = example.job_file(json!([main, format!("main.{UID}.o")]), json!([a, "a.o"]))?;
    let args = job_file["common"]["args"].as_array_mut().context("words")?;
    args.insert(1, json!("-no-such-option"));
    let (code, said) = fail(&mut example.distribute(&job_file, &["--keep-going"])?)?;
    let repeat: Vec<_> = said.lines().filter_map(|line| line.trim_start().strip_prefix("repeat: ")).collect();
    ensure!(code == 1 && repeat.len() == 3, "exit code {code}:\n{said}");
    for line in repeat {
        let again = line.replace(" -no-such-option", "");
        succeed(Command::new("sh").args(["-c", &again]).current_dir("/"))?;
    }
    example.objects_are_right("")
}
