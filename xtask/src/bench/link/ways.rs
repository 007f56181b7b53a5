//! The ways of linking that `bench link` compares, as commands.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::bench::program::Program;
use crate::linked::with_store;
use crate::shell;

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
    /// The linker's DTLTO until it hands over, which is the least that any distributor makes of it: this one fails at once.
    HandOver,
}

/// What has happened since the link before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// An edit of a module that none imports from.
    Leaf,
    /// An edit of one that many import from.
    Wide,
}

/// Those of a link from nothing; the first is what the others are compared with.
pub const COLD: [Way; 4] = [Way::InProcess, Way::Cached, Way::Distlto, Way::Distribute];

impl Way {
    /// Those that are measured after edits: two that keep something for the next link, and what the linker itself takes.
    pub const AGAIN: [Self; 3] = [Self::Cached, Self::Distlto, Self::HandOver];

    /// What a link from nothing is called.
    pub fn cold_name(self) -> &'static str {
        match self {
            Self::InProcess => "lld in process: cold",
            Self::Cached => "lld with its cache: cold",
            Self::Distlto => "distlto link: cold",
            Self::Distribute => "lld with distlto-distribute: cold",
            Self::HandOver => "lld's DTLTO until it hands over: cold",
        }
    }

    /// What a later link is called.
    pub fn step_name(self, step: Step) -> &'static str {
        match (self, step) {
            (Self::Distlto, Step::Nothing) => "distlto link: no-op",
            (Self::Distlto, Step::Leaf) => "distlto link: one leaf edit",
            (Self::Distlto, Step::Wide) => "distlto link: one widely imported file",
            (Self::HandOver, Step::Nothing) => "lld's DTLTO until it hands over: no-op",
            (Self::HandOver, Step::Leaf) => "lld's DTLTO until it hands over: one leaf edit",
            (Self::HandOver, Step::Wide) => "lld's DTLTO until it hands over: one widely imported file",
            (_, Step::Nothing) => "lld with its cache: no-op",
            (_, Step::Leaf) => "lld with its cache: one leaf edit",
            (_, Step::Wide) => "lld with its cache: one widely imported file",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::InProcess => "plain",
            Self::Cached => "cached",
            Self::Distlto => "distlto",
            Self::Distribute => "distribute",
            Self::HandOver => "hand-over",
        }
    }
}

/// The ways of one program.
pub struct Ways<'a> {
    program: Program,
    distlto: &'a Path,
    jobs: usize,
    /// How often links have begun from nothing.
    round: Cell<usize>,
}

/// What the names of all files of these links begin with.
const PREFIX: &str = "bench-";

impl<'a> Ways<'a> {
    /// With so many jobs at a time. What a bench left that was killed is removed.
    pub fn new(program: &Program, distlto: &'a Path, jobs: usize) -> Result<Self> {
        let ways = Self { program: program.clone(), distlto, jobs, round: Cell::new(0) };
        ways.remove()?;
        Ok(ways)
    }

    /// Removes what all the links have left.
    pub fn remove(&self) -> Result<()> {
        for entry in fs::read_dir(&self.program.dir)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                shell::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// From here on no way has anything from before, since all names are new. Nothing is removed while something is
    /// measured: for minutes ext4 looks through deleted files for each new one, with which links that make files would be
    /// charged.
    pub fn begin_from_nothing(&self) {
        self.round.set(self.round.get() + 1);
    }

    fn name(&self, word: &str) -> String {
        format!("{PREFIX}{word}-{}", self.round.get())
    }

    /// The link.
    pub fn command(&self, way: Way) -> Command {
        let output = self.name(way.word());
        let mut linker = self.program.link(&self.program.words[0], &output);
        let own_jobs = format!("-Wl,--thinlto-jobs={}", self.jobs);
        match way {
            Way::InProcess => drop(linker.arg(own_jobs)),
            Way::Cached => {
                linker.args([own_jobs, format!("-Wl,--thinlto-cache-dir={}", self.name("cache"))]);
            }
            Way::Distribute => {
                let distributor = self.distlto.with_file_name("distlto-distribute");
                linker.arg(format!("-fthinlto-distributor={}", distributor.display()));
                linker.arg(format!("-Xthinlto-distributor=-j{}", self.jobs));
            }
            Way::HandOver => {
                linker.arg("-fthinlto-distributor=/bin/false");
                let link = linker;
                linker = Command::new("sh");
                linker.args(["-c", "! \"$@\" 2>&1", "sh"]).arg(link.get_program()).args(link.get_args());
                linker.current_dir(&self.program.dir).stdout(Stdio::null());
            }
            Way::Distlto => {
                linker = Command::new(self.distlto);
                linker.args(["link", "-j", &self.jobs.to_string(), "--"]).args(&self.program.words);
                linker.args(["-o", &output]).current_dir(&self.program.dir);
                with_store(&mut linker, &self.program.state(&output));
            }
        }
        linker
    }
}
