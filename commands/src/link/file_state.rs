//! The state of a file, by which a change of it shows: `stat`, and `lstat` where the path is a symbolic link.
//!
//! Knows nothing of what the files are for.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Time stamps may stand still for this long while a file changes: Linux ticks at 100 Hz or faster.
pub const GRAIN: Duration = Duration::from_millis(20);

/// Waits until a change of files of which the `youngest` last changed at that time would show in its time stamps, and
/// returns the time then. A build starts the link right after the last compilation, whose object could not be told from a
/// later one otherwise.
pub fn settle(youngest: Option<SystemTime>) -> SystemTime {
    let age = youngest.and_then(|youngest| SystemTime::now().duration_since(youngest).ok());
    if let Some(left) = age.and_then(|age| (GRAIN + GRAIN / 4).checked_sub(age)) {
        std::thread::sleep(left);
    }
    SystemTime::now()
}

/// The state of a path that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    path: PathBuf,
    target: Status,
    /// Of the path itself, where it is a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<Status>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Status {
    size: u64,
    modified: i128,
    changed: i128,
    inode: u64,
    device: u64,
}

impl Status {
    fn of(found: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            size: found.size(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            changed: nanoseconds(found.ctime(), found.ctime_nsec()),
            inode: found.ino(),
            device: found.dev(),
        }
    }
}

impl FileState {
    /// Of a path that exists.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let (target, link) = match found.is_symlink() {
            true => (Status::of(&fs::metadata(path).ok()?), Some(Status::of(&found))),
            false => (Status::of(&found), None),
        };
        Some(Self { path: path.to_owned(), target, link })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still has this state.
    pub fn holds(&self) -> bool {
        Self::of(&self.path).as_ref() == Some(self)
    }

    /// When it last changed, by its own times.
    pub fn youngest(&self) -> SystemTime {
        let statuses = self.link.iter().chain([&self.target]);
        let latest = statuses.map(|status| status.modified.max(status.changed)).max().unwrap_or(0);
        // Times before 1970 are old enough.
        UNIX_EPOCH + Duration::from_nanos(u64::try_from(latest).unwrap_or(0))
    }

    /// Whether a change at `time` or after it would show.
    pub fn is_older_than(&self, time: SystemTime) -> bool {
        let limit = (time - GRAIN).duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let old = |status: &Status| status.modified < limit && status.changed < limit;
        old(&self.target) && self.link.as_ref().is_none_or(old)
    }
}
