//! `cargo xtask bazel`: Bazel itself for the tests of `rules/bazel`, in two versions, and the formatter of its files.
//!
//! The older one is Debian's package. The newer one and buildifier lie below `target/bazel`: removing that folder
//! removes them.

pub mod buildifier;
mod sid;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::setup;
use crate::shell::{cargo, quietly, run, target};

/// What is done.
#[derive(Subcommand)]
pub enum What {
    /// Installs what is missing, and prints where both versions and buildifier are.
    Setup,
    /// Prints what runs again after each kind of change, what caches have, and what Bazel's own thin_lto refuses.
    Table,
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
            // The helpers of the tests lie beside their programs.
            run(cargo().args(["build", "--quiet", "--package", "distlto-tests", "--bins"]))?;
            quietly(cargo().args(["run", "--quiet", "--package", "distlto-tests", "--bin", "distlto-bazel"]))
        }
    }
}

/// Makes all of it usable.
pub fn install() -> Result<()> {
    setup::provide(&NEEDS)?;
    sid::install()?;
    buildifier::install()
}

/// Where it lies. Absolute: Bazel looks for its parts from other folders.
fn folder() -> PathBuf {
    target().join("bazel")
}
