//! `cargo xtask bench executor`: how well the executor uses a machine.
//!
//! The makespan of a link's backends against its lower bound, against command-line order and against ninja; early launch. Ratios are those of one run each, medians are shown.

mod early;
mod makespan;
mod spans;

use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use super::machine;
use super::program::{self, Program};
use crate::linked::with_store;
use crate::{setup, shell};

/// What is measured with.
struct Tools {
    distlto: PathBuf,
    jobs: usize,
}

impl Tools {
    /// A name for an output that no earlier run has used: a file system may take its time with new files where many were
    /// deleted a moment ago.
    fn fresh(&self, way: &str, run: usize) -> String {
        format!("by-{way}-{}-{run}", std::process::id())
    }

    /// `distlto link` of a program, with options.
    fn link(&self, program: &Program, output: &str, options: &[&str]) -> Command {
        let mut command = Command::new(&self.distlto);
        command.args(["link", "-j", &self.jobs.to_string()]).args(options).arg("--").args(&program.words);
        command.args(["-o", output]).current_dir(&program.dir);
        with_store(&mut command, &program.state(output));
        command
    }
}

/// Measures `runs` times and prints the tables.
pub fn executor(runs: usize, jobs: Option<usize>) -> Result<()> {
    setup::programs()?;
    let runs = runs.max(1);
    let jobs = jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let tools = Tools { distlto: shell::distlto()?, jobs };
    let (libgit2, small) = (program::libgit2()?, program::small(400)?);
    println!("the executor, {jobs} jobs, medians of {runs} runs, {}", machine());
    makespan::makespan(&libgit2, &tools, runs)?;
    for program in [&libgit2, &small] {
        early::early(program, &tools, runs)?;
    }
    Ok(())
}
