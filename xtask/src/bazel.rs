//! `cargo xtask bazel`: Bazel itself for the tests of `rules/bazel` ([`parts`]), and what is measured of the rules.

pub mod buildifier;
pub mod parts;
mod sid;

use std::ffi::OsStr;
use std::fs;

use anyhow::Result;
use clap::Subcommand;

use crate::projects;
use crate::shell::{self, cargo, quietly};
use parts::{folder, install};

/// What is done.
#[derive(Subcommand)]
pub enum What {
    /// Installs what is missing, and prints where both versions and buildifier are.
    Setup,
    /// Prints what runs again after each kind of change, what caches have, and what Bazel's own thin_lto refuses.
    Table,
    /// Builds libgit2's program by the rules, by Bazel's own thin_lto and by lld in process, and prints ratios.
    Compare,
    /// Builds `examples/bazel` on buildbox-casd, and prints what the engine ran, what its cache had, and what ran here.
    Remote,
}

/// Does it.
pub fn bazel(what: &What) -> Result<()> {
    match what {
        What::Setup => {
            install()?;
            println!("Bazel of this system: bazel-4");
            println!("Bazel of Debian's next release: {}", sid::launcher().display());
            println!("buildifier: {}", buildifier::program().display());
            Ok(())
        }
        What::Table => {
            install()?;
            helper(&["table".as_ref()])
        }
        What::Remote => {
            install()?;
            helper(&["remote".as_ref()])
        }
        What::Compare => {
            install()?;
            let project = projects::libgit2(&folder().join("compare"))?;
            project.configure(&["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON".to_owned()])?;
            let (file, line) = project.leaf;
            let (sources, build) = (fs::canonicalize(&project.sources)?, fs::canonicalize(&project.build)?);
            helper(&["compare".as_ref(), sources.as_ref(), build.as_ref(), file.as_ref(), line.as_ref()])
        }
    }
}

/// Runs the part that knows Bazel, which the tests have, with distlto as users get it.
fn helper(words: &[&OsStr]) -> Result<()> {
    let distlto = shell::distlto()?;
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "distlto-tests", "--bin", "distlto-bazel", "--"]);
    quietly(command.args(words).env("DISTLTO_TEST_BIN", distlto))
}
