//! A check of all kept files, with a report of the damage.
//!
//! Knows that a blob's name is the digest of its content; the owner judges its other files.

use std::io;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::blobs::{self, Blobs};
use crate::io_error::IoError;
use crate::prune::{KeptFile, StoreListing};

/// A damaged or unknown file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub problem: String,
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    /// Files read.
    pub files: usize,
    /// Their content, in bytes.
    pub bytes: u64,
    /// Damaged and unknown files, sorted by path.
    pub bad: Vec<DamagedFile>,
    /// Of these, how many have been removed.
    pub removed: usize,
    /// Records that refer to pruned files: nobody finds them, and nothing is wrong. They have been removed.
    pub incomplete: usize,
    /// Temporaries of killed processes removed.
    pub temporaries: usize,
}

/// An owner's verdict on one of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileVerdict {
    /// It is whole.
    Good,
    /// Files that it needs are gone.
    Incomplete,
    /// It is damaged, by this problem.
    DamagedFile(String),
}

impl Blobs {
    /// Reads every file in some of the owner's directories; the last of them holds the blobs. `judge` gets the other
    /// files with their content, after all blobs. Removes damaged files unless `keep` is set.
    pub fn check(
        &self,
        parts: &[&str],
        keep: bool,
        judge: impl Fn(&KeptFile, &[u8]) -> FileVerdict + Sync,
    ) -> Result<CheckReport, IoError> {
        let mut report = CheckReport { temporaries: self.sweep()?, ..CheckReport::default() };
        let StoreListing { files, strangers, unreadable } = self.list(parts);
        let blobs_part = parts.len().saturating_sub(1);
        let (blobs, others): (Vec<KeptFile>, Vec<KeptFile>) =
            files.into_iter().partition(|file| file.part == blobs_part);
        for files in [blobs, others] {
            let checked: Vec<_> = files
                .par_iter()
                .filter_map(|file| {
                    let path = self.file(parts[file.part], &file.digest);
                    let verdict = match blobs::read(&path) {
                        // Gone in the meantime: another process prunes.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
                        Err(error) => FileVerdict::DamagedFile(error.to_string()),
                        Ok((bytes, _)) if file.part == blobs_part => match self.hash(&bytes) == file.digest {
                            true => FileVerdict::Good,
                            false => FileVerdict::DamagedFile(blobs::NOT_ITS_NAME.to_owned()),
                        },
                        Ok((bytes, _)) => judge(file, &bytes),
                    };
                    Some((path, file.size, verdict))
                })
                .collect();
            for (path, size, verdict) in checked {
                report.files += 1;
                report.bytes += size;
                match verdict {
                    FileVerdict::Good => {}
                    FileVerdict::Incomplete if keep || blobs::remove(&path).is_ok() => report.incomplete += 1,
                    FileVerdict::Incomplete => report.incomplete += 1,
                    FileVerdict::DamagedFile(problem) => report.found(path, problem, keep),
                }
            }
        }
        for path in strangers {
            report.found(path, "nothing that is kept has such a name".to_owned(), keep);
        }
        for error in unreadable {
            // A file in the place of a directory is in nobody's way once it is gone.
            report.bad.push(DamagedFile { path: error.path, problem: error.source.to_string() });
        }
        report.bad.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(report)
    }
}

impl CheckReport {
    fn found(&mut self, path: PathBuf, mut problem: String, keep: bool) {
        if !keep {
            match blobs::remove(&path) {
                Ok(()) => self.removed += 1,
                Err(error) => problem = format!("{problem} ({error})"),
            }
        }
        self.bad.push(DamagedFile { path, problem });
    }
}
