//! The program that was there before a link, to be put back if the link fails.
//!
//! Does not depend on how a link is done.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{TEMPORARY_PREFIX, remove};

use super::observed::Observed;

/// The program that was there before a link, by a second name: the linker removes it just before it writes its own.
pub struct PreviousProgram {
    output: PathBuf,
    kept: Option<PathBuf>,
}

/// The program's second name in the state directory.
const PREVIOUS: &str = "previous";

impl PreviousProgram {
    /// Keeps a program, if there is one; else the one that an earlier link kept, which has failed. `state` is empty
    /// where a link has none.
    pub fn of(output: &Path, state: &Path) -> Self {
        let beside = output.with_file_name(format!("{TEMPORARY_PREFIX}{PREVIOUS}"));
        // The state may lie on another file system.
        let places = match state.as_os_str().is_empty() {
            true => vec![beside],
            false => vec![state.join(PREVIOUS), beside],
        };
        let keep = |place: &PathBuf| match output.exists() {
            true => remove(place).is_ok() && fs::hard_link(output, place).is_ok(),
            false => place.is_file(),
        };
        Self { output: output.to_owned(), kept: places.into_iter().find(keep) }
    }

    /// Whether another program is there.
    pub fn is_replaced(&self) -> bool {
        let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let there = identity(&self.output);
        there.is_some() && self.kept.as_deref().is_none_or(|kept| identity(kept) != there)
    }

    /// Puts the program back after a link that failed and left none, and removes the linker's unfinished files.
    pub fn settle(self, succeeded: bool, observed: &[Observed]) -> Result<(), IoError> {
        if !succeeded {
            for place in unfinished(&self.output, observed) {
                remove(&place)?;
            }
        }
        let Some(kept) = self.kept else { return Ok(()) };
        if !succeeded && !self.output.exists() {
            return match fs::rename(&kept, &self.output) {
                // Another link of the command has the same output, and has put it back.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                renamed => renamed.map_err(IoError::on("put back", &self.output)),
            };
        }
        match fs::remove_file(&kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(IoError::on("remove", kept)(error)),
            _ => Ok(()),
        }
    }
}

/// Returns the unfinished files of a program, which lld names `P.tmp` and seven digits.
fn unfinished(output: &Path, observed: &[Observed]) -> HashSet<PathBuf> {
    let output = std::path::absolute(output).unwrap_or_default();
    let begins = [output.as_os_str().as_bytes(), b".tmp"].concat();
    let traces = observed.iter().filter_map(|seen| seen.trace().ok());
    let made = traces.flat_map(|trace| trace.creating);
    let named = made.filter(|path| path.as_os_str().as_bytes().starts_with(&begins));
    named.filter(|path| path.exists()).collect()
}
