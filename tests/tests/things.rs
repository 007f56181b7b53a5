//! `distlto inspect` of things that are no links by distlto: an object, an archive, a shard, a folder of shards, job files of
//! lld's DTLTO, Buck2's meta file, a link command; and of the same with bytes that are not what they were.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::campaign::random::Random;
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::{Toolchain, repository};
use serde_json::{Value, json};

const SOURCES: [(&str, &str); 3] = [
    ("main", "int a(int);\nint main(int count, char **words) { return a(count); }\n"),
    ("a", "int b(int);\n__attribute__((noinline)) int a(int x) { return b(x) + 1; }\n"),
    ("b", "int b(int x) { return x * 3; }\n"),
];
const VERSION_0: &str = r#"{"version": {"major": 0, "minor": 0},
  "common": {"args": ["-o", ["", "outputs", 0], ["", "inputs", 0], ["-fthinlto-index=", "inputs", 1]],
             "codegen-tool": "/path/to/clang", "inputs": ["my.profdata"], "modules": ["main.o", "a.o"]},
  "jobs": [{"inputs": [0, "main.thinlto.bc", 1], "outputs": ["main.native.o"]},
           {"inputs": [1, "a.thinlto.bc"], "outputs": ["a.native.o"]}]}"#;

struct Things {
    folder: Folder,
}

