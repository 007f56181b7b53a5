//! The ways of linking that `bench link` compares, as commands.

use std::process::Command;

use anyhow::Result;

use crate::bench::program::Program;
use crate::shell;
use std::path::Path;

/// A way of linking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The linker alone.
    InProcess,
    /// The linker with its own cache.
    Cached,
    /// `distlto link`.
    Distlto,
    /// The linker's DTLTO with our distributor.
    Distribute,
}

/// All of them; the first is what the others are compared with.
pub const COLD: [Way; 4] = [Way::InProcess, Way::Cached, Way::Distlto, Way::Distribute];

impl Way {
    /// Those that keep something for the next link.
    pub const KEEPING: [Self; 2] = [Self::Cached, Self::Distlto];

    /// What a link from nothing is called.
    pub fn cold_name(self) -> &'static str {
        match self {
            Self::InProcess => "lld in process: cold",
            Self::Cached => "lld with its cache: cold",
            Self::Distlto => "distlto link: cold",
            Self::Distribute => "lld with distlto-distribute: cold",
        }
    }

    /// What a later link is called.
    pub fn step_name(self, step: &'static str) -> &'static str {
        let ours = self == Self::Distlto;
        match step {
            "no-op" if ours => "distlto link: no-op",
            "no-op" => "lld with its cache: no-op",
            "one leaf edit" if ours => "distlto link: one leaf edit",
            "one leaf edit" => "lld with its cache: one leaf edit",
            _ if ours => "distlto link: one widely imported file",
            _ => "lld with its cache: one widely imported file",
        }
    }

    fn output(self) -> &'static str {
        match self {
            Self::InProcess => "bench-plain",
            Self::Cached => "bench-cached",
            Self::Distlto => "bench-distlto",
            Self::Distribute => "bench-distribute",
        }
    }
}

/// The ways of one program.
pub struct Ways<'a> {
    program: Program,
    distlto: &'a Path,
    jobs: usize,
}

/// Where the linker's cache is, in the program's directory.
const CACHE: &str = "bench-cache";

impl<'a> Ways<'a> {
    /// With so many jobs at a time.
    pub fn new(program: &Program, distlto: &'a Path, jobs: usize) -> Self {
        Self { program: program.clone(), distlto, jobs }
    }

    /// Removes what a way has kept.
    pub fn forget(&self, way: Way) -> Result<()> {
        self.program.remove(way.output())?;
        if way == Way::Cached { shell::remove(&self.program.dir.join(CACHE)) } else { Ok(()) }
    }

    /// The link.
    pub fn command(&self, way: Way) -> Command {
        let mut linker = self.program.link(&self.program.words[0], way.output());
        let own_jobs = format!("-Wl,--thinlto-jobs={}", self.jobs);
        match way {
            Way::InProcess => drop(linker.arg(own_jobs)),
            Way::Cached => drop(linker.args([&own_jobs, &format!("-Wl,--thinlto-cache-dir={CACHE}")])),
            Way::Distribute => {
                let distributor = self.distlto.with_file_name("distlto-distribute");
                linker.arg(format!("-fthinlto-distributor={}", distributor.display()));
                linker.arg(format!("-Xthinlto-distributor=-j{}", self.jobs));
            }
            Way::Distlto => {
                linker = Command::new(self.distlto);
                linker.args(["link", "-j", &self.jobs.to_string(), "--"]).args(&self.program.words);
                linker.args(["-o", way.output()]).current_dir(&self.program.dir);
            }
        }
        linker
    }
}
