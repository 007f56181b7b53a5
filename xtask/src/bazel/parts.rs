//! Bazel in two versions and the formatter of its files: what is installed of them, and where.
//!
//! The older one is Debian's package. The newer one and buildifier lie below `target/bazel`: removing that folder
//! removes them.

use std::path::PathBuf;

use anyhow::Result;

use super::{buildifier, sid};
use crate::apt;
use crate::shell::target;

/// Packages and their programs without which nothing here can be installed or run.
pub const NEEDS: [(&str, &str); 3] = [("bazel-bootstrap", "bazel-4"), ("npm", "npm"), ("unzip", "unzip")];

/// Makes all of it usable.
pub fn install() -> Result<()> {
    apt::provide(&NEEDS)?;
    sid::install()?;
    buildifier::install()
}

/// Where it lies. Absolute: Bazel looks for its parts from other folders.
pub fn folder() -> PathBuf {
    target().join("bazel")
}
