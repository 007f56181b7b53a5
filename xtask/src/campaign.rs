//! `cargo xtask campaign`: builds and starts the campaigns of the crate `tests`, whose generator its tests use too, and that of
//! third-party programs.

mod precise;
mod profile;
mod source_edit;

use anyhow::Result;

use crate::shell::cargo;
use crate::{setup, unstable_llvm};

/// Runs a campaign with these words, with an LLVM that is not the newest if it is named; whether nothing differs.
pub fn campaign(release: bool, llvm: Option<u32>, words: &[String]) -> Result<bool> {
    if let Some((_, words)) = words.split_first().filter(|(name, _)| *name == "precise") {
        return precise::campaign(release, words);
    }
    let with = |words: &[&str]| {
        let mut command = cargo();
        command
            .args(words)
            .args(["--quiet", "--package", "distlto-tests"])
            .args(release.then_some("--release"));
        command
    };
    // The campaign's own helpers lie beside it.
    if !with(&["build", "--bins"]).status()?.success() {
        return Ok(false);
    }
    let mut campaign = with(&["run", "--bin", "distlto-campaign"]);
    campaign.arg("--").args(words);
    if let Some(llvm) = llvm {
        setup::llvm(llvm)?;
        unstable_llvm::choose(&mut campaign, llvm)?;
    }
    Ok(campaign.status()?.success())
}
