//! The age and size of kept files, and pruning: files not used for long go first, then the least recently used.
//!
//! Needs no agreement with processes that use the files at the same time (see [`crate::blobs`]). Does not depend on the
//! content of the files.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;

use crate::blobs::{self, BlobDigest, Blobs};
use crate::io_error::IoError;

/// File systems give space in blocks, most of them of this many bytes.
const BLOCK: u64 = 4096;

/// The result of pruning. Sizes are in whole blocks of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Files removed, of every kind.
    pub removed_files: usize,
    /// Their sizes, in bytes.
    pub removed_bytes: u64,
    /// Files left.
    pub kept_files: usize,
    /// Their sizes, in bytes.
    pub kept_bytes: u64,
    /// Temporaries of killed processes removed.
    pub temporaries: usize,
}

/// A kept file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFile {
    /// When it was last used, in nanoseconds since 1970.
    pub used: i64,
    /// In which of the listed directories it is.
    pub part: usize,
    /// Bytes.
    pub size: u64,
    /// Its name.
    pub digest: BlobDigest,
}

impl KeptFile {
    /// The bytes that it takes on a disk.
    pub fn space(&self) -> u64 {
        space(self.size)
    }
}

/// The bytes that a file of this size takes on a disk.
pub fn space(size: u64) -> u64 {
    size.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
}

/// The kept files.
#[derive(Debug, Default)]
pub struct StoreListing {
    /// In no order.
    pub files: Vec<KeptFile>,
    /// Entries with a name that no kept file has.
    pub strangers: Vec<PathBuf>,
    /// Directories that cannot be listed.
    pub unreadable: Vec<IoError>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holdings {
    /// Records that refer to blobs.
    pub records: u64,
    /// Files of content.
    pub blobs: u64,
    /// The size of all content.
    pub bytes: u64,
    /// The size of all files on disk, in bytes of whole blocks of 4 KiB.
    pub disk: u64,
    /// When the least recently used file was used.
    pub oldest: Option<SystemTime>,
    /// When the most recently used file was used.
    pub newest: Option<SystemTime>,
}

/// Asked often whether to go on, from many threads.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

impl Blobs {
    /// Returns the numbers and sizes of files in some of the owner's directories; the last of them holds the blobs.
    pub fn holdings(&self, parts: &[&str]) -> Result<Holdings, IoError> {
        let listing = self.list(parts);
        if let Some(error) = listing.unreadable.into_iter().next() {
            return Err(error);
        }
        let mut holdings = Holdings::default();
        for file in &listing.files {
            if file.part + 1 == parts.len() {
                holdings.blobs += 1;
                holdings.bytes = holdings.bytes.saturating_add(file.size);
            } else {
                holdings.records += 1;
            }
            holdings.disk = holdings.disk.saturating_add(file.space());
        }
        let time = |nanoseconds: i64| {
            u64::try_from(nanoseconds)
                .ok()
                .and_then(|time| UNIX_EPOCH.checked_add(Duration::from_nanos(time)))
        };
        let used = || listing.files.iter().map(|file| file.used);
        holdings.oldest = used().min().and_then(time);
        holdings.newest = used().max().and_then(time);
        Ok(holdings)
    }

    /// Everything in some of the owner's directories. One that is missing is empty.
    pub fn list(&self, parts: &[&str]) -> StoreListing {
        self.list_while(parts, &|| true)
    }

    /// The same, or less once `go_on` says so: to list much takes long.
    fn list_while(&self, parts: &[&str], go_on: GoOn<'_>) -> StoreListing {
        let shards = parts.iter().enumerate().flat_map(|(part, name)| {
            let directory = self.root().join(name);
            (0..=u8::MAX).map(move |first| (part, first, directory.join(format!("{first:02x}"))))
        });
        let shards: Vec<_> = shards.collect();
        let shards = shards.par_iter().filter(|_| go_on());
        let mut listings: Vec<_> =
            shards.map(|(part, first, directory)| list(*part, *first, directory)).collect();
        listings.extend(parts.iter().map(|name| strangers(&self.root().join(name))));
        let mut all = StoreListing::default();
        for listing in listings {
            all.files.extend(listing.files);
            all.strangers.extend(listing.strangers);
            all.unreadable.extend(listing.unreadable);
        }
        all
    }

