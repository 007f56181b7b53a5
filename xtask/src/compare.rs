//! `cargo xtask compare`: whether `distlto link` makes the program that lld's own DTLTO makes.
//!
//! The oracle is lld with a distributor that does nothing but run the jobs. Both link under one name, which stands in
//! what is derived from it. Knows nothing of what the programs are.

pub mod engine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::bench::program::Program;
use crate::bench::{buck2, program};
use crate::projects::{self, bench_directory};
use crate::{setup, shell};

const LINKED: &str = "compared";
const BY_LLD: &str = "compared-by-lld";

/// Compares the programs of these projects.
pub fn run(names: &[projects::Name], jobs: usize) -> Result<()> {
    setup::programs()?;
    let distlto = shell::distlto()?;
    let dir = bench_directory();
    for name in names {
        compare(&program::of_project(&name.open(&dir)?)?, &distlto, jobs)?;
    }
    Ok(())
}

/// Links a program both ways and prints that the files are identical; an error says where they differ. Returns the path of
/// the program.
pub fn compare(program: &Program, distlto: &Path, jobs: usize) -> Result<PathBuf> {
    program.remove(LINKED)?;
    let mut by_lld = program.link(&program.words[0], LINKED);
    by_lld.arg(format!("-fthinlto-distributor={}", buck2::floor()?.display()));
    by_lld.arg(format!("-Xthinlto-distributor=distribute,{jobs}"));
    shell::quietly(&mut by_lld)?;
    fs::rename(program.dir.join(LINKED), program.dir.join(BY_LLD))?;
    let mut ours = Command::new(distlto);
    ours.args(["link", "--quiet", "-j", &jobs.to_string(), "--"]).args(&program.words);
    shell::quietly(ours.args(["-o", LINKED]).current_dir(&program.dir))?;
    let linked = program.dir.join(LINKED);
    let (ours, theirs) = (fs::read(&linked)?, fs::read(program.dir.join(BY_LLD))?);
    let differing = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    match differing.or((ours.len() != theirs.len()).then_some(ours.len().min(theirs.len()))) {
        None => println!("{}: identical to lld's DTLTO, {} bytes", program.name, ours.len()),
        Some(at) => bail!(
            "{}: {} and {BY_LLD} differ first at byte {at} (of {} and {})",
            program.name,
            linked.display(),
            ours.len(),
            theirs.len()
        ),
    }
    Ok(linked)
}
