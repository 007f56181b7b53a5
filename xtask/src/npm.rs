//! What is installed from npm: packages that a lock file pins by version and digest, in a folder of cargo's target directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::shell::{quietly, remove};

/// What decides which packages those are.
const LOCK: &str = "package-lock.json";

/// Installs what `from` names into `to`, unless that is there; `program` is one of what it holds then.
pub fn install(from: &Path, to: &Path, program: &str) -> Result<()> {
    if fs::read(to.join(LOCK)).is_ok_and(|lock| fs::read(from.join(LOCK)).is_ok_and(|own| own == lock)) {
        return Ok(());
    }
    let partial = to.with_extension("partial");
    remove(&partial)?;
    fs::create_dir_all(&partial)?;
    for name in ["package.json", LOCK] {
        fs::copy(from.join(name), partial.join(name))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]);
    quietly(npm.current_dir(&partial))?;
    ensure!(partial.join("node_modules/.bin").join(program).is_file(), "npm has installed no {program}");
    // Renamed when it is whole.
    remove(to)?;
    Ok(fs::rename(partial, to)?)
}
