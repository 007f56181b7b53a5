//! `cargo xtask compare`: whether `distlto link` makes the program and the objects that lld makes in process.
//!
//! Both link under one name, which stands in what is derived from it. Knows nothing of what the programs are.

pub mod engine;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::bench::program::{self, Program};
use crate::linked;
use crate::projects::{self, bench_directory};
use crate::{setup, shell};

/// Names of locals as `distlto link` has them.
const BY_SOURCE: &str = "-Wl,-mllvm,-use-source-filename-for-promoted-locals";
const LINKED: &str = "compared";
const BY_LLD: &str = "compared-by-lld";
const OBJECTS: &str = "compared-objects";

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
    program.remove(OBJECTS)?;
    let mut by_lld = program.link(&program.words[0], LINKED);
    by_lld.arg(format!("-Wl,--thinlto-jobs={jobs}")).arg(BY_SOURCE);
    shell::quietly(&mut by_lld)?;
    fs::rename(program.dir.join(LINKED), program.dir.join(BY_LLD))?;
    fs::create_dir(program.dir.join(OBJECTS))?;
    // Objects that are written stand in the program by their names, so that it is another link.
    shell::quietly(by_lld.arg(format!("-Wl,--lto-obj-path={OBJECTS}/o")))?;
    program.remove(LINKED)?;
    let mut ours = Command::new(distlto);
    ours.args(["link", "--quiet", "-j", &jobs.to_string(), "--"]).args(&program.words);
    linked::with_store(&mut ours, &program.state(LINKED));
    shell::quietly(ours.args(["-o", LINKED]).current_dir(&program.dir))?;
    let linked = program.dir.join(LINKED);
    let objects = linked::objects(&program.state(LINKED))?;
    let by_lld = fs::read_dir(program.dir.join(OBJECTS))?.map(|entry| Ok(fs::read(entry?.path())?));
    let by_lld: HashSet<Vec<u8>> = by_lld.collect::<Result<_>>()?;
    let same = objects.values().filter(|object| by_lld.contains(*object)).count();
    let (ours, theirs) = (fs::read(&linked)?, fs::read(program.dir.join(BY_LLD))?);
    let differing = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    let differing = differing.or((ours.len() != theirs.len()).then_some(ours.len().min(theirs.len())));
    let name = &program.name;
    let all = objects.len();
    println!("{name}: {same} of {all} objects are those of lld in process");
    match differing {
        None => println!("{name}: the program is lld's, {} bytes", ours.len()),
        Some(at) => bail!(
            "{name}: {} and {BY_LLD} differ first at byte {at} (of {} and {})",
            linked.display(),
            ours.len(),
            theirs.len()
        ),
    }
    ensure!(same == all, "{name}: objects differ");
    Ok(linked)
}
