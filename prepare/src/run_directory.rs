//! A directory of one run's own, beside outputs or among those of other runs in a store. The next run can see whether
//! its run still lives.
//!
//! It is held by `flock(2)` for as long as its run lives, however that ends. So a directory with a free lock is one of
//! a run that was killed, and goes. Does not depend on its content.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

use crate::io_error::IoError;
use crate::lock::{Lock, Locked, Patience};
use crate::regular::Links;
use crate::write::TEMPORARY_PREFIX;

/// The beginning of the names, after the prefix of all temporaries.
const NAME: &str = "run-";

/// How often others may take a directory for a dead run's before it is locked.
const TRIES: usize = 100;

/// The directory; gone with all that is in it when this is dropped.
#[derive(Debug)]
pub struct RunDirectory {
    directory: TempDir,
    _lock: Option<File>,
}

/// Why a lock is not held.
enum NoLock {
    /// Another run has it, or has removed the directory.
    Taken,
    /// The file system has no locks; nobody ever sweeps there.
    Impossible,
}

impl RunDirectory {
    /// Makes one in `parent`, which is made if missing.
    pub fn make(parent: &Path) -> Result<Self, IoError> {
        let failed = || IoError::on("write into", parent);
        fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
        for _ in 0..TRIES {
            let directory = tempfile::Builder::new().prefix(&prefix()).tempdir_in(parent).map_err(failed())?;
            // Another run may take it for a dead one's before it is locked.
            match hold(directory.path()) {
                Ok(lock) => return Ok(Self { directory, _lock: Some(lock) }),
                Err(NoLock::Impossible) => return Ok(Self { directory, _lock: None }),
                Err(NoLock::Taken) => {}
            }
        }
        Err(failed()(io::Error::other("others remove what is made there")))
    }

    /// Its path, which begins with that of its parent as it was given.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of runs that were killed from `parent`, after giving each to `before`. One that cannot be
/// removed stays: it is in nobody's way.
pub fn sweep(parent: &Path, before: impl FnMut(&Path)) {
    sweep_named(parent, &prefix(), before);
}

/// The same for a directory in which all temporaries are such directories, under any name.
pub(crate) fn sweep_all(parent: &Path, before: impl FnMut(&Path)) {
    sweep_named(parent, TEMPORARY_PREFIX, before);
}

fn sweep_named(parent: &Path, prefix: &str, mut before: impl FnMut(&Path)) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if let Ok(_held) = hold(&path) {
            before(&path);
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn prefix() -> String {
    format!("{TEMPORARY_PREFIX}{NAME}")
}

/// The lock of a directory that is there and that no living run holds.
fn hold(directory: &Path) -> Result<File, NoLock> {
    let gone = |_| NoLock::Taken;
    let lock =
        Lock { guards: "running in", place: directory, links: Links::Refuse, patience: Patience::None };
    let file = lock.open().map_err(|_| NoLock::Taken)?;
    match lock.ask(&file) {
        Ok(Locked::Held) => {}
        Ok(Locked::Taken) => return Err(NoLock::Taken),
        Ok(Locked::Impossible) | Err(_) => return Err(NoLock::Impossible),
    }
    let (held, there) = (file.metadata().map_err(gone)?, fs::metadata(directory).map_err(gone)?);
    if (held.dev(), held.ino()) == (there.dev(), there.ino()) { Ok(file) } else { Err(NoLock::Taken) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_living_runs_directory_stays_and_a_dead_ones_goes() {
        let parent = tempfile::tempdir().expect("a directory");
        let living = RunDirectory::make(parent.path()).expect("made");
        let dead = parent.path().join(format!("{}dead", prefix()));
        fs::create_dir_all(dead.join("sub")).expect("made");
        let other = parent.path().join(".distlto-tmp-of-another");
        fs::create_dir(&other).expect("made");
        let seen = RefCell::new(Vec::new());
        sweep(parent.path(), |path| seen.borrow_mut().push(path.to_owned()));
        assert_eq!(*seen.borrow(), std::slice::from_ref(&dead));
        assert!(!dead.exists() && living.path().exists() && other.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