impl Things {
    /// Objects, an archive of one of each kind, and what a thin link writes into `index`.
    fn create(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("things/{name}"))?;
        let clang = folder.toolchain.tool("clang")?;
        let run = |program: &Path, words: &[&str]| {
            succeed(Command::new(program).args(words).current_dir(&folder.path)).map(drop)
        };
        for (name, text) in SOURCES {
            let (source, object) = (format!("{name}.c"), format!("{name}.o"));
            folder.write(&source, text)?;
            run(&clang, &["-O2", "-flto=thin", "-c", &source, "-o", &object])?;
        }
        run(&clang, &["-O2", "-c", "b.c", "-o", "native.o"])?;
        run(&clang, &["-O2", "-flto", "-c", "b.c", "-o", "full.o"])?;
        run(&folder.toolchain.tool("llvm-ar")?, &["rcs", "lib.a", "a.o", "native.o", "full.o"])?;
        fs::create_dir_all(folder.path.join("index"))?;
        let lld = folder.toolchain.tool("ld.lld")?;
        let words = ["-Wl,--thinlto-index-only=index/list", "-Wl,--thinlto-prefix-replace=;index/"];
        let lld = format!("--ld-path={}", lld.display());
        run(&clang, &[&[&lld, "-flto=thin", "main.o", "a.o", "b.o", "-o", "program"][..], &words].concat())?;
        folder.write("old.json", VERSION_0)?;
        let linkable = |number: usize, name: &str| {
            json!({"type": "bitcode", "idx": number, "path": name, "output": format!("index/{name}.thinlto.bc"),
                   "plan_output": format!("{name}.plan")})
        };
        let linkables =
            [linkable(0, "main.o"), linkable(1, "a.o"), linkable(2, "b.o"), linkable(3, "native.o")];
        let meta = json!([{"pre_flags": [], "post_flags": [], "linkables": linkables}]);
        folder.write("meta.json", meta.to_string())?;
        let jobs = repository().join("planner/tests/data/dtlto/cache-partial.json");
        fs::copy(&jobs, folder.path.join("jobs.json")).with_context(|| jobs.display().to_string())?;
        Ok(Self { folder })
    }

    fn ask(&self, command: &str, words: &[&str]) -> Result<Output> {
        let mut asked = Command::new(distlto::binary()?);
        capture(asked.arg(command).args(words).current_dir(&self.folder.path).env_remove("DISTLTO_STATE"))
    }

    fn inspect(&self, words: &[&str]) -> Result<Output> {
        self.ask("inspect", words)
    }

    fn says(&self, words: &[&str], expected: &[&str]) -> Result<()> {
        let output = self.inspect(words)?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{words:?}: {output:?}");
        for expected in expected {
            ensure!(text.contains(expected), "{words:?}: {expected}: {text}");
        }
        Ok(())
    }

    fn json(&self, thing: &str) -> Result<Value> {
        let output = self.inspect(&[thing, "--json"])?;
        serde_json::from_slice(&output.stdout).with_context(|| format!("{thing}: {output:?}"))
    }

    fn names(&self) -> Result<BTreeSet<std::ffi::OsString>> {
        fs::read_dir(&self.folder.path)?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

#[test]
fn each_thing_says_what_it_is() -> Result<()> {
    let things = Things::create("each")?;
    things.says(&["a.o"], &["a.o: bitcode, a ThinLTO module of ", "; from a.c for x86_64"])?;
    things.says(&["full.o"], &["full.o: bitcode, not ThinLTO: it is for full LTO"])?;
    things.says(&["native.o"], &["native.o: ELF x86-64 object: not ThinLTO"])?;
    things.says(
        &["lib.a"],
        &["an archive of 3 members, 1 of which", "not ThinLTO: 1 x ELF x86-64 object, 1 x bitcode"],
    )?;
    things.says(&["lib.a", "--native", "--filter", "full"], &["  full.o: bitcode, not ThinLTO"])?;
    things.says(&["index/a.o.thinlto.bc"], &["an index shard", "it names 2 modules"])?;
    things.says(&["index/a.o.thinlto.bc", "--imports"], &["module\n", "  a.o\n", "  b.o\n"])?;
    things.says(
        &["index"],
        &["index: 3 modules, 1 import\n", "hub: b.o is imported by 1 module", "a folder of 3 index shards"],
    )?;
    fs::write(things.folder.path.join("index/native.o.thinlto.bc"), "")?;
    things
        .says(&["index"], &["a folder of 3 index shards", "not ThinLTO: 1 object, whose shard is empty"])?;
    things.says(&["index", "--imports"], &["a.o from b.o\n"])?;
    things.says(
        &["old.json"],
        &[
            "2 modules, 1 import",
            "of version 0.0: 2 jobs, each by /path/to/clang",
            "2 of 2 index shards are not",
        ],
    )?;
    things.says(&["old.json", "--imports"], &["main.o from a.o\n"])?;
    things.says(&["jobs.json"], &["a job file of lld's DTLTO", "each by "])?;
    things.says(&["meta.json"], &["meta.json: 3 modules, 1 import\n", "not ThinLTO: 1 object\n"])?;
    let shard = things.json("index/a.o.thinlto.bc")?;
    ensure!(shard["kind"] == "shard" && shard["modules"][0]["module"] == "a.o", "{shard}");
    let archive = things.json("lib.a")?;
    ensure!(
        archive["members"][0]["thin_lto"] == true && archive["members"][1]["thin_lto"] == false,
        "{archive}"
    );
    let object = things.json("a.o")?;
    ensure!(object["bytes"] == fs::metadata(things.folder.path.join("a.o"))?.len(), "{object}");
    Ok(())
}

/// What each front end leaves: what one module imports of another, what an edit runs, a comparison, and a page.
#[test]
fn each_front_ends_leavings_are_explained() -> Result<()> {
    let things = Things::create("explained")?;
    let tool = |name| Ok::<_, anyhow::Error>(things.folder.toolchain.tool(name)?.display().to_string());
    let lld = format!("--ld-path={}", tool("ld.lld")?);
    let clang = tool("clang")?;
    let link = ["--", &clang, &lld, "-O2", "-flto=thin", "main.o", "a.o", "b.o", "-o", "linked"];
    for (command, words) in [
        ("link", link.to_vec()),
        ("index", [&["--index", "indexed"][..], &link].concat()),
        ("plan", vec!["indexed", "--json", "graph.json"]),
    ] {
        let output = things.ask(command, &words)?;
        ensure!(output.status.success(), "{command}: {output:?}");
    }
    for thing in ["linked", "indexed", "graph.json", "index", "meta.json"] {
        let says = |command: &str, words: &[&str], expected: &str| -> Result<()> {
            let output = things.ask(command, words)?;
            let said = String::from_utf8_lossy(&output.stdout);
            ensure!(output.status.success() && said.contains(expected), "{command} {words:?}: {output:?}");
            Ok(())
        };
        says("inspect", &[thing], "3 modules, 1 import")?;
        says(
            "explain",
            &[thing, "a.o", "b.o"],
            "a.o imports 1 of 1 functions of b.o\n      2  b: imported\n",
        )?;
        let reason = match thing {
            "index" | "meta.json" => {
                &*format!("LLVM's reasons are not known: {thing} holds no command of ld.lld; name ")
            }
            _ => "1 more: no call leads to them, or another module has them too\n",
        };
        says("explain", &[thing, "main.o", "b.o"], reason)?;
        says("explain", &[thing, "b.o", "--edit"], "an edit of it runs 2 backends")?;
        says("diff", &[thing, "indexed"], "the same modules")?;
        let page = format!("{thing}.html");
        says("report", &[thing, "-o", &page], "")?;
        ensure!(fs::read_to_string(things.folder.path.join(&page))?.contains("</html>"), "{page}");
    }
    fs::remove_dir_all(things.folder.path.join("index"))?;
    let output = things.ask("explain", &["meta.json", "a.o", "b.o"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(3) && said.contains("index/a.o.thinlto.bc is not there"), "{said}");
    Ok(())
}

#[test]
fn a_link_command_is_looked_at_without_a_trace() -> Result<()> {
    let things = Things::create("command")?;
    let before = things.names()?;
    let clang = things.folder.toolchain.tool("clang")?.display().to_string();
    let lld = format!("--ld-path={}", things.folder.toolchain.tool("ld.lld")?.display());
    let link = [&clang, &lld, "-O2", "-flto=thin", "main.o", "b.o", "lib.a", "-o", "program"];
    things.says(
        &[&["--"], &link[..]].concat(),
        &["program: 3 modules, 1 import\n", "its thin link was performed"],
    )?;
    things.says(&[&["--imports", "--"], &link[..]].concat(), &["lib.a(a.o) from b.o\n"])?;
    ensure!(things.names()? == before, "{:?}", things.names()?);
    let output = things.inspect(&["--", &clang, "native.o", &lld, "-o", "program"])?;
    ensure!(output.status.code() == Some(2), "{output:?}");
    let output =
        things.inspect(&["--", &clang, "main.o", "-Wl,--nonsense", &lld, "-flto=thin", "-o", "program"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && said.contains("nonsense"), "{said}");
    Ok(())
}

#[test]
fn what_is_damaged_is_an_error_with_a_remedy() -> Result<()> {
    let things = Things::create("damaged")?;
    let pipe = things.folder.path.join("pipe");
    succeed(Command::new("mkfifo").arg(&pipe))?;
    fs::write(things.folder.path.join("empty"), "")?;
    for (thing, code) in [("pipe", 3), ("empty", 3), ("nowhere", 3), ("index/list", 3)] {
        let output = things.inspect(&[thing])?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(code) && said.contains("help: "), "{thing}: {output:?}");
    }
    // Bytes at random, and an end that comes too early. The same numbers in every run.
    let mut random = Random::new(16);
    for thing in ["a.o", "index/a.o.thinlto.bc", "lib.a", "old.json", "jobs.json", "meta.json"] {
        let whole = fs::read(things.folder.path.join(thing))?;
        let ending = if thing.ends_with("json") { "json" } else { "thinlto.bc" };
        let damaged = things.folder.path.join(format!("damaged.{ending}"));
        let damaged_name = damaged.to_string_lossy().into_owned();
        for round in 0..24 {
            let mut bytes = whole.clone();
            if round % 2 == 0 {
                bytes.truncate(random.below(whole.len()));
            } else {
                for _ in 0..random.between(1, 8) {
                    let at = random.below(bytes.len());
                    bytes[at] = u8::try_from(random.below(256)).unwrap_or(0);
                }
            }
            fs::write(&damaged, &bytes)?;
            let output = things.inspect(&[&damaged_name])?;
            let said = String::from_utf8_lossy(&output.stderr);
            // What is still whole enough is told of.
            let is_told = output.status.success() && said.is_empty();
            let is_refused = output.status.code() == Some(3) && said.contains("help: ");
            ensure!(is_told || is_refused, "{thing}, round {round}: {output:?}");
        }
    }
    Ok(())
}
