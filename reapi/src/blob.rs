//! A blob that can be uploaded: its digest, and where its bytes are.
//!
//! A file is named, not held: its bytes are read when they are sent. Knows nothing of networks.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use prost::bytes::Bytes;

use crate::digest::Digest;
use crate::error::Error;

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

    /// All of it, checked. For small ones. May block.
    pub(crate) fn read(&self) -> Result<Bytes, Error> {
        let bytes = match &self.source {
            Source::Bytes(bytes) => bytes.clone(),
            Source::File(path) => {
                let mut bytes = Vec::with_capacity(usize::try_from(self.digest.size).unwrap_or(0));
                // One byte more than there should be shows that the file has grown.
                let most = self.digest.size.saturating_add(1);
                let read = File::open(&**path).and_then(|file| file.take(most).read_to_end(&mut bytes));
                read.map_err(|error| self.unreadable(error))?;
                bytes.into()
            }
        };
        if Digest::of(&bytes) == self.digest { Ok(bytes) } else { Err(self.changed()) }
    }

    /// A reader of all of it that blocks.
    pub(crate) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        match &self.source {
            Source::Bytes(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
            Source::File(path) => Ok(Box::new(File::open(&**path)?)),
        }
    }

    fn place(&self) -> PathBuf {
        match &self.source {
            Source::File(path) => path.to_path_buf(),
            Source::Bytes(_) => "a blob in memory".into(),
        }
    }

    /// The error of a blob whose file cannot be read.
    pub(crate) fn unreadable(&self, error: io::Error) -> Error {
        Error::Io { path: self.place(), source: Arc::new(error) }
    }

    /// The error of a blob whose bytes do not have its digest.
    pub(crate) fn changed(&self) -> Error {
        Error::Changed { place: self.place().display().to_string(), digest: self.digest }
    }
}
