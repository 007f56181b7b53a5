//! The state of an objects directory after the last run: which files are ours, and how to see cheaply that none has
//! changed.
//!
//! Private to this crate and rewritten freely: a record that cannot be read counts as none. `stat` is only the
//! shortcut; a time within two seconds of the run that noted it proves nothing (as in git's index), so content is
//! compared then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::input::Input;
use crate::io_error::IoError;
use crate::manifest::{Manifest, Member};
use crate::names;
use crate::regular;
use crate::write;

const FILE: &str = ".distlto-unpacked.json";
const VERSION: u32 = 2;
/// The coarsest clock among file systems in use (FAT).
const RACY_NANOSECONDS: i128 = 2_000_000_000;

/// A run's result and the state of every file it depends on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UnpackRecord {
    version: u32,
    pub fat_lto: bool,
    pub architecture: Option<String>,
    /// When the run began, in nanoseconds since 1970.
    pub began: i128,
    /// Every file that was read, the archive first; empty while a run is under way.
    pub sources: Vec<MemberSource>,
    /// Our files in the directory; the state of those that have been written.
    pub files: BTreeMap<String, Option<FileStamp>>,
    pub manifest: Manifest,
    /// The digest of each file, from the manifest.
    #[serde(skip)]
    digests: HashMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberSource {
    pub path: String,
    pub state: FileStamp,
}

/// The part of a file's `stat` that changes with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    inode: u64,
    size: u64,
    modified: i128,
}

impl MemberSource {
    /// An input as it was opened; `None` if its path has no JSON form.
    pub(crate) fn of(path: &Path, input: &Input) -> Option<Self> {
        Some(Self { path: path.to_str()?.to_owned(), state: FileStamp::of(input.metadata()) })
    }
}

impl FileStamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { inode: metadata.ino(), size: metadata.len(), modified }
    }

    /// Whether the file is as it was, and was old enough at the time that a later change would show.
    fn still_holds(self, path: &Path, began: i128) -> bool {
        self.modified + RACY_NANOSECONDS <= began
            && std::fs::metadata(path).is_ok_and(|found| found.is_file() && Self::of(&found) == self)
    }
}

/// The time for [`UnpackRecord::began`].
pub(crate) fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_nanos() as i128)
}

impl UnpackRecord {
    pub(crate) fn new(fat_lto: bool, architecture: Option<&str>, began: i128) -> Self {
        let architecture = architecture.map(str::to_owned);
        Self { version: VERSION, fat_lto, architecture, began, ..Self::default() }
    }

    /// The record in `directory`; an empty one if there is none that can be trusted.
    pub(crate) fn load(directory: &Path) -> Self {
        let read = regular::read(&directory.join(FILE)).ok();
        let record: Option<Self> = read.and_then(|json| serde_json::from_slice(&json).ok());
        let trusted = record.filter(|record| record.version == VERSION && record.names_are_safe());
        let mut record = trusted.unwrap_or_default();
        let digest = |(member, file): (&Member, &str)| Some((file.to_owned(), member.digest.clone()?));
        record.digests = record.manifest.written().filter_map(digest).collect();
        record
    }

    /// The names are used to remove files, and the record lies where others can write.
    fn names_are_safe(&self) -> bool {
        let written = self.manifest.written().map(|(_, file)| file);
        self.files.keys().map(String::as_str).chain(written).all(names::is_member_file_name)
    }

    pub(crate) fn save(&self, directory: &Path) -> Result<(), IoError> {
        let json = serde_json::to_vec(self).expect("strings, numbers and maps with string keys serialise");
        write::write_atomically(&directory.join(FILE), &json)
    }

    /// The recorded manifest, if it was made with the same options from the same files and its files are untouched.
    pub(crate) fn unchanged(&self, current: &Self, archive: &Path, directory: &Path) -> Option<&Manifest> {
        let same = self.fat_lto == current.fat_lto
            && self.architecture == current.architecture
            && self.sources.first().is_some_and(|source| Path::new(&source.path) == archive)
            && self
                .sources
                .iter()
                .all(|source| source.state.still_holds(Path::new(&source.path), self.began))
            && self.files.iter().all(|(file, _)| self.is_untouched(directory, file));
        same.then_some(&self.manifest)
    }

    /// The digest that our file was left with.
    pub(crate) fn digest_of(&self, file: &str) -> Option<&String> {
        self.digests.get(file)
    }

    /// Whether our file is as it was left, by `stat` alone.
    pub(crate) fn is_untouched(&self, directory: &Path, file: &str) -> bool {
        self.files.get(file).copied().flatten().is_some_and(|state| {
            let path = directory.join(file);
            !path.is_symlink() && state.still_holds(&path, self.began)
        })
    }

    /// Our files that are not among `names`.
    pub(crate) fn stale<'a>(&'a self, names: &BTreeSet<&str>) -> Vec<&'a str> {
        self.files.keys().map(String::as_str).filter(|file| !names.contains(file)).collect()
    }
}
