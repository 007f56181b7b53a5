//! The manifest of an unpacked archive: the public result of `prepare`, as a value and as versioned JSON.
//!
//! Deterministic: no times, process ids or absolute paths, so equal archives give equal manifests.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::PrepareError;
use crate::json::{self, Unread};
use crate::kind::Kind;

/// The version of the JSON form that this crate writes, and the only one it reads.
pub const MANIFEST_VERSION: u32 = 1;

/// The members of an archive, in archive order, nested archives' members in their place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// One for each member, those that were not written included.
    pub members: Vec<Member>,
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its name in the archive, `inner.a(member.o)` in a nested one; control characters, `%` and bytes that are
    /// not UTF-8 are percent-encoded.
    pub name: String,
    /// Its file's name in the objects directory, a single component; `None` for one that no linker takes as an
    /// object, which is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The kind of its content in the archive.
    pub kind: Kind,
    /// The size of the written content in bytes; of the member's own content if it is not written.
    pub size: u64,
    /// blake3 of the written content in hexadecimal; `None` if it is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Versioned<M> {
    version: u32,
    members: M,
}

impl Manifest {
    /// The members that have been written, in archive order.
    pub fn written(&self) -> impl Iterator<Item = (&Member, &str)> {
        self.members.iter().filter_map(|member| Some((member, member.file.as_deref()?)))
    }

    /// The JSON form, indented, with a final newline.
    pub fn to_json(&self) -> String {
        let versioned = Versioned { version: MANIFEST_VERSION, members: &self.members };
        let mut text =
            serde_json::to_string_pretty(&versioned).expect("strings, numbers and lists serialise");
        text.push('\n');
        text
    }

    /// Reads the JSON form; `path` is named in errors. An unknown version is an error.
    pub fn from_json(path: &Path, text: &[u8]) -> Result<Self, PrepareError> {
        type Read = Versioned<Vec<Member>>;
        let read = json::read_version(text, MANIFEST_VERSION, |read: &Read| read.version.into());
        let Versioned { members, .. } = read.map_err(|unread| PrepareError::Manifest {
            path: path.to_owned(),
            problem: match unread {
                Unread::Version(found) => {
                    format!("its version is {found}, this program reads {MANIFEST_VERSION}")
                }
                Unread::Json(error) => error.to_string(),
            },
        })?;
        Ok(Self { members })
    }
}