    /// Removes files not used for `max_age`, then those not used for longest until at most `max_bytes` are left; among
    /// files of one time those of earlier directories first. `None` sets no limit. `go_on` may end it at any time; the
    /// reported sizes of kept files are then too small. Files used after `since` stay.
    pub fn prune(
        &self,
        parts: &[&str],
        max_bytes: Option<u64>,
        max_age: Option<Duration>,
        since: Option<SystemTime>,
        go_on: GoOn<'_>,
    ) -> Result<PruneReport, IoError> {
        let mut report = PruneReport { temporaries: self.sweep()?, ..PruneReport::default() };
        let StoreListing { mut files, unreadable, .. } = self.list_while(parts, go_on);
        if let Some(error) = unreadable.into_iter().next() {
            return Err(error);
        }
        report.kept_files = files.len();
        report.kept_bytes = files.iter().map(KeptFile::space).sum();
        let oldest = max_age.map_or(i64::MIN, |age| now().saturating_sub(nanoseconds(age)));
        let newest =
            since.and_then(|since| since.duration_since(UNIX_EPOCH).ok()).map_or(i64::MAX, nanoseconds);
        files.sort_unstable_by_key(|file| (file.used, file.part, file.digest));
        for file in files {
            let too_much = max_bytes.is_some_and(|most| report.kept_bytes > most);
            if !too_much && file.used >= oldest || file.used > newest || !go_on() {
                break;
            }
            blobs::remove(&self.file(parts[file.part], &file.digest))?;
            report.removed_files += 1;
            report.removed_bytes += file.space();
            report.kept_files -= 1;
            report.kept_bytes -= file.space();
        }
        Ok(report)
    }
}

/// Lists the files of one subdirectory; its name is the first byte of their digests.
fn list(part: usize, first: u8, directory: &Path) -> StoreListing {
    let mut listing = StoreListing::default();
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if blobs::is_nothing(&error) => return listing,
        Err(error) => {
            listing.unreadable.push(IoError::on("list", directory)(error));
            return listing;
        }
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                listing.unreadable.push(IoError::on("list", directory)(error));
                break;
            }
        };
        let digest =
            entry.file_name().to_str().and_then(|rest| blobs::from_hex(&format!("{first:02x}{rest}")));
        // Gone in the meantime: another process prunes.
        let (digest, found) = match (digest, entry.metadata()) {
            (Some(digest), Ok(found)) => (digest, found),
            (None, _) => {
                listing.strangers.push(entry.path());
                continue;
            }
            (_, Err(_)) => continue,
        };
        listing.files.push(KeptFile { used: used(&found), part, size: found.len(), digest });
    }
    listing
}

/// Lists the entries beside the 256 subdirectories.
fn strangers(directory: &Path) -> StoreListing {
    let mut listing = StoreListing::default();
    match std::fs::read_dir(directory) {
        Ok(entries) => {
            let name_of_shard = |name: &std::ffi::OsStr| {
                name.len() == 2
                    && name.as_encoded_bytes().iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            };
            listing.strangers.extend(entries.filter_map(Result::ok).filter_map(|entry| {
                let is_shard =
                    name_of_shard(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_dir());
                (!is_shard).then(|| entry.path())
            }));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => listing.unreadable.push(IoError::on("list", directory)(error)),
    }
    listing
}

fn used(found: &Metadata) -> i64 {
    let (seconds, rest) = blobs::last_used(found);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// The present, in nanoseconds since 1970.
fn now() -> i64 {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
