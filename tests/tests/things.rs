//! What `distlto inspect` and its siblings take for a link: an output, an index directory, a graph, a link command; what they
//! refuse; and files of distlto with bytes that are not what they were.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::campaign::random::Random;
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::Toolchain;

const SOURCES: [(&str, &str); 3] = [
    ("main", "int a(int);\nint main(int count, char **words) { return a(count); }\n"),
    ("a", "int b(int);\n__attribute__((noinline)) int a(int x) { return b(x) + 1; }\n"),
    ("b", "int b(int x) { return x * 3; }\n"),
];
struct Things {
    folder: Folder,
}

impl Things {
    /// Objects, and an archive with one of them.
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
        run(&folder.toolchain.tool("llvm-ar")?, &["rcs", "lib.a", "a.o"])?;
        Ok(Self { folder })
    }

    /// The link `linked`, its index directory `indexed`, and the graph of that, `graph.json`.
    fn link(&self) -> Result<()> {
        let tool = |name| Ok::<_, anyhow::Error>(self.folder.toolchain.tool(name)?.display().to_string());
        let (clang, lld) = (tool("clang")?, format!("--ld-path={}", tool("ld.lld")?));
        let link = ["--", &clang, &lld, "-O2", "-flto=thin", "main.o", "a.o", "b.o", "-o", "linked"];
        for (command, words) in [
            ("link", link.to_vec()),
            ("index", [&["--index", "indexed"][..], &link].concat()),
            ("plan", vec!["indexed", "--json", "graph.json"]),
        ] {
            let output = self.ask(command, &words)?;
            ensure!(output.status.success(), "{command}: {output:?}");
        }
        Ok(())
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

    fn names(&self) -> Result<BTreeSet<std::ffi::OsString>> {
        fs::read_dir(&self.folder.path)?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

/// What each front end leaves, of a link: what one module imports of another, what an edit runs, a comparison, and a page.
#[test]
fn each_front_ends_leavings_are_explained() -> Result<()> {
    let things = Things::create("explained")?;
    things.link()?;
    for thing in ["linked", "indexed", "graph.json"] {
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
        let others = "1 more: no call leads to them, or another module has them too\n";
        says("explain", &[thing, "main.o", "b.o"], others)?;
        says("explain", &[thing, "b.o", "--edit"], "an edit of it runs 2 backends")?;
        says("diff", &[thing, "indexed"], "the same modules")?;
        let page = format!("{thing}.html");
        says("report", &[thing, "-o", &page], "")?;
        ensure!(fs::read_to_string(things.folder.path.join(&page))?.contains("</html>"), "{page}");
    }
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
    for thing in ["pipe", "empty", "nowhere", "a.o", "lib.a"] {
        let output = things.inspect(&[thing])?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(3) && said.contains("help: "), "{thing}: {output:?}");
    }
    things.link()?;
    let runs = distlto::state_dir(&things.folder.path.join("linked"))?.join("runs");
    let record = fs::read_dir(runs)?.next().context("a record")??.path();
    // Bytes at random, and an end that comes too early. The same numbers in every run.
    let mut random = Random::new(16);
    for whole in [record, things.folder.path.join("graph.json")] {
        let thing = whole.display();
        let whole = fs::read(&whole)?;
        let damaged = things.folder.path.join("damaged.json");
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
