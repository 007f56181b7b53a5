//! The error of a file operation: the operation, the file, the system's error and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

use crate::regular::NotRegular;

/// A file or directory that could not be read, written, renamed or removed.
#[derive(Debug, Error, Diagnostic)]
#[error("cannot {operation} {}: {source}", path.display())]
#[diagnostic(code(distlto::io), help("{}", remedy(operation, source)))]
pub struct IoError {
    /// The operation: `read`, `write`, `rename`, `remove`, `create directory`, ...
    pub operation: &'static str,
    /// The file it was tried on.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl IoError {
    /// For `map_err`: `fs::read(path).map_err(IoError::on("read", path))`.
    pub fn on(operation: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { operation, path: path.as_ref().to_owned(), source }
    }
}

fn remedy(operation: &str, error: &io::Error) -> &'static str {
    if NotRegular::is_cause(error) {
        return "a regular file belongs there: remove what is in its place, or name another path";
    }
    match error.kind() {
        io::ErrorKind::NotFound if operation == "create directory" => {
            "no directory can be made there: name another one"
        }
        io::ErrorKind::NotFound => "check the path's spelling and that the step that makes the file has run",
        io::ErrorKind::PermissionDenied => "check the permissions of the file and of its directory",
        io::ErrorKind::StorageFull => {
            "free space on this file system, or name another place (DISTLTO_CACHE for the store); earlier outputs are intact"
        }
        io::ErrorKind::ReadOnlyFilesystem => "name a place that can be written (DISTLTO_CACHE for the store)",
        _ => "nothing was changed by this step; mend the cause and run again",
    }
}
