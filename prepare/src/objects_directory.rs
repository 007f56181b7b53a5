//! An objects directory held for one run: created, locked against other runs, swept of leftovers of killed runs.
//!
//! The lock is `flock(2)` on the directory itself, so it leaves no file and ends with its process. Several
//! directories are locked in the order of their inodes, so two runs over the same ones cannot wait for each other.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::PrepareError;
use crate::io_error::IoError;
use crate::leftovers::{self, LeftoverKind};
use crate::lock::{Lock, Locked, Patience};
use crate::regular::Links;

/// A directory that no other run of distlto writes to while this value lives.
pub(crate) struct ObjectsDirectory {
    pub path: PathBuf,
    _lock: File,
}

impl ObjectsDirectory {
    /// Opens the directory of each path. Two paths of one directory are an error.
    pub(crate) fn open_all<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<Result<Self, PrepareError>> {
        let mut opened: Vec<_> = paths.map(open).collect();
        let identity =
            |opened: &Result<(PathBuf, File, (u64, u64)), PrepareError>| opened.as_ref().ok().map(|o| o.2);
        let mut order: Vec<usize> = (0..opened.len()).collect();
        order.sort_by_key(|&at| (identity(&opened[at]), at));
        let mut last = None;
        for at in order {
            let Ok((path, file, identity)) = &opened[at] else { continue };
            let done = if last == Some(*identity) {
                Err(PrepareError::SharedDirectory { directory: path.clone() })
            } else {
                last = Some(*identity);
                lock_and_sweep(path, file)
            };
            if let Err(error) = done {
                opened[at] = Err(error);
            }
        }
        opened.into_iter().map(|opened| opened.map(|(path, lock, _)| Self { path, _lock: lock })).collect()
    }
}

fn open(path: &Path) -> Result<(PathBuf, File, (u64, u64)), PrepareError> {
    fs::create_dir_all(path).map_err(IoError::on("create directory", path))?;
    let file = lock(path).open()?;
    let found = file.metadata().map_err(IoError::on("open directory", path))?;
    Ok((path.to_owned(), file, (found.dev(), found.ino())))
}

fn lock_and_sweep(path: &Path, file: &File) -> Result<(), PrepareError> {
    // Without locks two runs still write whole files, but neither may sweep.
    if lock(path).ask(file)? == Locked::Held {
        leftovers::sweep(path, LeftoverKind::Files)?;
    }
    Ok(())
}

fn lock(path: &Path) -> Lock<'_> {
    Lock { guards: "unpacking into", place: path, links: Links::Follow, patience: Patience::Endless }
}
