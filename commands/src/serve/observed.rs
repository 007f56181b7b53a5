//! The file accesses of a command's processes, from their notes.
//!
//! Does not depend on links.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use camino::Utf8PathBuf;
use distlto_executor::trace::{FileNote, Trace, is_of_kernel};
use distlto_planner::words::path_of;
use distlto_prepare::io_error::IoError;

use super::process::Process;

/// A process, and the memory with its notes.
pub struct Observed {
    pub process: Arc<Process>,
    /// None where there was no room for it.
    pub notes: Option<File>,
}

impl Observed {
    /// Reads its notes.
    pub fn trace(&self) -> std::io::Result<Trace> {
        let notes = self.notes.as_ref().ok_or(ErrorKind::StorageFull)?;
        Trace::read(notes, &self.process.directory)
    }
}

/// Returns the files that processes have read and have not written, as far as their names are text; those below this
/// directory by relative paths. Response files are left out: their words are known.
pub fn files_read(observed: &[Observed], service: &[PathBuf]) -> Result<Vec<Utf8PathBuf>, IoError> {
    let [mut read, mut written] = [const { BTreeSet::new() }; 2];
    for seen in observed {
        let responses = seen.process.words.iter().filter_map(|word| word.strip_prefix(b"@"));
        written.extend(responses.map(|file| seen.process.directory.join(path_of(file))));
        let program = &seen.process.program;
        let trace = seen.trace().map_err(IoError::on("read what was noted by", program))?;
        if trace.is_cut {
            return Err(IoError::on("note all that was read by", program)(ErrorKind::StorageFull.into()));
        }
        for (note, path) in trace.files {
            match note {
                FileNote::Read => drop(read.insert(path)),
                FileNote::Written => drop(written.insert(path)),
                FileNote::Absent => {}
            }
        }
    }
    let here = std::env::current_dir().unwrap_or_default();
    let files = read.difference(&written).filter(|path| !is_in(service, path) && !is_of_kernel(path));
    let files = files.filter(|path| path.is_file()).map(|path| path.strip_prefix(&here).unwrap_or(path));
    Ok(files.filter_map(|path| Utf8PathBuf::from_path_buf(path.to_owned()).ok()).collect())
}

/// Whether a path is in one of these folders.
pub fn is_in(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}
