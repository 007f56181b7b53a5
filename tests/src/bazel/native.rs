//! What Bazel's own feature `thin_lto` says of bitcode that no compilation of Bazel's has made.
//!
//! A record, so that what is said of it in documents can be tried again with another version.

use anyhow::{Context, Result};

use super::workspace::Workspace;
use crate::toolchain::{NEWEST, Toolchain};

/// The kinds of input, as targets of `tests/data/bazel/native`.
pub const KINDS: [&str; 4] = ["archive", "object", "rlib", "tree"];

/// What Bazel prints for a kind without the feature and with it; nothing where it builds.
pub struct Outcome {
    /// In-process, by `-flto=thin` that nobody distributes.
    pub without: Option<String>,
    /// By the feature.
    pub with: Option<String>,
}

/// Tries a kind.
pub fn outcome(workspace: &Workspace, kind: &str) -> Result<Outcome> {
    let clang = Toolchain { version: NEWEST }.tool("clang")?;
    let compiler = format!("--repo_env=CC={}", clang.to_str().context("paths of tools are text")?);
    let target = format!("//native:calls_{kind}");
    let options = [target.as_str(), &compiler, "--compilation_mode=opt", "--linkopt=-fuse-ld=lld"];
    let attempt = |feature: &[&str]| -> Result<Option<String>> {
        let output = workspace.try_build(&[&options, feature].concat())?;
        Ok((!output.status.success()).then(|| reason(&String::from_utf8_lossy(&output.stderr))))
    };
    Ok(Outcome { without: attempt(&[])?, with: attempt(&["--features=thin_lto"])? })
}

/// The line that says why.
fn reason(said: &str) -> String {
    let why = |line: &&str| {
        line.contains("missing bitcode") || line.starts_with("Error in ") || line.contains("failed: ")
    };
    said.lines().find(why).unwrap_or(said).to_owned()
}
