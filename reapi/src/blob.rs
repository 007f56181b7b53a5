//! A blob that can be uploaded: its digest, and where its bytes are.
//!
//! A file is named, not held: its bytes are read when they are sent. Knows nothing of networks.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use prost::bytes::Bytes;

use crate::digest::Digest;

/// A blob, and where its bytes are. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Blob {
    digest: Digest,
    source: Source,
}

/// Where the bytes of a blob are.
#[derive(Debug, Clone)]
pub enum Source {
    /// In memory.
    Bytes(Bytes),
    /// In a file.
    File(Arc<PathBuf>),
}

impl Blob {
    /// Bytes in memory.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { digest: Digest::of(&bytes), source: Source::Bytes(bytes) }
    }

    /// Returns a blob of bytes in memory; the caller knows their digest.
    pub fn named(digest: Digest, bytes: impl Into<Bytes>) -> Self {
        Self { digest, source: Source::Bytes(bytes.into()) }
    }

    /// Returns a blob of a file; the caller knows its digest. It is read when it is sent, and refused if it has changed
    /// by then.
    pub fn file(digest: Digest, path: impl Into<PathBuf>) -> Self {
        Self { digest, source: Source::File(Arc::new(path.into())) }
    }

    /// Its name.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Where its bytes are.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// All of it, unchecked. For small ones. May block.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        match &self.source {
            Source::Bytes(bytes) => Ok(bytes.clone()),
            Source::File(path) => {
                let mut bytes = Vec::with_capacity(usize::try_from(self.digest.size).unwrap_or(0));
                // One byte more than there should be shows that the file has grown.
                File::open(&**path)?.take(self.digest.size.saturating_add(1)).read_to_end(&mut bytes)?;
                Ok(bytes.into())
            }
        }
    }

    /// A reader of all of it that blocks.
    pub(crate) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        match &self.source {
            Source::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
            Source::File(path) => Ok(Box::new(File::open(&**path)?)),
        }
    }
}
