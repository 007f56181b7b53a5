//! A regular input file's bytes, mapped or read, with the identity that shows later whether it has changed.
//!
//! A mapped file that another process truncates in the meantime kills the reader (SIGBUS), so short files are read
//! instead: linkers and archivers replace outputs by renaming, compilers may not.

use std::fs::Metadata;
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use memmap2::Mmap;

use crate::error::PrepareError;
use crate::io_error::IoError;
use crate::regular::{self, NotRegular};

/// Below this many bytes reading costs less than mapping.
const READ_BELOW: u64 = 64 * 1024;

/// An open input.
pub struct Input {
    bytes: InputBytes,
    metadata: Metadata,
}

enum InputBytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl Input {
    /// Opens a regular file.
    pub fn open(path: &Path) -> Result<Self, PrepareError> {
        Self::open_regular(path).map_err(|source| match NotRegular::is_cause(&source) {
            true => PrepareError::NotRegular { path: path.to_owned() },
            false => PrepareError::Io(IoError::on("read", path)(source)),
        })
    }

    /// The same with the operating system's own error, for callers that know more of the path.
    pub(crate) fn open_regular(path: &Path) -> io::Result<Self> {
        let (file, metadata) = regular::open(path)?;
        let bytes = if metadata.len() < READ_BELOW {
            let mut bytes = Vec::with_capacity(metadata.len() as usize);
            (&file).read_to_end(&mut bytes)?;
            InputBytes::Read(bytes)
        } else {
            // SAFETY: the mapping is private and read-only; inputs are replaced, not rewritten, while a build
            // reads them. Truncation by another process ends this one, with its outputs whole.
            InputBytes::Mapped(unsafe { Mmap::map(&file)? })
        };
        Ok(Self { bytes, metadata })
    }

    /// Device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.metadata.dev(), self.metadata.ino())
    }

    /// Asks a question about the first bytes of a regular file, 16 of them or all there are.
    pub(crate) fn begins_with(path: &Path, question: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        let mut head = Vec::with_capacity(16);
        regular::open(path)?.0.take(16).read_to_end(&mut head)?;
        Ok(question(&head))
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            InputBytes::Read(bytes) => bytes,
            InputBytes::Mapped(map) => map,
        }
    }
}
