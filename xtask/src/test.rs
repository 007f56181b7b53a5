//! `cargo xtask test`: everything CI runs, in the order in which mistakes are found soonest.
//!
//! All test programs are built first, then their tests run side by side ([`jobs`]). What many of them need is built once
//! and named by the environment.

mod jobs;
mod programs;

use std::path::Path;
use std::time::Instant;
use std::{env, thread};

use anyhow::Result;
use jobs::Job;

use crate::shell::{cargo, run, target};
use crate::{setup, tidy};

/// The older LLVM that CI tests with, beside the newest.
const OLDER: u32 = 16;
/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// Runs the checks; with a version only the cases, with a filter only tests whose name holds it. Returns whether all is well.
pub fn test(llvm: Option<u32>, release: bool, filter: Option<&str>) -> Result<bool> {
    let start = Instant::now();
    // The crates' own tests read what five versions write.
    setup::setup(&[setup::SUPPORTED.as_slice(), llvm.as_slice()].concat())?;
    if llvm.is_none() && filter.is_none() {
        run(cargo().args(["fmt", "--all", "--check"]))?;
        tidy::tidy()?;
        run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    }
    let programs = programs::build(release)?;
    println!("built after {:.0} s; {}", start.elapsed().as_secs_f64(), free());
    let mut jobs = Vec::new();
    for program in programs.iter().filter(|program| program.are_cases() || llvm.is_none()) {
        let versions: &[u32] = match (program.are_cases(), llvm) {
            (true, Some(version)) => &[version],
            (true, None) if filter.is_none() => &[setup::NEWEST, OLDER],
            _ => &[setup::NEWEST],
        };
        for &version in versions {
            let of_version = program.jobs(version, filter)?;
            jobs.extend(
                of_version.into_iter().filter(|job| llvm.is_some() || filter.is_some() || !is_long(job)),
            );
        }
    }
    let (alone, together): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(needs_the_machine);
    let mut outcome = jobs::run(together, slots())?;
    outcome.add(jobs::run(alone, 1)?);
    println!("\nthe slowest tests:");
    for (name, took) in outcome.slowest(SLOWEST) {
        println!("{:>7.1} s  {name}", took.as_secs_f64());
    }
    for name in &outcome.failed {
        println!("failed: {name}");
    }
    let word = if outcome.failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s",
        outcome.passed.len(),
        outcome.failed.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(outcome.failed.is_empty())
}

/// Whether a job has to run by itself: links that share a machine's memory go by what is available, which other tests change.
fn needs_the_machine(job: &Job) -> bool {
    job.tests.iter().any(|test| test.starts_with("ledger::"))
}

/// Whether a job is left to `--llvm`: what the older LLVM makes of programs of other people differs in nothing that the small
/// cases do not have, and libgit2 is compared by `cargo xtask compare` too.
fn is_long(job: &Job) -> bool {
    let long = if job.llvm == OLDER { "third-party/" } else { "third-party/libgit2" };
    job.program.are_cases() && job.tests.iter().any(|test| test.starts_with(long))
}

/// How many tests run at once: some wait for servers, timers and processes that they have stopped.
fn slots() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// What is free where tests write: a full disk has tests fail that say nothing of it.
fn free() -> String {
    let free = |folder: &Path| match rustix::fs::statvfs(folder) {
        Ok(disk) => format!("{} MiB in {}", (disk.f_bavail * disk.f_frsize) >> 20, folder.display()),
        Err(error) => format!("{} is not known: {error}", folder.display()),
    };
    format!("free: {}, {}", free(&target()), free(&env::temp_dir()))
}
