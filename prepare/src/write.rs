//! The one way files are written: beside their place, then renamed; and only when the content differs.
//!
//! A killed run leaves the old file or the new one. A temporary's name begins with [`TEMPORARY_PREFIX`],
//! so the next run can tell it from everything else and sweep it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

/// How the name of every temporary file of distlto begins.
pub const TEMPORARY_PREFIX: &str = ".distlto-tmp-";

/// A file or directory that could not be read, written, renamed or removed.
#[derive(Debug, Error, Diagnostic)]
#[error("cannot {operation} {}: {source}", path.display())]
#[diagnostic(code(distlto::io), help("{}", remedy(source)))]
pub struct IoError {
    /// What was tried: `read`, `write`, `rename`, `remove`, `create directory`, ...
    pub operation: &'static str,
    /// The file it was tried on.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

impl IoError {
    /// For `map_err`: `fs::read(path).map_err(IoError::on("read", path))`.
    pub fn on(operation: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { operation, path: path.as_ref().to_owned(), source }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the path's spelling and that the step that makes the file has run",
        io::ErrorKind::PermissionDenied => "check the permissions of the file and of its directory",
        io::ErrorKind::StorageFull => {
            "free space on this file system, or put the output elsewhere; earlier outputs are intact"
        }
        io::ErrorKind::ReadOnlyFilesystem => "put the output on a file system that can be written",
        _ => "nothing was changed by this step; mend the cause and run again",
    }
}

/// Writes `bytes` to `path` atomically, making its parent directories, unless it holds them already.
/// Returns whether the file was written.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, IoError> {
    if holds(path, bytes)? {
        return Ok(false);
    }
    write_atomically(path, bytes)?;
    Ok(true)
}

/// Whether `path` is a regular file with exactly this content.
fn holds(path: &Path, bytes: &[u8]) -> Result<bool, IoError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() == bytes.len() as u64 => {
            Ok(fs::read(path).map_err(IoError::on("read", path))? == bytes)
        }
        _ => Ok(false),
    }
}

/// Writes `bytes` to a temporary beside `path` and renames it into place, making parent directories.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), IoError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(default_permissions())
        .tempfile_in(parent)
        .map_err(IoError::on("write", path))?;
    file.write_all(bytes).map_err(IoError::on("write", path))?;
    file.persist(path).map_err(|error| IoError::on("rename into place", path)(error.error))?;
    Ok(())
}

/// What `open(2)` with mode 0666 gives under the process's umask; tempfile's own default is 0600.
fn default_permissions() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o666)
}
