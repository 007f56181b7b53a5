//! The ways of linking one command, as data: lld in process, lld's DTLTO with the simplest distributor and with ours, and
//! `distlto link`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::line;
use super::model::Program;
use super::workspace::Workspace;
use crate::toolchain::Toolchain;
use crate::{distlto, toolchain};

/// A way of linking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// What tables call it.
    pub name: &'static str,
    /// The directory that holds what it makes.
    pub dir: &'static str,
    /// Who links.
    pub by: By,
    /// Whether one lld links, so that its program is byte for byte what stock tools make of the same objects.
    pub exact: bool,
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
    /// `distlto link` with these options.
    Distlto(&'static [&'static str]),
}

/// lld in process names a member by its archive and its place there, so one that is loaded twice (`-z muldefs`, an archive
/// given twice, once whole) has a name that is taken; with DTLTO it is a file of its own each time, but for an object in two
/// thin archives: such a program lld cannot link at all.
pub const COLLISION: &str = "Expected at most one ThinLTO module per bitcode file";

/// The linker does everything: the oracle of how programs behave.
pub const IN_PROCESS: Way =
    Way { name: "lld in process", dir: "by-lld", by: By::Lld, exact: false, keeps: false, refusals: &[] };

/// lld's DTLTO: the oracle of a program's bytes.
pub const DTLTO: Way = Way {
    name: "lld's DTLTO",
    dir: "by-dtlto",
    by: By::Distributor,
    exact: true,
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
    by: By::Distlto(&[]),
    exact: true,
    keeps: true,
    // The linker's own.
    refusals: &[COLLISION],
};

/// A thin link and a final link.
pub const TWO_STEP: Way = Way {
    name: "distlto, two steps",
    dir: "by-steps",
    by: By::Distlto(&["--two-step"]),
    exact: false,
    keeps: true,
    refusals: &[],
};

/// The first LLVM whose lld can be made to ask for its objects.
const ASKS: u32 = 15;

/// The ways whose programs are compared with those of lld in process, as far as an LLVM has them.
pub fn compared(toolchain: Toolchain) -> &'static [Way] {
    if toolchain.has_dtlto() { &[DTLTO, DISTRIBUTE, SERVED, TWO_STEP] } else { own(toolchain) }
}

/// Whether an LLVM's lld can be made to ask for its objects.
pub fn asks(toolchain: Toolchain) -> bool {
    toolchain.version >= ASKS
}

/// Those of distlto's own.
pub fn own(toolchain: Toolchain) -> &'static [Way] {
    if asks(toolchain) { &[SERVED, TWO_STEP] } else { &[TWO_STEP] }
}

impl Way {
    /// The command that links a program with this way, ready to run.
    pub fn command(self, program: &Program, workspace: &Workspace, more: &[&str]) -> Result<Command> {
        fs::create_dir_all(workspace.path.join(self.dir))?;
        let driver = workspace.toolchain.tool("clang")?;
        let mut command = match self.by {
            By::Lld | By::Distributor | By::Distribute => Command::new(&driver),
            By::Distlto(options) => {
                let mut command = Command::new(distlto::binary()?);
                command.arg("link").args(options).args(more).arg("--").arg(&driver);
                command
            }
        };
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
        command.args(line::words(program, self.dir)).current_dir(&workspace.path);
        for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
            command.env_remove(name);
        }
        Ok(command)
    }
}
