//! Real Bazel for tests: which versions there are, workspaces with servers of their own, and what a build ran.
//!
//! Knows nothing of what is built. `cargo xtask bazel setup` installs both versions.

pub mod compare;
pub mod example;
pub mod log;
pub mod mistakes;
pub mod native;
pub mod program;
pub mod remote;
pub mod same;
pub mod table;
pub mod workspace;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::toolchain::{find, target};

const SETUP: &str = "install it with `cargo xtask bazel setup`";

/// A Bazel that is tested with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Debian 12's, 4.2.3.
    Four,
    /// That of Debian's unstable release, at least 7.7.
    Seven,
}

impl Version {
    /// Its program.
    pub fn program(self) -> Result<PathBuf> {
        match self {
            Self::Four => find("bazel-4").with_context(|| format!("bazel-4 is missing; {SETUP}")),
            Self::Seven => {
                let program = target().join("bazel/sid/bazel");
                ensure!(program.is_file(), "{} is missing; {SETUP}", program.display());
                Ok(program)
            }
        }
    }

    /// What it is called in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Four => "4",
            Self::Seven => "7",
        }
    }

    /// Options without which it would look for what it loads of its own in the network.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Four => &[],
            Self::Seven => &["--noenable_bzlmod", "--enable_workspace"],
        }
    }
}
