//! The ways of linking one command, as data: lld in process, lld's DTLTO with the simplest distributor and with ours,
//! `distlto link`, and the actions of a graph.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use distlto_record::run::{self, RunRecord};

use super::line;
use super::model::Program;
use super::workspace::Workspace;
use crate::toolchain::{Toolchain, system_tool};
use crate::{distlto, store, toolchain};

/// A way of linking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// What tables call it.
    pub name: &'static str,
    /// The directory that holds what it makes.
    pub dir: &'static str,
    /// Who links.
    pub by: By,
    /// Whether `--json` says what ran, and only what changed runs.
    pub keeps: bool,
    /// What it says of links that it is known not to do.
    pub refusals: &'static [&'static str],
}

/// Who links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// lld alone.
    Lld,
    /// lld and a distributor that runs one job after the other.
    Distributor,
    /// lld and `distlto-distribute`.
    Distribute,
    /// `distlto link`.
    Distlto,
    /// The actions of a graph.
    Graph(Runner),
}

/// Who runs a graph's actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// `distlto run`.
    Run,
    /// Ninja.
    Ninja,
}

/// lld in process names a member by its archive and its place there, so one that is loaded twice (`-z muldefs`, an archive
/// given twice, once whole) has a name that is taken; with DTLTO it is a file of its own each time, but for an object in two
/// thin archives: such a program lld cannot link at all.
pub const COLLISION: &str = "Expected at most one ThinLTO module per bitcode file";

/// The linker does everything: the oracle of how programs behave.
pub const IN_PROCESS: Way =
    Way { name: "lld in process", dir: "by-lld", by: By::Lld, keeps: false, refusals: &[] };

/// Has lld call promoted locals after their sources, as `distlto link` does: the oracle of its programs' bytes.
pub const BY_SOURCE: &str = "-Wl,-mllvm,-use-source-filename-for-promoted-locals";
/// Has `distlto link` call them as lld does by default.
pub const EXACT: &str = "--exact-names";

/// lld's DTLTO: the oracle of a program's bytes.
pub const DTLTO: Way = Way {
    name: "lld's DTLTO",
    dir: "by-dtlto",
    by: By::Distributor,
    keeps: false,
    // It calls a member of a thin archive by the object's path, and two archives may hold one object.
    refusals: &[COLLISION],
};

/// The same with `distlto-distribute`.
pub const DISTRIBUTE: Way =
    Way { name: "distlto-distribute", dir: "by-distribute", by: By::Distribute, ..DTLTO };

/// `distlto link`: the linker's own link, whose objects are those that we give it.
pub const SERVED: Way = Way {
    name: "distlto, served",
    dir: "by-distlto",
    by: By::Distlto,
    keeps: true,
    // The linker's own.
    refusals: &[COLLISION],
};

/// A graph that distlto runs itself.
pub const GRAPH: Way = Way {
    name: "graph, distlto run",
    dir: "by-graph",
    by: By::Graph(Runner::Run),
    keeps: false,
    // A link that is left to the linker has no graph.
    refusals: &[COLLISION, "is not asked for its modules"],
};

/// A graph that Ninja runs.
pub const NINJA: Way = Way { name: "graph, Ninja", by: By::Graph(Runner::Ninja), ..GRAPH };

/// The first LLVM whose lld can be made to ask for its objects.
const ASKS: u32 = 15;

/// The ways whose programs are compared with those of lld in process, as far as an LLVM has them. Graphs are run by one or another.
pub fn compared(toolchain: Toolchain, seed: u64) -> Vec<Way> {
    let graph = [GRAPH, NINJA][(seed % 2) as usize];
    let stock: &[Way] = if toolchain.has_dtlto() { &[DTLTO, DISTRIBUTE] } else { &[] };
    [stock, &[SERVED, graph]].concat()
}

/// The option for a driver by which lld alone makes the program that the last served link has left here. That link may have
/// found sources that LLVM spells alike.
pub fn names_of_served(output: &Path) -> Result<&'static [&'static str]> {
    let record = last_record(output)?;
    Ok(if record.is_some_and(|record| record.stable_names) { &[BY_SOURCE] } else { &[] })
}

/// The record of the last served link of an output. A link that is left to the linker has none.
pub fn last_record(output: &Path) -> Result<Option<RunRecord>> {
    let last = run::list(&distlto::state_dir(output)?)?.pop();
    Ok(last.map(|record| run::read(&record)).transpose()?)
}

/// Whether an LLVM's lld can be made to ask for its objects.
pub fn asks(toolchain: Toolchain) -> bool {
    toolchain.version >= ASKS
}

impl Way {
    /// The commands that link a program with this way and more options, ready to run one after the other.
    pub fn commands(self, program: &Program, workspace: &Workspace, more: &[&str]) -> Result<Vec<Command>> {
        fs::create_dir_all(workspace.path.join(self.dir))?;
        let driver = workspace.toolchain.tool("clang")?;
        let mut command = match self.by {
            By::Lld | By::Distributor | By::Distribute => Command::new(&driver),
            By::Distlto | By::Graph(_) => Command::new(distlto::binary()?),
        };
        let graph = format!("{}/graph", self.dir);
        match self.by {
            By::Distlto => {
                command.arg("link").args(more).arg("--").arg(&driver);
            }
            By::Graph(_) => {
                command.args(["index", "--index", &graph]).args(more).arg("--").arg(&driver);
            }
            _ => {}
        }
        if self.by == By::Distributor {
            let helper = toolchain::helper("distlto-test-distributor")?;
            let helper = helper.to_str().context("the target directory's name is UTF-8")?;
            command.arg(format!("-fthinlto-distributor={helper}"));
            command.arg(format!("-Xthinlto-distributor={}/kept", self.dir));
        }
        if self.by == By::Distribute {
            let distributor =
                distlto::distributor()?.to_str().context("the target directory's name is UTF-8")?;
            command.arg(format!("-fthinlto-distributor={distributor}"));
        }
        if matches!(self.by, By::Distributor | By::Distribute) {
            command.args(line::left_out(program));
        }
        command.args(line::words(program, self.dir));
        if self.by == By::Lld {
            command.args(more);
        }
        let mut commands = vec![command];
        if let By::Graph(runner) = self.by {
            commands.extend(runner.commands(&graph)?);
        }
        for command in &mut commands {
            command.current_dir(&workspace.path).env("PATH", distlto::search_path()?);
            for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
                command.env_remove(name);
            }
            store::give(command);
        }
        Ok(commands)
    }

    /// The command of a way that has one.
    pub fn command(self, program: &Program, workspace: &Workspace, more: &[&str]) -> Result<Command> {
        let mut commands = self.commands(program, workspace, more)?;
        ensure!(commands.len() == 1, "{} has several commands", self.name);
        Ok(commands.remove(0))
    }
}

impl Runner {
    /// The commands that run the actions of an index directory.
    fn commands(self, index: &str) -> Result<Vec<Command>> {
        let command = |program: PathBuf, words: &[&str]| {
            let mut command = Command::new(program);
            command.args(words);
            command
        };
        let distlto = |words: &[&str]| Ok::<_, anyhow::Error>(command(distlto::binary()?.to_owned(), words));
        match self {
            Self::Run => Ok(vec![distlto(&["run", index])?]),
            Self::Ninja => {
                let file = format!("{index}/link.ninja");
                let build = command(system_tool("ninja")?, &["-f", &file]);
                Ok(vec![distlto(&["plan", index, "--ninja", &file])?, build])
            }
        }
    }
}
