//! A directory for temporaries that many processes share and that the next one sweeps.
//!
//! Each process writes into a subdirectory of its own and holds `flock(2)` on it as long as it lives. A subdirectory
//! that can be locked is therefore a dead process's, however many others are at work. On a file system without locks
//! nothing is swept, and nobody is harmed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::lock::{self, Locked};
use crate::regular::Links;
use crate::write::{self, IoError, TEMPORARY_PREFIX};

/// The shared directory, and this process's own one in it once something has been written.
#[derive(Debug)]
pub(crate) struct Temporaries {
    directory: PathBuf,
    own: Mutex<Option<Own>>,
}

#[derive(Debug)]
struct Own {
    path: PathBuf,
    _lock: File,
}

impl Temporaries {
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
        let mut own = self.own.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(own) = &*own
            && own.path.is_dir()
        {
            return Ok(own.path.clone());
        }
        let made = self.make()?;
        let path = made.path.clone();
        *own = Some(made);
        Ok(path)
    }

    fn make(&self) -> Result<Own, IoError> {
        let failed = || IoError::on("write into", &self.directory);
        fs::create_dir_all(&self.directory).map_err(IoError::on("create directory", &self.directory))?;
        // Between its making and its locking a directory looks like a dead process's: then there is another.
        for _ in 0..100 {
            let made = tempfile::Builder::new()
                .prefix(TEMPORARY_PREFIX)
                .tempdir_in(&self.directory)
                .map_err(failed())?;
            let Ok(lock) = lock::open_directory(made.path(), Links::Refuse) else { continue };
            let locked = lock::share(&lock);
            if !matches!(locked, Ok(Locked::Taken)) && made.path().is_dir() {
                return Ok(Own { path: made.keep(), _lock: lock });
            }
        }
        Err(failed()(io::Error::other("others remove what is made there")))
    }

    /// Removes what dead processes have left; returns how many files and directories.
    pub(crate) fn sweep(&self) -> Result<usize, IoError> {
        let mut swept = 0;
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries.map_err(IoError::on("list", &self.directory))?,
        };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if !entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            let Ok(lock) = lock::open_directory(&path, Links::Refuse) else { continue };
            if !matches!(lock::take(&lock), Ok(Locked::Held)) {
                continue;
            }
            // Another sweeper may be at it, and a directory that cannot be emptied harms nobody.
            let left = fs::read_dir(&path).map_or(0, |files| files.count());
            if fs::remove_dir_all(&path).is_ok() {
                swept += left;
            }
        }
        Ok(swept)
    }
}

impl Drop for Temporaries {
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(own) = own.take() {
            let _ = fs::remove_dir_all(own.path);
        }
    }
}
