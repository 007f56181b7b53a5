//! Wheels, pinned by their digests in `xtask/engines`, which pip checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::engine::folder;
use crate::shell::{find, quietly, root, run};

/// What the wheels are for, whatever Python runs pip.
const WHEELS: [&str; 5] = [
    "--only-binary=:all:",
    "--implementation=cp",
    "--python-version=3.11",
    "--platform",
    "manylinux_2_28_x86_64",
];

/// The list of what an engine needs.
fn requirements(engine: &str) -> PathBuf {
    root().join("xtask/engines").join(format!("{engine}.txt"))
}

/// Downloads the one wheel of an engine, and gives its place.
pub fn download(engine: &str) -> Result<PathBuf> {
    let to = folder().join("downloads").join(engine);
    let mut pip = Command::new("pip3");
    pip.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
    pip.args(WHEELS).arg("--dest").arg(&to).arg("--requirement").arg(requirements(engine));
    run(&mut pip)?;
    let wheels = fs::read_dir(&to)?.flatten().map(|entry| entry.path());
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().with_context(|| format!("pip put no wheel into {}", to.display()))
}

/// Makes an environment of this Python with the wheels of a list, unless it is there.
pub fn environment(engine: &str, python: &str, to: &Path) -> Result<()> {
    // Written last.
    let complete = to.join("complete");
    if complete.is_file() {
        return Ok(());
    }
    apt::provide(&[("python3", python)])?;
    let Some(python) = find(python) else {
        bail!("{python} is missing, for which the wheels of {engine} are; Debian 12 has it as python3");
    };
    let mut made = Command::new(&python);
    if quietly(made.args(["-m", "venv", "--clear"]).arg(to)).is_err() {
        apt::install(&["python3-venv".to_owned()])?;
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(to))?;
    }
    let mut pip = Command::new(to.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
    run(pip.arg("--requirement").arg(requirements(engine)))?;
    Ok(fs::write(complete, "")?)
}

/// Unpacks a wheel, which is a zip file.
pub fn unpack(wheel: &Path, to: &Path) -> Result<()> {
    quietly(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(to))
}
