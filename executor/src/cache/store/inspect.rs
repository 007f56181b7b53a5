//! Looking after a cache by hand: what it holds, whether it is whole, and pruning.
//!
//! For commands; runs need none of it.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use distlto_prepare::blobs;
use distlto_prepare::check::{Bad, CheckReport, Verdict};
use distlto_prepare::error::Error;
use distlto_prepare::prune::{Kept, PruneReport};
use distlto_prepare::write::IoError;

use super::usage::{self, Usage};
use super::{BLOBS, Cache, Key, LAYOUT, Limits, PARTS, Record, evict};

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Records; a result that is found by two keys has two.
    pub records: u64,
    /// Files of content.
    pub blobs: u64,
    /// The size of all content.
    pub bytes: u64,
    /// What all files take on disk, in whole blocks of 4 KiB.
    pub disk: u64,
    /// When the least recently used file was used.
    pub oldest: Option<SystemTime>,
    /// When the most recently used file was used.
    pub newest: Option<SystemTime>,
    /// What its users have counted, if they could.
    pub usage: Option<Usage>,
}

impl Cache {
    /// Opens the cache in `directory`, which must be one.
    pub fn open_existing(directory: &Path, limits: Limits) -> Result<Self, Error> {
        LAYOUT.existing(directory, "cache of results")?;
        Ok(Self::at(directory, limits))
    }

    /// Looks at every file's status.
    pub fn stats(&self) -> Result<Stats, IoError> {
        let listing = self.blobs.list(&PARTS);
        if let Some(error) = listing.unreadable.into_iter().next() {
            return Err(error);
        }
        let mut stats = Stats { usage: usage::read(&self.blobs).ok().flatten(), ..Stats::default() };
        for file in &listing.files {
            if PARTS[file.part] == BLOBS {
                stats.blobs += 1;
                stats.bytes = stats.bytes.saturating_add(file.size);
            } else {
                stats.records += 1;
            }
            stats.disk = stats.disk.saturating_add(file.space());
        }
        let time = |nanoseconds: i64| {
            u64::try_from(nanoseconds)
                .ok()
                .and_then(|time| UNIX_EPOCH.checked_add(Duration::from_nanos(time)))
        };
        let used = || listing.files.iter().map(|file| file.used);
        stats.oldest = used().min().and_then(time);
        stats.newest = used().max().and_then(time);
        Ok(stats)
    }

    /// Removes what the limits do not allow, the least recently used first.
    pub fn prune(&self, limits: Limits) -> Result<PruneReport, IoError> {
        evict::prune(&self.blobs, limits, &|| true)
    }

    /// Reads everything and tells what is damaged, which is removed unless told to `keep` it.
    pub fn verify(&self, keep: bool) -> Result<CheckReport, IoError> {
        let mut report = self.blobs.check(&PARTS, keep, |file, _, bytes| self.judge(file, bytes))?;
        if let Some(problem) = usage::check(&self.blobs, keep) {
            report.bad.push(Bad { path: self.blobs.root().join("usage"), problem });
            report.removed += usize::from(!keep);
        }
        Ok(report)
    }

    fn judge(&self, file: &Kept, bytes: &[u8]) -> Verdict {
        let record = match Record::decode(&Key(file.digest), bytes) {
            Ok(record) => record,
            Err(problem) => return Verdict::Bad(problem),
        };
        let is_gone = |digest| {
            std::fs::symlink_metadata(self.blobs.file(BLOBS, digest))
                .is_err_and(|error| blobs::is_nothing(&error))
        };
        match record.outputs.iter().any(|output| is_gone(&output.digest)) {
            true => Verdict::Incomplete,
            false => Verdict::Good,
        }
    }
}
