//! A directory for the files of one thin link, fresh for each run and gone after it.
//!
//! It lies in memory where there is room, since a thin link writes two files for each module and most are then found
//! unchanged. The state directory holds a link to it, so that the next run can remove the files of a killed one.

use std::fs;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;

/// A file system in memory that Linux systems have.
const MEMORY: &str = "/dev/shm";
/// How the directory's name begins; only such directories are swept.
const PREFIX: &str = "distlto-thin-link-";
/// More than the shard and import list of one module take, in bytes.
const ROOM_FOR_A_MODULE: u64 = 256 * 1024;

/// A fresh directory.
#[derive(Debug)]
pub struct Scratch {
    directory: tempfile::TempDir,
    path: String,
    pointer: PathBuf,
}

impl Scratch {
    /// Makes the directory for a thin link of this many modules, after removing the files of an earlier run.
    pub fn new(state: &Path, modules: usize) -> Result<Self, IoError> {
        fs::create_dir_all(state).map_err(IoError::on("create directory", state))?;
        let pointer = state.join("scratch");
        sweep(&pointer)?;
        let needed = ROOM_FOR_A_MODULE.saturating_mul(modules as u64);
        let memory = Path::new(MEMORY);
        let parent = if room_in(memory) > needed { memory } else { state };
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(parent)
            .or_else(|_| tempfile::Builder::new().prefix(PREFIX).tempdir_in(state))
            .map_err(IoError::on("create directory", state))?;
        let absolute =
            std::path::absolute(directory.path()).map_err(IoError::on("find", directory.path()))?;
        std::os::unix::fs::symlink(&absolute, &pointer).map_err(IoError::on("create", &pointer))?;
        // A semicolon splits the linker's option, so such a state directory is reached by another way.
        let path = match directory.path().to_str() {
            Some(path) if !path.contains(';') => path.to_owned(),
            _ => return Self::elsewhere(pointer),
        };
        Ok(Self { directory, path, pointer })
    }

    /// Makes the directory elsewhere, for a state directory with a name that the linker's option cannot hold.
    fn elsewhere(pointer: PathBuf) -> Result<Self, IoError> {
        let parent = std::env::temp_dir();
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            .map_err(IoError::on("create directory", &parent))?;
        remove(&pointer)?;
        std::os::unix::fs::symlink(directory.path(), &pointer).map_err(IoError::on("create", &pointer))?;
        let path = directory.path().display().to_string();
        Ok(Self { directory, path, pointer })
    }

    /// The directory, as the linker is given it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Removes the directory.
    pub fn close(self) -> Result<(), IoError> {
        let path = self.directory.path().to_owned();
        self.directory.close().map_err(IoError::on("remove", path))?;
        remove(&self.pointer)
    }
}

/// Bytes that may be written below a directory; 0 where there is none.
fn room_in(directory: &Path) -> u64 {
    match rustix::fs::statvfs(directory) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize) / 2,
        Err(_) => 0,
    }
}

/// Removes the files of a killed run: the pointer, and its target directory if the name is one of ours.
fn sweep(pointer: &Path) -> Result<(), IoError> {
    let Ok(target) = fs::read_link(pointer) else { return Ok(()) };
    let ours = target.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
    if ours && target.is_dir() {
        fs::remove_dir_all(&target).map_err(IoError::on("remove", &target))?;
    }
    remove(pointer)
}
