//! Undeclared inputs of a backend compilation: files behind `.incbin` in inline assembly and behind LLVM's own options.
//!
//! They are known once the compilation has ended. Independent of cached objects.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};

use crate::trace::{FileNote, Trace, is_of_kernel};

/// Time stamps may stand still for this long while a file changes: Linux ticks at 100 Hz or faster.
pub const GRAIN: Duration = Duration::from_millis(20);

/// Reads and writes of a compilation beyond its inputs and outputs. Paths are absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undeclared {
    /// Files that it read.
    pub read: BTreeSet<Utf8PathBuf>,
    /// Files that it looked for in vain.
    pub absent: BTreeSet<Utf8PathBuf>,
    /// Whether it did more: it wrote further files, or the names are not all known.
    pub is_more: bool,
    /// Whether nobody observed it, so that it may have read any file of its directory.
    pub is_unobserved: bool,
}

impl Undeclared {
    /// Returns the undeclared inputs from the notes of a compilation in `directory` that began at that time. `inputs`
    /// and `outputs` are the declared files, by the command's names.
    pub fn of<'p>(
        trace: &Trace,
        (directory, begun): (&Path, SystemTime),
        inputs: impl Iterator<Item = &'p Utf8Path>,
        outputs: impl Iterator<Item = &'p Utf8Path>,
    ) -> Self {
        let inputs: BTreeSet<_> = inputs.map(|path| directory.join(path)).collect();
        let outputs: BTreeSet<_> = outputs.map(|path| directory.join(path)).collect();
        // A compiler writes a file of another name beside an output, and renames it.
        let places: BTreeSet<_> = outputs.iter().filter_map(|path| path.parent()).collect();
        let is_beside = |path: &Path| path.parent().is_some_and(|parent| places.contains(parent));
        let written: BTreeSet<_> = trace.of(FileNote::Written).collect();
        let mut undeclared = Self { is_more: trace.is_cut, ..Self::default() };
        for (note, path) in &trace.files {
            if inputs.contains(path) || outputs.contains(path) || is_of_kernel(path) {
                continue;
            }
            match (note, Utf8Path::from_path(path)) {
                (FileNote::Written, _) if is_beside(path) => {}
                (FileNote::Written, _) | (_, None) => undeclared.is_more = true,
                (FileNote::Read, Some(_)) if written.contains(path.as_path()) || path.is_dir() => {}
                (FileNote::Read, Some(path)) => {
                    // The file may have changed since that read.
                    undeclared.is_more |= !is_older(path, begun);
                    undeclared.read.insert(path.to_owned());
                }
                (FileNote::Absent, Some(path)) => drop(undeclared.absent.insert(path.to_owned())),
            }
        }
        undeclared
    }

    /// Returns the value for a compilation that nobody observed.
    pub fn unobserved() -> Self {
        Self { is_unobserved: true, ..Self::default() }
    }

    /// Whether nothing of it was seen.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.absent.is_empty() && !self.is_more
    }
}

/// Whether a file has not changed since a time, nor so shortly before that it would not show.
fn is_older(path: &Utf8Path, time: SystemTime) -> bool {
    let Ok(found) = fs::metadata(path) else { return false };
    let changed = |seconds: i64, rest: i64| {
        let since = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(rest).unwrap_or(0));
        UNIX_EPOCH + since + GRAIN < time
    };
    changed(found.mtime(), found.mtime_nsec()) && changed(found.ctime(), found.ctime_nsec())
}
