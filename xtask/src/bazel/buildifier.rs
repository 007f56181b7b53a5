//! buildifier, from npm, pinned with its digest in `xtask/bazel/package-lock.json`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::bazel::folder;
use crate::shell::{quietly, remove, root};

/// Where it is, once it is installed.
pub fn program() -> PathBuf {
    folder().join("buildifier/node_modules/.bin/buildifier")
}

/// Makes it usable.
pub fn install() -> Result<()> {
    let to = folder().join("buildifier");
    if to.is_dir() {
        return Ok(());
    }
    let partial = folder().join("buildifier.partial");
    remove(&partial)?;
    fs::create_dir_all(&partial)?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(root().join("xtask/bazel").join(name), partial.join(name))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]);
    quietly(npm.current_dir(&partial))?;
    ensure!(partial.join("node_modules/.bin/buildifier").is_file(), "npm has installed no buildifier");
    // Renamed when it is whole.
    Ok(fs::rename(partial, to)?)
}
