//! `cargo xtask page`: makes the page of `distlto report` of its sources in `record/page`, as it is checked in.
//!
//! esbuild and what it bundles are npm's, pinned with their digests in `record/page/package-lock.json`; they lie in
//! `page` of cargo's target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::shell::{quietly, root, target};
use crate::{apt, npm};

/// Packages and their programs that make the page and show it to the tests.
pub const NEEDS: [(&str, &str); 4] =
    [("nodejs", "node"), ("npm", "npm"), ("chromium", "chromium"), ("chromium-driver", "chromedriver")];

/// Makes it, in its place or elsewhere.
pub fn page(out: Option<&Path>) -> Result<()> {
    install()?;
    let out = out.map_or_else(|| root().join("record/src/page/built.html"), Path::to_owned);
    let mut node = Command::new("node");
    node.arg(sources().join("build.mjs")).arg(folder().join("node_modules")).arg(&out);
    quietly(&mut node)?;
    println!("{} is made", out.display());
    Ok(())
}

/// Makes what is needed usable.
pub fn install() -> Result<()> {
    apt::provide(&NEEDS)?;
    npm::install(&sources(), &folder(), "esbuild")
}

fn sources() -> PathBuf {
    root().join("record/page")
}

fn folder() -> PathBuf {
    target().join("page")
}
