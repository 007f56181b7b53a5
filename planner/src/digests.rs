//! Content digests of files, with a cache of them by path, size, times, inode and device.
//!
//! A file is read once per run, and not at all when a trusted cache entry still fits its status. Digests have the form
//! of the Remote Execution API, so that the decision to run again, the local cache and a remote one share them. Does
//! not depend on the purpose of the files. The cache's format is distlto's own: a header line, entries, and a digest
//! of both, so that a damaged cache is noticed and left unused.

mod cache;

use std::collections::HashMap;
use std::fs::Metadata;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::file_status::FileStatus;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::regular;
use distlto_prepare::write::write_if_changed;
use rayon::prelude::*;

pub use distlto_prepare::digest::{Digest, Hasher};

/// How long before a file is hashed it must have come to rest, for its status to stand for its content:
/// a file can change twice within one tick of a file system's clock. Nanoseconds.
const REST: i64 = 50_000_000;

/// The most that is read at once, in bytes.
const READ: u64 = 256 << 10;

/// Runs that an entry is kept for without being asked for.
const RUNS_KEPT: u8 = 8;

/// Whether a file was at rest at a time, so that any later change shows in its status.
fn rests_at(status: FileStatus, time: i64) -> bool {
    status.youngest().checked_add(REST).is_some_and(|rest| rest <= time)
}

/// A file's digest and when it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remembered {
    /// `None` when the digest is good for this run only.
    status: Option<FileStatus>,
    digest: Digest,
    /// Runs since the entry was asked for.
    unused: u8,
}

/// A file's status at this run's first look.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// `None` without a comparable status: not a file, or times that do not fit.
    status: Option<FileStatus>,
    /// Whether any later change shows in the status.
    rested: bool,
}

impl Look {
    fn of(metadata: &Metadata, time: i64) -> Self {
        let status = FileStatus::of(metadata).filter(|_| metadata.is_file());
        Self { status, rested: status.is_none_or(|status| rests_at(status, time)) }
    }
}

/// One path's entry.
#[derive(Debug, Default)]
struct Slot {
    look: Option<Look>,
    entry: Option<Remembered>,
    /// Whether the entry was compared with the file in this run.
    settled: bool,
    /// Whether the cache that was loaded holds the entry, with this age.
    saved: bool,
}

const SHARDS: usize = 64;

type Slots = HashMap<Utf8PathBuf, Arc<Mutex<Slot>>>;

/// The digests of files, for use from many threads.
///
/// A digest stays as it is from its first request until [`forget`](Self::forget): within a run, an input has the
/// content of the run's first look. Memory grows with the number of paths, not with their sizes.
#[derive(Debug)]
pub struct FileDigests {
    root: PathBuf,
    /// Entries of the cache that was loaded.
    loaded: usize,
    hasher: RandomState,
    shards: Vec<Mutex<Slots>>,
}

