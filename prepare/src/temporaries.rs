//! A directory for temporaries that many processes share and that the next one sweeps.
//!
//! Each process writes into a subdirectory of its own ([`crate::run_directory`]). On a file system without locks nothing is
//! swept, and nobody is harmed.

use crate::mutex::lock;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::io_error::IoError;
use crate::run_directory::{self, RunDirectory};
use crate::write;

/// The shared directory, and this process's own one in it once something has been written.
#[derive(Debug)]
pub(crate) struct Temporaries {
    directory: PathBuf,
    own: Mutex<Option<RunDirectory>>,
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(IoError::on("list", &self.directory)(error)),
            Ok(_) => {}
        }
        let mut swept = 0;
        run_directory::sweep_all(&self.directory, |path| {
            // Another sweeper may be at it, and a directory that cannot be emptied harms nobody.
            let left = fs::read_dir(path).map_or(0, |files| files.count());
            if fs::remove_dir_all(path).is_ok() {
                swept += left;
            }
        });
        Ok(swept)
    }
}
