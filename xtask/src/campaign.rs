//! `cargo xtask campaign`: builds and starts the campaigns of the crate `tests`, whose generator its tests use too.

use anyhow::Result;

use crate::shell::cargo;

/// Runs a campaign with these words; whether nothing differs.
pub fn campaign(release: bool, words: &[String]) -> Result<bool> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "distlto-tests", "--bin", "distlto-campaign"]);
    if release {
        command.arg("--release");
    }
    Ok(command.arg("--").args(words).status()?.success())
}
