//! The status of a file, by which a change of its content shows (stat(2)).
//!
//! Does not depend on what the files are for.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// The parts of a file's status that distinguish one content from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStatus {
    /// Bytes.
    pub size: u64,
    /// When its content changed, in nanoseconds since 1970.
    pub modified: i64,
    /// When it changed in any way, likewise. No program sets this time.
    pub changed: i64,
    /// Its number on the device.
    pub inode: u64,
    /// The device.
    pub device: u64,
}

impl FileStatus {
    /// `None` for times that do not fit, which are then never trusted.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let nanoseconds = |seconds: i64, rest: i64| seconds.checked_mul(1_000_000_000)?.checked_add(rest);
        Some(Self {
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec())?,
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec())?,
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    /// The later of both times.
    pub fn youngest(&self) -> i64 {
        self.modified.max(self.changed)
    }
}
