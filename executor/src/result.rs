//! The result of an action: its keys, its outputs, its command's standard error and its cost.
//!
//! It has the contents of REAPI's `ActionResult` (output files with digest, size and executable bit, `stderr_raw`,
//! execution metadata). Either can be made from the other. Independent of caches.

use std::path::Path;
use std::time::SystemTime;

use distlto_prepare::blobs::BlobDigest;
use distlto_prepare::frame::Framed;
use distlto_record::report::Measured;
use serde::{Deserialize, Serialize};

use crate::output::Role;

/// The key of a result: a SHA-256 digest of everything that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub BlobDigest);

impl Key {
    /// Returns the key of a result that may also depend on files of a directory.
    pub fn in_directory(&self, directory: &Path) -> Self {
        let mut framed = Framed::new("distlto result of a directory 1");
        framed.add("key", self.0);
        framed.add("directory", directory.as_os_str().as_encoded_bytes());
        Self(framed.finish().hash)
    }
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionResult {
    /// The module id, for people.
    pub module: String,
    /// In the order of the action.
    pub outputs: Vec<OutputFile>,
    /// The command's standard error.
    pub stderr: Vec<u8>,
    /// Cost of the run that made the result.
    pub measured: Measured,
    /// When it was stored, to the second.
    pub created: SystemTime,
    /// Further text of its owner.
    pub note: String,
}

/// One output of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Its required kind.
    pub role: Role,
    /// Its path as the command named it, for people.
    pub name: String,
    /// SHA-256 of its content.
    #[serde(rename = "sha256", with = "hexadecimal")]
    pub digest: BlobDigest,
    /// In bytes.
    pub size: u64,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// Digests as text.
mod hexadecimal {
    use distlto_prepare::blobs::{BlobDigest, from_hex, hex};
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(digest: &BlobDigest, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&hex(digest))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BlobDigest, D::Error> {
        let text = String::deserialize(from)?;
        from_hex(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no digest")))
    }
}

/// A verified output that is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewOutput<'a> {
    /// Its required kind.
    pub role: Role,
    /// Its path as the command names it, for people.
    pub name: &'a str,
    /// Its file at this moment.
    pub file: &'a Path,
}

/// A verified result that is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewResult<'a> {
    /// The module id, for people.
    pub module: &'a str,
    /// In the order of the action.
    pub outputs: &'a [NewOutput<'a>],
    /// The command's standard error.
    pub stderr: &'a [u8],
    /// Cost of the run.
    pub measured: Measured,
    /// Whether it came from an engine, which has cached it by itself.
    pub by_engine: bool,
    /// Whether nobody observed the command's reads.
    pub is_unobserved: bool,
    /// Further text of its owner.
    pub note: &'a str,
}