impl FileDigests {
    /// No digests so far. Relative paths are taken from `root`; an empty `root` is the working directory.
    pub fn new(root: &Path) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { root: root.to_owned(), loaded: 0, hasher: RandomState::new(), shards }
    }

    /// Loads the digests that an earlier run saved in `cache`. An unusable cache costs only time, so it is no error;
    /// the second value then describes the problem. A missing cache is no problem.
    pub fn load(cache: &Path, root: &Path) -> (Self, Option<String>) {
        let mut digests = Self::new(root);
        let bytes = match regular::read(cache) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (digests, None),
            Err(error) => return (digests, Some(format!("cannot read {}: {error}", cache.display()))),
        };
        match cache::decode(&bytes) {
            Ok(entries) => {
                digests.loaded = entries.len();
                entries.into_par_iter().with_min_len(64).for_each(|(path, entry)| {
                    let slot = Slot { look: None, entry: Some(entry), settled: false, saved: true };
                    lock(digests.shard(&path)).insert(path, Arc::new(Mutex::new(slot)));
                });
                (digests, None)
            }
            Err(reason) => (digests, Some(format!("{} is not used: {reason}", cache.display()))),
        }
    }

    /// Removes the entries of a cache that no longer fit their files, and returns their number. An unusable cache
    /// stays.
    pub fn prune(cache: &Path, root: &Path) -> Result<usize, IoError> {
        let Ok(mut entries) = cache::decode(&regular::read(cache).unwrap_or_default()) else { return Ok(0) };
        let all = entries.len();
        entries.retain(|(path, entry)| {
            std::fs::metadata(root.join(path)).is_ok_and(|found| FileStatus::of(&found) == entry.status)
        });
        if entries.len() < all {
            write_if_changed(cache, &cache::encode(&entries))?;
        }
        Ok(all - entries.len())
    }

    /// Saves the entries that the next run may trust, if they differ from those in `cache`.
    pub fn save(&self, cache: &Path) -> Result<(), IoError> {
        let mut entries = Vec::new();
        let mut same = 0;
        for shard in &self.shards {
            for (path, slot) in lock(shard).iter() {
                let slot = lock(slot);
                if let Some(entry @ Remembered { status: Some(_), .. }) = slot.entry {
                    let unused = if slot.settled { 0 } else { entry.unused.saturating_add(1) };
                    if unused < RUNS_KEPT {
                        same += usize::from(slot.saved && unused == entry.unused);
                        entries.push((path.clone(), Remembered { unused, ..entry }));
                    }
                }
            }
        }
        // The run after one that ran nothing finds all as it was, and need not put hundreds of thousands of
        // entries in order to see it.
        if same == self.loaded && same == entries.len() && self.loaded > 0 {
            return Ok(());
        }
        entries.par_sort_unstable_by(|one, other| one.0.cmp(&other.0));
        write_if_changed(cache, &cache::encode(&entries)).map(drop)
    }

    /// The digest of a file's content. A directory is an error; a device stands for its number.
    pub fn digest(&self, path: &Utf8Path) -> Result<Digest, IoError> {
        let slot = self.slot(path);
        let mut slot = lock(&slot);
        if let (true, Some(entry)) = (slot.settled, slot.entry) {
            return Ok(entry.digest);
        }
        let (entry, look) = self.settle(path, slot.entry)?;
        let saved = slot.saved && slot.entry == Some(entry);
        *slot = Slot { look: Some(slot.look.unwrap_or(look)), entry: Some(entry), settled: true, saved };
        Ok(entry.digest)
    }

    /// Reads a file once, and returns its content and digest. Fails if this run found another content in it before.
    pub fn read(&self, path: &Utf8Path) -> Result<(Vec<u8>, Digest), IoError> {
        let slot = self.slot(path);
        let mut slot = lock(&slot);
        let full = self.root.join(path);
        let mut bytes = Vec::new();
        let (found, look) =
            hash(&full, |piece| bytes.extend_from_slice(piece)).map_err(IoError::on("read", &full))?;
        match slot.entry.filter(|_| slot.settled) {
            Some(entry) if entry.digest == found.digest => {}
            Some(_) => return Err(IoError::on("read", &full)(io::Error::other("it has changed"))),
            None => {
                let look = Some(slot.look.unwrap_or(look));
                *slot = Slot { look, entry: Some(found), settled: true, saved: false };
            }
        }
        Ok((bytes, found.digest))
    }

    /// Looks at a file's status, if this run has not yet, for [`is_unchanged`](Self::is_unchanged).
    pub fn watch(&self, path: &Utf8Path) -> Result<(), IoError> {
        let slot = self.slot(path);
        let mut slot = lock(&slot);
        if slot.look.is_none() {
            let full = self.root.join(path);
            let metadata = std::fs::metadata(&full).map_err(IoError::on("read", &full))?;
            slot.look = Some(Look::of(&metadata, now()));
        }
        Ok(())
    }

    /// Returns whether a file is unchanged since this run's first look; a file without a look counts as unchanged. A
    /// file that has its digest and had changed just before the look is read again, since its status may hide another
    /// change.
    pub fn is_unchanged(&self, path: &Utf8Path) -> Result<bool, IoError> {
        let slot = self.slot(path);
        let mut slot = lock(&slot);
        let Some(look) = slot.look else { return Ok(true) };
        let full = self.root.join(path);
        let metadata = match std::fs::metadata(&full) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(IoError::on("read", &full)(error)),
        };
        if look.status != Look::of(&metadata, now()).status {
            return Ok(false);
        }
        let Some(entry) = slot.entry.filter(|_| slot.settled && !look.rested) else { return Ok(true) };
        let (found, look) = hash(&full, |_| ()).map_err(IoError::on("read", &full))?;
        if found.digest != entry.digest {
            return Ok(false);
        }
        *slot = Slot { look: Some(look), entry: Some(found), settled: true, saved: false };
        Ok(true)
    }

    /// The digests of many files, in their order, found on all threads of the current rayon pool.
    pub fn digest_all<P: AsRef<Utf8Path> + Sync>(&self, paths: &[P]) -> Vec<Result<Digest, IoError>> {
        paths.par_iter().with_min_len(16).map(|path| self.digest(path.as_ref())).collect()
    }

    /// Files that have just been written, each with its content.
    pub fn written<'f>(
        &self,
        files: impl IntoIterator<Item = &'f Utf8Path>,
    ) -> Result<Vec<(String, String)>, IoError> {
        let content = |path: &Utf8Path| {
            self.forget(path);
            Ok((path.to_string(), self.digest(path)?.to_string()))
        };
        files.into_iter().map(content).collect()
    }

    /// Returns whether files still have their recorded digests.
    pub fn hold(&self, files: &[(String, String)]) -> bool {
        let holds = |(path, content): &(String, String)| {
            self.digest(Utf8Path::new(path)).is_ok_and(|found| found.to_string() == *content)
        };
        files.iter().all(holds)
    }

    /// Forgets one file's digest, because the caller has let something write the file.
    pub fn forget(&self, path: &Utf8Path) {
        lock(self.shard(path)).remove(path);
    }

    fn slot(&self, path: &Utf8Path) -> Arc<Mutex<Slot>> {
        let mut shard = lock(self.shard(path));
        // The path is copied only for a file that is not known yet.
        match shard.get(path) {
            Some(slot) => Arc::clone(slot),
            None => Arc::clone(shard.entry(path.to_owned()).or_default()),
        }
    }

    /// An entry that fits the file as it is, and its status.
    fn settle(&self, path: &Utf8Path, entry: Option<Remembered>) -> Result<(Remembered, Look), IoError> {
        let full = self.root.join(path);
        if let Some(known) = entry.filter(|entry| entry.status.is_some()) {
            let metadata = std::fs::metadata(&full).map_err(IoError::on("read", &full))?;
            if FileStatus::of(&metadata) == known.status {
                return Ok((known, Look { status: known.status, rested: true }));
            }
        }
        hash(&full, |_| ()).map_err(IoError::on("read", &full))
    }

    fn shard(&self, path: &Utf8Path) -> &Mutex<Slots> {
        &self.shards[self.hasher.hash_one(path.as_str()) as usize % SHARDS]
    }
}

/// A file's digest; `take` gets its content in pieces.
fn hash(path: &Path, mut take: impl FnMut(&[u8])) -> io::Result<(Remembered, Look)> {
    // Opening a pipe could wait for ever, so the kind is looked at first.
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        regular::check_place(path)?;
    }
    if !metadata.is_file() {
        let digest = Digest::of(format!("device {}", metadata.rdev()).as_bytes());
        let entry = Remembered { status: None, digest, unused: 0 };
        return Ok((entry, Look { status: None, rested: true }));
    }
    let started = now();
    let (mut file, metadata) = regular::open(path)?;
    let look = Look::of(&metadata, started);
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; metadata.len().clamp(1, READ) as usize];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                take(&buffer[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let after = Look::of(&file.metadata()?, started);
    let status = look.status.filter(|_| look.rested && look.status == after.status);
    Ok((Remembered { status, digest: hasher.finish(), unused: 0 }, look))
}

/// Nanoseconds since 1970; 0 on a clock set before, which then trusts nothing.
fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|time| i64::try_from(time.as_nanos()).ok())
        .unwrap_or(0)
}
