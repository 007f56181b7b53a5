//! A distributed link that Ninja runs: `distlto-plan --ninja` on a state directory, with the real
//! `distlto-index` and `distlto-opt` behind it. Ninja says itself what it runs; which backends an edit concerns is read
//! off the shards and import lists that ld.lld wrote before and after.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{Toolchain, system_tool};

/// `main` imports `near` and, from a regular archive, `member`, which imports `helper` from a thin one.
const SOURCES: [(&str, &str); 6] = [
    (
        "main",
        "#include <stdio.h>\nint near(int), far(int), member(int);\n\
         int main(void) { printf(\"%d\\n\", near(1) + far(2) + member(3)); return 0; }\n",
    ),
    ("near", "int near(int n) { return n * 2; }\n"),
    ("far $way's: 1", "__attribute__((noinline)) int far(int n) { return n + 1; }\n"),
    ("member", "int helper(int);\nint member(int n) { return helper(n) * 10; }\n"),
    ("unused", "int unused(int n) { return n; }\n"),
    ("helper", "int helper(int n) { return n + 5; }\n"),
];

struct Link {
    folder: Folder,
    path: OsString,
}

impl Link {
    fn create(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("ninja/{name}"))?;
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(
            [distlto::directory()?.to_owned()].into_iter().chain(env::split_paths(&inherited)),
        )?;
        let link = Self { folder, path };
        for (name, text) in SOURCES {
            link.compile(name, text)?;
        }
        link.archive(&["rcs", "lib.a", "member.o", "unused.o"])?;
        link.archive(&["rcsT", "libthin.a", "helper.o"])?;
        Ok(link)
    }

    fn compile(&self, name: &str, text: &str) -> Result<()> {
        let source = format!("{name}.c");
        self.folder.write(&source, text)?;
        let mut clang = self.command(self.folder.toolchain.tool("clang")?);
        clang.args(["-O2", "-flto=thin", "-c", &source, "-o", &format!("{name}.o")]);
        succeed(&mut clang).map(drop)
    }

    fn edit(&self, name: &str, from: &str, to: &str) -> Result<()> {
        let (_, text) = SOURCES.iter().find(|(other, _)| *other == name).context("a source of the test")?;
        ensure!(text.contains(from), "{name} does not hold {from}");
        self.compile(name, &text.replacen(from, to, 1))
    }

    fn archive(&self, arguments: &[&str]) -> Result<()> {
        succeed(self.command(self.folder.toolchain.tool("llvm-ar")?).args(arguments)).map(drop)
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder.path).env("PATH", &self.path);
        command
    }

    /// A tool of distlto's, with the words of the link after `--`, if it takes them.
    fn distlto(&self, program: &str, arguments: &[&str], links: bool) -> Result<()> {
        let mut command = self.command(distlto::directory()?.join(program));
        command.args(arguments);
        if links {
            let lld = self.folder.toolchain.tool("ld.lld")?;
            command.arg("--").arg(self.folder.toolchain.tool("clang")?);
            command.args(["-O2", "-flto=thin", &format!("--ld-path={}", lld.display()), "-o", "program"]);
            command.args(["main.o", "near.o", "far $way's: 1.o", "lib.a", "libthin.a"]);
        }
        succeed(&mut command).map(drop)
    }

    /// What Ninja runs, sorted: the descriptions of its steps.
    fn ninja(&self) -> Result<Vec<String>> {
        let output = succeed(self.command(system_tool("ninja")?).args(["-f", "link.ninja"]))?;
        let text = String::from_utf8(output.stdout)?;
        if text.contains("no work to do") {
            return Ok(Vec::new());
        }
        let steps =
            text.lines().filter_map(|line| Some(line.strip_prefix('[')?.split_once("] ")?.1.to_owned()));
        let mut steps: Vec<String> = steps.collect();
        steps.sort();
        Ok(steps)
    }

    fn says(&self) -> Result<String> {
        Ok(String::from_utf8(succeed(&mut self.command(self.folder.path.join("program")))?.stdout)?)
    }

    /// What the backend of each module reads, as the graph has it.
    fn modules(&self) -> Result<BTreeMap<String, Module>> {
        let graph = fs::read(self.folder.path.join("program.distlto/index/graph.json"))?;
        let graph: serde_json::Value = serde_json::from_slice(&graph)?;
        let path = |number: &serde_json::Value| {
            let number = number.as_u64().and_then(|number| usize::try_from(number).ok());
            graph["files"][number.context("a number")?].as_str().context("a path")
        };
        let actions = graph["actions"].as_array().context("a graph has actions")?;
        let backends = actions.iter().filter(|action| action["kind"] == "opt");
        backends
            .map(|action| {
                let inputs = action["inputs"].as_array().context("inputs")?;
                let read = |number| Ok(fs::read(self.folder.path.join(path(number)?))?);
                let module = Module {
                    shard: action["shard"].as_str().context("a digest")?.to_owned(),
                    files: inputs.iter().map(read).collect::<Result<_>>()?,
                };
                Ok((action["label"].as_str().context("a label")?.to_owned(), module))
            })
            .collect()
    }
}

