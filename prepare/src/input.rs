//! A regular input file's bytes, mapped or read, with the identity that tells later whether it has changed.
//!
//! A mapped file that another process truncates in the meantime kills the reader (SIGBUS), so what is short is
//! read instead: linkers and archivers replace outputs by renaming, compilers may not.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use memmap2::Mmap;

use crate::error::Error;
use crate::write::IoError;

/// Below this many bytes reading costs less than mapping.
const READ_BELOW: u64 = 64 * 1024;

/// An open input.
pub struct Input {
    bytes: Bytes,
    metadata: Metadata,
}

enum Bytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl Input {
    /// Opens a regular file. Pipes and devices are refused before they are opened, since that could block.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if !std::fs::metadata(path).map_err(IoError::on("read", path))?.is_file() {
            return Err(Error::NotRegular { path: path.to_owned() });
        }
        Self::open_regular(path).map_err(|source| Error::Io(IoError::on("read", path)(source)))
    }

    /// The same with the operating system's own error, for callers that know more of the path.
    pub(crate) fn open_regular(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let bytes = if metadata.len() < READ_BELOW {
            let mut bytes = Vec::with_capacity(metadata.len() as usize);
            (&file).read_to_end(&mut bytes)?;
            Bytes::Read(bytes)
        } else {
            // SAFETY: the mapping is private and read-only; inputs are replaced, not rewritten, while a build
            // reads them. Truncation by another process ends this one, with its outputs whole.
            Bytes::Mapped(unsafe { Mmap::map(&file)? })
        };
        Ok(Self { bytes, metadata })
    }

    /// Device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.metadata.dev(), self.metadata.ino())
    }

    /// Asks a question about the first bytes of a regular file, 16 of them or all there are.
    pub(crate) fn begins_with(path: &Path, question: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut head = Vec::with_capacity(16);
        File::open(path)?.take(16).read_to_end(&mut head)?;
        Ok(question(&head))
    }

    /// What `stat` said of the file when it was opened.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}
