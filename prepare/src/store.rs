//! A content-addressed store of member files, so that an unmodified archive is never unpacked twice.
//!
//! Knows digests and bytes, nothing of archives.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::write::{self, IoError};

/// An open store.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// Opens the store in `directory`, making it if missing.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(directory).map_err(IoError::on("create directory", directory))?;
        Ok(Self { root: directory.to_owned() })
    }

    /// Makes `path` a file that holds `bytes`, whose digest the caller has computed.
    pub(crate) fn place(&self, _digest: &blake3::Hash, bytes: &[u8], path: &Path) -> Result<(), IoError> {
        write::write_if_changed(path, bytes).map(drop)
    }
}
