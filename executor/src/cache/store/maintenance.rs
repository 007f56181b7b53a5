//! Maintenance of a cache by hand: its size, its damage, and pruning.
//!
//! For commands; runs need none of it.

use std::path::Path;

use distlto_prepare::blobs;
use distlto_prepare::damage::{CheckReport, DamagedFile, FileVerdict};
use distlto_prepare::error::PrepareError;
use distlto_prepare::io_error::IoError;
use distlto_prepare::prune::{Holdings, KeptFile, PruneReport};

use super::usage::{self, Usage};
use super::{BLOBS, Cache, CacheLimits, LAYOUT, PARTS, eviction, record};
use crate::result::Key;

impl Cache {
    /// Opens the cache in `directory`, which must be one.
    pub fn open_existing(directory: &Path, limits: CacheLimits) -> Result<Self, PrepareError> {
        LAYOUT.existing(directory, "cache of results")?;
        Ok(Self::at(directory, limits))
    }

    /// How much is kept: looks at every file's status.
    pub fn holdings(&self) -> Result<Holdings, IoError> {
        self.blobs.holdings(&PARTS)
    }

    /// Returns the statistics of all its users, if there are any.
    pub fn usage(&self) -> Option<Usage> {
        usage::read(&self.blobs).ok().flatten()
    }

    /// Removes files beyond the limits, the least recently used first.
    pub fn prune(&self, limits: CacheLimits) -> Result<PruneReport, IoError> {
        eviction::prune(&self.blobs, limits, None, &|| true)
    }

    /// Reads all files and reports the damaged ones, which are removed unless `keep` is set.
    pub fn verify(&self, keep: bool) -> Result<CheckReport, IoError> {
        let mut report = self.blobs.check(&PARTS, keep, |file, bytes| self.judge(file, bytes))?;
        if let Some(problem) = usage::check(&self.blobs, keep) {
            report.bad.push(DamagedFile { path: self.blobs.root().join("usage"), problem });
            report.removed += usize::from(!keep);
        }
        Ok(report)
    }

    fn judge(&self, file: &KeptFile, bytes: &[u8]) -> FileVerdict {
        let record = match record::decode(&Key(file.digest), bytes) {
            Ok(record) => record,
            Err(problem) => return FileVerdict::DamagedFile(problem),
        };
        let is_gone = |digest| {
            std::fs::symlink_metadata(self.blobs.file(BLOBS, digest))
                .is_err_and(|error| blobs::is_nothing(&error))
        };
        match record.outputs.iter().any(|output| is_gone(&output.digest)) {
            true => FileVerdict::Incomplete,
            false => FileVerdict::Good,
        }
    }
}
