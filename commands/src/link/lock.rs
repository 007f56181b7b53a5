//! One run at a time for one output: an advisory lock on the state directory.
//!
//! The lock file holds the number of the process while it runs. The kernel drops the lock when a process dies, so a
//! number that is found under a free lock is one of a run that was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;

use distlto_planner::state::Place;
use distlto_prepare::lock::{self, Locked};
use distlto_prepare::regular::{self, Links};
use distlto_prepare::write::IoError;
use miette::Diagnostic;
use thiserror::Error;

/// Another run holds the output.
#[derive(Debug, Error, Diagnostic)]
#[error("another link is writing the same output: process {holder} holds {}", path.display())]
#[diagnostic(
    code(distlto::busy),
    help(
        "let one build step make each output; if both are wanted, run this one again when the other has ended"
    )
)]
pub struct Busy {
    /// The lock file.
    pub path: PathBuf,
    /// The other process.
    pub holder: String,
}

/// Why the lock is not held.
#[derive(Debug, Error, Diagnostic)]
pub enum LockError {
    /// The lock file could not be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// Another run holds it.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Busy(#[from] Busy),
}

/// The lock; released when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// Whether the run before this one was killed.
    pub after_crash: bool,
}

impl Lock {
    /// Takes the lock of a state directory, which is made if missing.
    pub fn take(directory: &str) -> Result<Self, LockError> {
        fs::create_dir_all(directory).map_err(IoError::on("create directory", directory))?;
        let path = Place::Lock.path(directory);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let (mut file, _) =
            regular::open_with(&mut options, Links::Refuse, &path).map_err(IoError::on("write", &path))?;
        let mut holder = String::new();
        let taken = lock::take(&file).map_err(IoError::on("lock", &path))?;
        // Text that is not a number is no process to name.
        let _ = file.read_to_string(&mut holder);
        let holder = holder.trim().to_owned();
        match taken {
            Locked::Held => {}
            Locked::Taken => return Err(Busy { path, holder }.into()),
            Locked::Impossible => {
                return Err(IoError::on("lock", path)(std::io::ErrorKind::Unsupported.into()).into());
            }
        }
        let lock = Self { file, after_crash: !holder.is_empty() };
        lock.write(&format!("{}\n", std::process::id())).map_err(IoError::on("write", &path))?;
        Ok(lock)
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A number that stays makes the next run sweep, which finds nothing.
        let _ = self.write("");
    }
}
