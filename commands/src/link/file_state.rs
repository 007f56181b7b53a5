//! The state of a file, by which a change shows: `stat`, and `lstat` where the path is a symbolic link.
//!
//! Does not depend on the purpose of the files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use distlto_executor::undeclared::GRAIN;
use distlto_planner::digests::Digest;
use distlto_prepare::file_status::FileStatus;
use distlto_prepare::regular;
use serde::{Deserialize, Serialize};

/// Most bytes to read of young files; for more, the start waits until a change of them would show.
const READ: u64 = 4 << 20;

/// The start of a link, with the contents of files that changed shortly before. Their time stamps may not show a
/// further change: a build starts the link right after the last compilation.
#[derive(Debug)]
pub struct Start {
    at: SystemTime,
    young: HashMap<PathBuf, Digest>,
}

impl Start {
    /// Here and now, with files that the link will read: path, size, and when it changed. Waits where reading would
    /// take longer.
    pub fn with<'p>(files: impl Iterator<Item = (&'p Path, u64, SystemTime)>) -> Self {
        let at = SystemTime::now();
        let young: Vec<_> = files.filter(|(_, _, changed)| left(*changed, at).is_some()).collect();
        if young.iter().map(|(_, size, _)| size).sum::<u64>() > READ {
            let youngest = young.iter().map(|(_, _, changed)| *changed).max();
            youngest.into_iter().for_each(settle);
            return Self { at: SystemTime::now(), young: HashMap::new() };
        }
        let content = |(path, ..): (&Path, _, _)| Some((path.to_owned(), content(path)?));
        Self { at, young: young.into_iter().filter_map(content).collect() }
    }

    /// Whether a file is unchanged since the start: by its times, or by its content once a change would show.
    fn knows(&self, file: &FileState) -> bool {
        let is_same = |before: &Digest| {
            settle(file.youngest());
            content(file.path()).as_ref() == Some(before)
        };
        file.is_older_than(self.at) || self.young.get(file.path()).is_some_and(is_same)
    }

    /// Whether a file is as it was at the start and when its state was taken.
    pub fn holds(&self, file: &FileState) -> bool {
        self.knows(file) && file.holds()
    }
}

fn content(path: &Path) -> Option<Digest> {
    Some(Digest::of(&regular::read(path).ok()?))
}

/// For how long a change at `now` of a file that changed at that time may not show.
fn left(changed: SystemTime, now: SystemTime) -> Option<Duration> {
    (GRAIN + GRAIN / 4).checked_sub(now.duration_since(changed).ok()?)
}

/// Waits until a change of a file that changed at that time shows.
fn settle(changed: SystemTime) {
    if let Some(left) = left(changed, SystemTime::now()) {
        std::thread::sleep(left);
    }
}

/// The state of a path that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    path: PathBuf,
    target: FileStatus,
    /// Of the path itself, where it is a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<FileStatus>,
}

impl FileState {
    /// Of a path that exists.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let (target, link) = match found.is_symlink() {
            true => (FileStatus::of(&fs::metadata(path).ok()?)?, Some(FileStatus::of(&found)?)),
            false => (FileStatus::of(&found)?, None),
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

    /// Whether another name of the path has this state.
    pub fn holds_at(&self, path: &Path) -> bool {
        Self::of(path).is_some_and(|found| (found.target, found.link) == (self.target, self.link))
    }

    /// When it last changed, by its own times.
    pub fn youngest(&self) -> SystemTime {
        let statuses = self.link.iter().chain([&self.target]);
        let latest = statuses.map(FileStatus::youngest).max().unwrap_or(0);
        // Times before 1970 are old enough.
        UNIX_EPOCH + Duration::from_nanos(u64::try_from(latest).unwrap_or(0))
    }

    /// Whether a change at `time` or after it would show.
    pub fn is_older_than(&self, time: SystemTime) -> bool {
        let limit = (time - GRAIN).duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        let old = |status: &FileStatus| status.youngest() < limit;
        old(&self.target) && self.link.as_ref().is_none_or(old)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileState, Start};
    use std::fs;

    #[test]
    fn a_file_that_was_just_written_is_known_by_its_content() {
        let place = tempfile::tempdir().expect("a directory");
        let [kept, changed] = ["kept", "changed"].map(|name| {
            let path = place.path().join(name);
            fs::write(&path, "one").expect("written");
            path
        });
        let states = || [&kept, &changed].map(|path| FileState::of(path).expect("a file"));
        let of = |state: &FileState| (state.path().to_owned(), state.target.size, state.youngest());
        let before = states().map(|state| of(&state));
        let start = Start::with(before.iter().map(|(path, size, changed)| (path.as_path(), *size, *changed)));
        fs::write(&changed, "two").expect("written");
        let [kept, changed] = states();
        assert!(start.holds(&kept));
        assert!(!start.holds(&changed));
    }
}
