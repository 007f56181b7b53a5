//! `cargo xtask bench remote`: links with an engine of the Remote Execution API on the same machine.
//!
//! What an engine costs beside local links, what goes over the network, what the client itself takes, ten thousand results
//! from an action cache, slots of both kinds together, a slow worker, and what the simulation of `bench farm` says of it. Engine,
//! workers and client share the processors, so that ratios of walls say less than those of bytes and processor time. The
//! least of all runs is shown: what is added to it, others of the machine added.

mod cached;
pub mod ran;
pub mod server;
mod slots;
mod transfers;
mod walls;

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;

use super::link::Name;
use super::link::subject::Subject;
use super::machine;
use super::measure::{Cost, measure};
use super::program::Program;
use crate::linked::with_store;
use crate::{setup, shell};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Wall and processor time on buildbox-casd against local links.
    Walls,
    /// Bytes, calls, processor time and memory of the client.
    Transfers,
    /// Many results from an action cache.
    Cached,
    /// Slots of both kinds together, a slow worker, and the simulation of both.
    Slots,
}

/// What to measure.
pub struct Request {
    /// Which program.
    pub program: Name,
    /// Which parts.
    pub parts: Vec<Part>,
    /// How often.
    pub runs: usize,
    /// Modules of the program whose results are all cached.
    pub modules: usize,
    /// Jobs at a time on this machine.
    pub jobs: usize,
}

/// Measures and prints.
pub fn remote(request: &Request) -> Result<()> {
    setup::programs()?;
    let distlto = shell::distlto()?;
    println!("an engine on this machine, the least of {} runs, {}", request.runs, machine());
    let has = |part| request.parts.contains(&part);
    if has(Part::Walls) || has(Part::Transfers) || has(Part::Slots) {
        let program = Subject::new(request.program)?.program;
        let bench = Bench { distlto: &distlto, program: &program, jobs: request.jobs, runs: request.runs };
        if has(Part::Walls) {
            walls::walls(&bench)?;
        }
        if has(Part::Transfers) {
            transfers::transfers(&bench)?;
        }
        if has(Part::Slots) {
            slots::slots(&bench)?;
        }
    }
    if has(Part::Cached) {
        let program = super::program::small(request.modules)?;
        cached::cached(&Bench {
            distlto: &distlto,
            program: &program,
            jobs: request.jobs,
            runs: request.runs,
        })?;
    }
    Ok(())
}

/// A program, and what links it.
struct Bench<'a> {
    distlto: &'a Path,
    program: &'a Program,
    jobs: usize,
    runs: usize,
}

impl Bench<'_> {
    /// `distlto link` from nothing, with options.
    fn link(&self, output: &str, options: &[&str]) -> Result<Command> {
        self.program.remove(output)?;
        Ok(self.again(output, options))
    }

    /// The same with what an earlier link left.
    fn again(&self, output: &str, options: &[&str]) -> Command {
        let mut command = Command::new(self.distlto);
        command.arg("link").args(options).arg("--").args(&self.program.words);
        command.args(["-o", output]).current_dir(&self.program.dir);
        with_store(&mut command, &self.program.state(output));
        command
    }

    /// The least of all runs of a command that is made anew for each.
    fn least(&self, make: impl Fn() -> Result<Command>) -> Result<Cost> {
        let mut least: Option<Cost> = None;
        for _ in 0..self.runs.max(1) {
            let cost = measure(&mut make()?)?;
            least = Some(least.map_or(cost, |known| Cost {
                wall: known.wall.min(cost.wall),
                cpu: known.cpu.min(cost.cpu),
                memory: known.memory.min(cost.memory),
            }));
        }
        Ok(least.unwrap_or_default())
    }

    /// The linker with its own cache, which has everything: what reading, the thin link and the final link take.
    fn linker(&self) -> Result<Cost> {
        let cache = self.program.dir.join("remote-lld-cache");
        shell::remove(&cache)?;
        let make = || {
            let mut link = self.program.link(&self.program.words[0], "remote-lld");
            link.arg("-Wl,--thinlto-cache-dir=remote-lld-cache")
                .arg(format!("-Wl,--thinlto-jobs={}", self.jobs));
            Ok(link)
        };
        measure(&mut make()?)?;
        self.least(make)
    }
}

/// A line of what was found: what it is, the figure, what is aimed at.
fn tell(what: &str, figure: impl std::fmt::Display, aim: &str) {
    let aim = if aim.is_empty() { String::new() } else { format!("   (aim {aim})") };
    println!("{what:68} {figure}{aim}");
}
