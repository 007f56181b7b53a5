//! Leftovers of killed runs: how the next run recognises them, and the one place that sweeps them.
//!
//! A run that writes among others has a directory of its own ([`RunDirectory`]), which it holds by `flock(2)` for as long
//! as it lives, however that ends. So a directory with a free lock is one of a run that was killed, and goes. Where all
//! writers are under one lock of the caller, every name with [`TEMPORARY_PREFIX`] is a leftover ([`sweep`]). On a file
//! system without locks nothing is swept, and nobody is harmed. Does not depend on the content.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::io_error::IoError;
use crate::lock::{Lock, Locked, Patience, is_in_place};
use crate::mutex::lock;
use crate::regular::Links;
use crate::write::{self, TEMPORARY_PREFIX};

/// Removes the leftovers of killed runs from a directory, which may be missing. Only for callers who know, by a lock,
/// that no other run is writing there. Returns how many there were.
pub fn sweep(directory: &Path) -> Result<usize, IoError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(IoError::on("list", directory))?,
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry.map_err(IoError::on("list", directory))?;
        if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        match entry.file_type().is_ok_and(|found| found.is_dir()) {
            true => fs::remove_dir_all(&path).map_err(IoError::on("remove", &path))?,
            false => write::remove(&path)?,
        }
        swept += 1;
    }
    Ok(swept)
}

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
        let prefix = prefix();
        for _ in 0..TRIES {
            let mut builder = tempfile::Builder::new();
            // Others neither read it nor connect to a socket in it.
            builder.prefix(&prefix).permissions(Permissions::from_mode(0o700));
            let directory = builder.tempdir_in(parent).map_err(failed())?;
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
pub fn sweep_killed_runs(parent: &Path, before: impl FnMut(&Path)) {
    sweep_named(parent, &prefix(), before);
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
    let lock =
        Lock { guards: "running in", place: directory, links: Links::Refuse, patience: Patience::None };
    let file = lock.open().map_err(|_| NoLock::Taken)?;
    match lock.ask(&file) {
        Ok(Locked::Held) => {}
        Ok(Locked::Taken) => return Err(NoLock::Taken),
        Ok(Locked::Impossible) | Err(_) => return Err(NoLock::Impossible),
    }
    if is_in_place(&file, directory).unwrap_or(false) { Ok(file) } else { Err(NoLock::Taken) }
}

/// A directory for temporaries that many processes share, and this process's own one in it once something has been written.
#[derive(Debug)]
pub(crate) struct SharedTemporaries {
    directory: PathBuf,
    own: Mutex<Option<RunDirectory>>,
}

impl SharedTemporaries {
    /// For a directory that may be missing.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, own: Mutex::new(None) }
    }

    /// Writes a file by way of a temporary; `path` is on the same file system.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), IoError> {
        write::write_by_way_of(&self.own()?, path, bytes, mode)
    }

    /// This process's own directory.
    fn own(&self) -> Result<PathBuf, IoError> {
        let mut own = lock(&self.own);
        if let Some(own) = &*own
            && own.path().is_dir()
        {
            return Ok(own.path().to_owned());
        }
        let made = RunDirectory::make(&self.directory)?;
        let path = made.path().to_owned();
        *own = Some(made);
        Ok(path)
    }

    /// Removes leftovers of dead processes; returns how many files and directories.
    pub(crate) fn sweep(&self) -> Result<usize, IoError> {
        match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(IoError::on("list", &self.directory)(error)),
            Ok(_) => {}
        }
        let mut swept = 0;
        sweep_named(&self.directory, TEMPORARY_PREFIX, |path| {
            // Another sweeper may be at it, and a directory that cannot be emptied harms nobody.
            let left = fs::read_dir(path).map_or(0, |files| files.count());
            if fs::remove_dir_all(path).is_ok() {
                swept += left;
            }
        });
        Ok(swept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn temporaries_go_and_other_files_stay() {
        let place = tempfile::tempdir().expect("a directory");
        let file = |name: &str| fs::write(place.path().join(name), "x").expect("written");
        fs::create_dir(place.path().join(".distlto-tmp-dead")).expect("made");
        [".distlto-tmp-dead/a.o", ".distlto-tmp-file", "kept"].into_iter().for_each(file);
        assert_eq!(sweep(place.path()).expect("swept"), 2);
        assert_eq!(fs::read_dir(place.path()).expect("listed").count(), 1);
        assert_eq!(sweep(&place.path().join("nothing")).expect("swept"), 0);
    }

    #[test]
    fn a_living_runs_directory_stays_and_a_dead_ones_goes() {
        let parent = tempfile::tempdir().expect("a directory");
        let living = RunDirectory::make(parent.path()).expect("made");
        let dead = parent.path().join(format!("{}dead", prefix()));
        fs::create_dir_all(dead.join("sub")).expect("made");
        let other = parent.path().join(".distlto-tmp-of-another");
        fs::create_dir(&other).expect("made");
        let seen = RefCell::new(Vec::new());
        sweep_killed_runs(parent.path(), |path| seen.borrow_mut().push(path.to_owned()));
        assert_eq!(*seen.borrow(), std::slice::from_ref(&dead));
        assert!(!dead.exists() && living.path().exists() && other.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
