//! The import step of a ThinLTO backend alone, by a clang that ends after it: the module as the backend compiles it.
//!
//! What the linker writes at that place while it compiles a module has the same bytes, if the shard is completed. So a module
//! whose bytes are those of the last link has the object of the last link. `docs/design/precise.md` says why that is right.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use distlto_planner::digests::Digest;
use distlto_planner::words::Word;

use crate::cancel::Cancel;
use crate::execute::process::{self, Command, Spawner};

/// Has clang write its module after each step.
const SAVE: [&[u8]; 2] = [b"-Xclang", b"-save-temps=obj"];
/// The name of the module in the folder of a step, and that of its object, which is not made.
const IMPORTED: &str = "imported";
const OBJECT: &str = "object";
/// After so many steps without an object that they spared, no more are tried.
const TRIAL: usize = 20;

/// The import steps of one link.
#[derive(Debug, Default)]
pub struct ImportSteps {
    performed: AtomicUsize,
    spared: AtomicUsize,
}

impl ImportSteps {
    /// Whether a further step may spare a backend.
    pub fn pay(&self) -> bool {
        self.performed.load(Relaxed) < TRIAL || self.spared.load(Relaxed) > 0
    }

    /// A step has spared a backend, or has not.
    pub fn performed(&self, spared: bool) {
        self.performed.fetch_add(1, Relaxed);
        self.spared.fetch_add(spared.into(), Relaxed);
    }
}

/// The object that a backend in this folder would make.
pub fn object_in(folder: &Path) -> String {
    folder.join(OBJECT).to_string_lossy().into_owned()
}

/// Performs the import step of the backend with this command, which runs in `directory` and whose object is
/// [`object_in`] this new folder. Returns the digest of the module and processor time, or a sentence that says what is wrong.
pub fn import(
    words: &[Word],
    directory: Option<&Path>,
    folder: &Path,
    (spawner, cancel): (&dyn Spawner, &Cancel),
) -> Result<(Digest, Duration), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let words: Vec<Word> = words.iter().cloned().chain(SAVE.map(<[u8]>::to_vec)).collect();
    let command = Command::of_words(&words, directory).ok_or("no command")?;
    let place = std::path::absolute(folder.join(IMPORTED)).map_err(|error| error.to_string())?;
    let command = Command { import: Some(place.clone()), ..command };
    let ended = process::run(&command, spawner, cancel, process::GRACE).map_err(|error| error.to_string());
    let imported = ended.and_then(|ended| {
        // An import that fails is an error on standard error, and no exit code.
        if !ended.ended.status.success() || !ended.stderr.is_empty() {
            return Err(format!("{}: {}", ended.ended.status, ended.stderr.text().trim()));
        }
        let bytes = fs::read(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        Ok((Digest::of(&bytes), ended.ended.cpu.unwrap_or(ended.wall)))
    });
    // What stays goes with the record's folder of objects.
    let _ = fs::remove_dir_all(folder);
    imported
}