/// What a backend reads.
struct Module {
    /// The digest of its shard.
    shard: String,
    /// What its inputs hold.
    files: Vec<Vec<u8>>,
}

/// The backends that read anything else than before.
fn concerned(before: &BTreeMap<String, Module>, after: &BTreeMap<String, Module>) -> Vec<String> {
    let same = |old: &Module, new: &Module| old.shard == new.shard && old.files == new.files;
    let runs = |(label, module): &(&String, &Module)| before.get(*label).is_none_or(|old| !same(old, module));
    after.iter().filter(runs).map(|(label, _)| format!("opt {label}")).collect()
}

/// An edit runs the backends that it concerns, then nothing is left to do.
fn edit_runs(link: &Link, name: &str, from: &str, to: &str, says: &str, backends: usize) -> Result<()> {
    let before = link.modules()?;
    link.edit(name, from, to)?;
    let ran: Vec<_> = link.ninja()?.into_iter().filter(|step| step.starts_with("opt ")).collect();
    let expected = concerned(&before, &link.modules()?);
    ensure!(ran == expected, "{name}: ran {ran:?}, concerned {expected:?}");
    ensure!(ran.len() == backends, "{name}: the edit is not the one meant: {ran:?}");
    ensure!(link.says()? == says, "{name}: {}", link.says()?);
    nothing_to_do(link)
}

fn nothing_to_do(link: &Link) -> Result<()> {
    let ran = link.ninja()?;
    ensure!(ran.is_empty(), "nothing has changed, yet {ran:?}");
    Ok(())
}

fn write_ninja_file(link: &Link) -> Result<()> {
    link.distlto("distlto-plan", &["program.distlto", "--ninja", "link.ninja"], false)
}

#[test]
fn ninja_builds_from_an_index_directory_and_again_what_an_edit_concerns() -> Result<()> {
    let link = Link::create("index")?;
    link.distlto("distlto-index", &[], true)?;
    ensure!(!Path::new(&link.folder.path).join("program").exists(), "the thin link alone makes no program");
    write_ninja_file(&link)?;
    let ran = link.ninja()?;
    let expected = [
        "link program",
        "opt far $way's: 1.o",
        "opt lib.a(member.o)",
        "opt libthin.a(helper.o)",
        "opt main.o",
        "opt near.o",
        "thin link program",
    ];
    ensure!(ran == expected, "{ran:?}");
    ensure!(link.says()? == "85\n", "{}", link.says()?);
    nothing_to_do(&link)?;

    edit_runs(&link, "far $way's: 1", "n + 1", "n + 2", "86\n", 1)?;
    edit_runs(&link, "near", "n * 2", "n * 3", "87\n", 2)?;
    // A member of a thin archive is a file that nobody archives again.
    edit_runs(&link, "helper", "n + 5", "n + 6", "97\n", 3)?;
    // The set of imports changes, and with it the build file, before anything is compiled. `near` is dead then.
    edit_runs(&link, "main", "near(1) + far(2)", "far(2)", "94\n", 2)?;
    Ok(())
}

/// A link leaves a record in the same directory, and the graph stays what it was.
#[test]
fn a_link_beside_it_changes_nothing() -> Result<()> {
    let link = Link::create("link")?;
    link.distlto("distlto-index", &[], true)?;
    write_ninja_file(&link)?;
    link.ninja()?;
    link.distlto("distlto", &["link"], true)?;
    ensure!(link.says()? == "85\n", "{}", link.says()?);
    link.ninja()?;
    nothing_to_do(&link)?;
    edit_runs(&link, "near", "n * 2", "n * 3", "86\n", 2)
}
