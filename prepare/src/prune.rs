//! Keeping a store small: what has not been used for long goes, then what has not been used for longest.
//!
//! Needs no agreement with processes that use the store at the same time (see [`crate::store`]).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::store::Store;
use crate::write::{self, IoError};

/// What [`Store::prune`] did. Sizes are those of the files; a blob that is hard-linked into an objects directory
/// takes its space until it goes there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Files removed, blobs and manifests.
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

struct Kept {
    /// Seconds and nanoseconds since 1970.
    used: (i64, i64),
    size: u64,
    path: PathBuf,
}

impl Store {
    /// Removes files not used for `max_age`, then those not used for longest until at most `max_bytes` are left.
    /// `None` sets no limit.
    pub fn prune(&self, max_bytes: Option<u64>, max_age: Option<Duration>) -> Result<PruneReport, Error> {
        let mut report = PruneReport { temporaries: self.sweep()?, ..PruneReport::default() };
        let mut files = list(self.root())?;
        files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
        report.kept_files = files.len();
        report.kept_bytes = files.iter().map(|file| file.size).sum();
        let oldest = max_age.and_then(|age| SystemTime::now().checked_sub(age)).map_or((0, 0), |oldest| {
            let passed = oldest.duration_since(UNIX_EPOCH).unwrap_or_default();
            (passed.as_secs() as i64, i64::from(passed.subsec_nanos()))
        });
        for file in files {
            let too_much = max_bytes.is_some_and(|most| report.kept_bytes > most);
            if !too_much && file.used >= oldest {
                break;
            }
            write::remove(&file.path)?;
            report.removed_files += 1;
            report.removed_bytes += file.size;
            report.kept_files -= 1;
            report.kept_bytes -= file.size;
        }
        Ok(report)
    }
}

fn list(root: &Path) -> Result<Vec<Kept>, Error> {
    let mut files = Vec::new();
    for part in ["blobs", "archives"] {
        for shard in entries(&root.join(part))? {
            for path in entries(&shard)? {
                // Gone in the meantime: another process prunes.
                let Ok(found) = fs::symlink_metadata(&path) else { continue };
                let used = (found.atime(), found.atime_nsec()).max((found.mtime(), found.mtime_nsec()));
                files.push(Kept { used, size: found.len(), path });
            }
        }
    }
    Ok(files)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(IoError::on("list", directory))?,
    };
    listed.map(|entry| Ok(entry.map_err(IoError::on("list", directory))?.path())).collect()
}
