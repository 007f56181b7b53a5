//! `cargo xtask bazel`: Bazel itself for the tests of `rules/bazel`, in two versions, and the formatter of its files.
//!
//! The older one is Debian's package. The newer one and buildifier lie below `target/bazel`: removing that folder
//! removes them.

pub mod buildifier;
mod sid;

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::shell::{self, cargo, quietly, target};
use crate::{apt, projects};

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

/// Packages and their programs without which nothing here can be installed or run.
pub const NEEDS: [(&str, &str); 3] = [("bazel-bootstrap", "bazel-4"), ("npm", "npm"), ("unzip", "unzip")];

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

/// Makes all of it usable.
pub fn install() -> Result<()> {
    apt::provide(&NEEDS)?;
    sid::install()?;
    buildifier::install()
}

/// Where it lies. Absolute: Bazel looks for its parts from other folders.
fn folder() -> PathBuf {
    target().join("bazel")
}
