//! A small real link to test on: two modules, compiled and thin-linked by real tools in a temporary directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::run::{NoHooks, RunOptions};
use distlto_planner::graph::{Action, ActionGraph, ActionId, BackendWork, Decided, Work};
use distlto_record::progress::Silent;
use distlto_record::report::{Outcome, Report};

/// The versions that silent failures are tried with.
pub const VERSIONS: [u32; 2] = [22, 14];

const MAIN: &str = "int b1(int); int b2(int); int first(int x) { return b1(x) + b2(x); } int main(void) { return first(3); }";
const OTHER: &str = "int b1(int x) { return x * 7; } int b2(int x) { return x + 9; }";

/// A directory with `a.o` (which imports from `b.o`), `b.o` and their shards.
pub struct Link {
    pub place: tempfile::TempDir,
    pub clang: String,
}

impl Link {
    /// Compiled and thin-linked with LLVM `version`.
    pub fn new(version: u32) -> Self {
        let link = Self { place: tempfile::tempdir().unwrap(), clang: format!("clang-{version}") };
        link.write("a.c", MAIN);
        link.write("b.c", OTHER);
        for name in ["a", "b"] {
            link.tool(&[
                &link.clang,
                "-O2",
                "-flto=thin",
                "-c",
                &format!("{name}.c"),
                "-o",
                &format!("{name}.o"),
            ]);
        }
        link.thin_link(version, &["a.o", "b.o"]);
        link
    }

    pub fn thin_link(&self, version: u32, objects: &[&str]) {
        let linker = format!("ld.lld-{version}");
        let mut words = vec![linker.as_str(), "--thinlto-index-only", "-e", "main", "-o", "program"];
        words.extend(objects);
        self.tool(&words);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Runs a tool in the directory; it must succeed.
    pub fn tool(&self, words: &[&str]) {
        let status = Command::new(words[0]).args(&words[1..]).current_dir(self.place.path()).status();
        let remedy = "apt-get install clang-22 lld-22 llvm-22 clang-14 lld-14";
        let status = status.unwrap_or_else(|error| panic!("{}: {error}; {remedy}", words[0]));
        assert!(status.success(), "{words:?}");
    }

    /// Runs `distlto-opt` in the directory.
    pub fn distlto_opt(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_distlto-opt"));
        command.args(words).current_dir(self.place.path()).output().unwrap()
    }

    /// A script in place of the compiler. `$out` is the file after `-o`.
    pub fn compiler(&self, body: &str) -> String {
        let head = "#!/bin/sh\nout=; last=; for word; do [ \"$last\" = -o ] && out=$word; last=$word; done\n";
        // Written by another process: a file that this one has open for writing while a third thread forks
        // cannot be executed ("text file busy").
        self.write("compiler.in", format!("{head}{body}\n"));
        self.tool(&["install", "-m", "755", "compiler.in", "compiler"]);
        self.path("compiler").to_str().unwrap().to_owned()
    }

    /// A graph with one backend compilation of each module, by `compiler`.
    pub fn graph(&self, compiler: &str, modules: &[&str]) -> (ActionGraph, Vec<ActionId>) {
        let mut graph = ActionGraph::new();
        let ids = modules.iter().map(|module| add_opt(&mut graph, compiler, module)).collect();
        (graph, ids)
    }

    /// Runs one backend compilation of module `a.o` to `out/a.o`.
    pub fn opt(&self, compiler: &str) -> Report {
        self.opt_of(compiler, "a.o")
    }

    pub fn opt_of(&self, compiler: &str, module: &str) -> Report {
        let cancel = Cancel::new().unwrap();
        let (graph, wanted) = self.graph(compiler, &[module]);
        distlto_executor::run::run(&graph, &wanted, &self.options(&cancel), &NoHooks)
    }

    pub fn options<'a>(&'a self, cancel: &'a Cancel) -> RunOptions<'a> {
        RunOptions { directory: Some(self.place.path()), jobs: 2, ..RunOptions::new(&PLAIN, cancel, &Silent) }
    }

    /// Names of all files below the directory that begin as our temporaries do.
    pub fn temporaries(&self) -> Vec<PathBuf> {
        temporaries(self.place.path())
    }
}

pub fn add_opt(graph: &mut ActionGraph, compiler: &str, module: &str) -> ActionId {
    add_opt_with(graph, compiler, module, &format!("{module}.thinlto.bc"))
}

/// One with the shard at a path.
pub fn add_opt_with(graph: &mut ActionGraph, compiler: &str, module: &str, shard: &str) -> ActionId {
    let output = format!("out/{module}");
    let prefix = Some(graph.prefix([compiler, "-c", "-O2", "-fPIC"].map(str::to_owned).to_vec()));
    let args = [module, &format!("-fthinlto-index={shard}"), "-o", &output].map(str::to_owned).to_vec();
    let work = Work::Backend(BackendWork {
        module: graph.file(module),
        shard: graph.file(shard),
        imports: Vec::new(),
        extra: Vec::new(),
        object: graph.file(&output),
        dwo: None,
        also: Vec::new(),
        decided: Decided::default(),
    });
    graph.add(Action { work, label: module.to_owned(), prefix, args, cost: 1 })
}

pub fn temporaries(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".distlto-tmp-") {
            found.push(entry.path());
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(temporaries(&entry.path()));
        }
    }
    found
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that a program succeeded and had nothing to say.
#[track_caller]
pub fn good(output: &Output) {
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(output));
}

/// The text of the only failure.
pub fn cause(report: &Report) -> String {
    let failures: Vec<_> = report.failures().collect();
    assert_eq!(failures.len(), 1, "{report:?}");
    failures[0].1.cause.to_string()
}

pub fn is_done(report: &Report) -> bool {
    report.outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Done(_)))
}
