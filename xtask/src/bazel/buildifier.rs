//! buildifier, from npm, pinned with its digest in `xtask/bazel/package-lock.json`.

use std::path::PathBuf;

use anyhow::Result;

use crate::bazel::folder;
use crate::npm;
use crate::shell::root;

/// Where it is, once it is installed.
pub fn program() -> PathBuf {
    folder().join("buildifier/node_modules/.bin/buildifier")
}

/// Makes it usable.
pub fn install() -> Result<()> {
    npm::install(&root().join("xtask/bazel"), &folder().join("buildifier"), "buildifier")
}
