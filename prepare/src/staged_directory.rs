//! A directory that is filled out of sight and then renamed into place, so that it is seen whole or not at all.
//!
//! One open, one write and no rename for each file, from any number of threads: the fast way to a directory that does
//! not exist yet. A directory that is there already keeps its files; those with other content are replaced one by one.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::input::Input;
use crate::io_error::IoError;
use crate::lock::{Lock, Patience, is_in_place};
use crate::names;
use crate::regular::Links;
use crate::write::{self, TEMPORARY_PREFIX};

/// The directory out of sight. Dropped before [`StagedDirectory::settle`], it is removed with all that is in it.
pub(crate) struct StagedDirectory {
    target: PathBuf,
    path: PathBuf,
    /// Open and locked, so that a second run for the same target waits.
    directory: File,
}

impl StagedDirectory {
    /// Makes an empty directory for files that are to be in `target`: in it if it exists, else beside it.
    ///
    /// Its name follows from the target's, so the next run finds and removes the directory of a killed one.
    pub(crate) fn new(target: &Path) -> Result<Self, IoError> {
        let path = match (target.file_name(), target.symlink_metadata()) {
            (Some(own), Err(_)) => {
                write::make_parent(target)?;
                let own = names::escape_path(own.as_bytes());
                target.with_file_name(format!("{TEMPORARY_PREFIX}{own}"))
            }
            _ => target.join(inside()),
        };
        let directory = make(&path)?;
        Ok(Self { target: target.to_owned(), path, directory })
    }

    /// Writes a file, which must be the only one of its name.
    pub(crate) fn write(&self, file: &str, bytes: &[u8]) -> Result<(), IoError> {
        write::write_unseen(&self.directory, &self.path, file, bytes)
    }

    /// Returns an entry of the target that is none of `files`: then it should not be settled.
    pub(crate) fn stranger(&self, files: &[&str]) -> Result<Option<OsString>, IoError> {
        let listed = match fs::read_dir(&self.target) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            listed => listed.map_err(IoError::on("list", &self.target))?,
        };
        let inside = inside();
        let known: HashSet<&OsStr> = files.iter().map(OsStr::new).chain([OsStr::new(&inside)]).collect();
        for entry in listed {
            let name = entry.map_err(IoError::on("list", &self.target))?.file_name();
            if !known.contains(name.as_os_str()) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Puts the files into place.
    pub(crate) fn settle(self, files: &[&str]) -> Result<(), IoError> {
        let missing = || self.target.symlink_metadata().is_err();
        if missing() {
            match fs::rename(&self.path, &self.target) {
                Err(error) if missing() => {
                    return Err(IoError::on("rename into place", &self.target)(error));
                }
                // Another run was first.
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
        for file in files {
            let (from, to) = (self.path.join(file), self.target.join(file));
            let bytes = Input::open_regular(&from).map_err(IoError::on("read", &from))?;
            if !write::holds(&to, &bytes)? {
                fs::rename(&from, &to).map_err(IoError::on("rename into place", &to))?;
            }
        }
        Ok(())
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        // Gone after a rename. If it cannot be removed, the next run removes or reports it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The name in a target that exists.
fn inside() -> String {
    format!("{TEMPORARY_PREFIX}objects")
}

/// Makes the directory anew and locks it.
fn make(path: &Path) -> Result<File, IoError> {
    loop {
        let left = match fs::create_dir(path) {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => true,
            Err(error) => return Err(IoError::on("create directory", path)(error)),
        };
        let lock = Lock { guards: "writing", place: path, links: Links::Refuse, patience: Patience::Endless };
        let file = match lock.hold() {
            Err(error) if error.source.kind() == ErrorKind::NotFound => continue,
            held => held?.0,
        };
        if !is_in_place(&file, path).unwrap_or(false) {
            continue;
        }
        if !left {
            return Ok(file);
        }
        // A killed run's: its lock ended with it.
        fs::remove_dir_all(path).map_err(IoError::on("remove", path))?;
    }
}
