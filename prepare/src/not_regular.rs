//! The kind of a file in the place of a regular one, for an error.

use std::error::Error;
use std::fmt;
use std::fs::FileType;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;

/// The kind of a file in the place of a regular one; the cause of an [`io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRegular(&'static str);

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not a regular file but {}", self.0)
    }
}

impl Error for NotRegular {}

impl NotRegular {
    /// Whether an error is one of this kind.
    pub fn is_cause(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }

    pub(crate) fn of(kind: FileType) -> io::Error {
        let what = match kind {
            kind if kind.is_dir() => "a directory",
            kind if kind.is_fifo() => "a named pipe",
            kind if kind.is_socket() => "a socket",
            kind if kind.is_symlink() => "a symbolic link",
            _ => "a device",
        };
        // Callers that repair damage treat it as damage.
        io::Error::new(ErrorKind::InvalidData, Self(what))
    }
}
