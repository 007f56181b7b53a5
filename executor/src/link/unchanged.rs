//! Whether a link has anything to do at all, answered from file states alone: no tool is run, no content is compared.
//!
//! A successful link records the state of every file it read and of those it wrote. The next run of the same command
//! with all of them untouched is done. Any doubt (a file changed while the link ran, one that cannot be looked at)
//! means that contents are compared instead. Outputs of a link that had nothing to do become newer than its inputs, or
//! a build system that goes by times would ask for the link for ever.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use distlto_prepare::regular;
use distlto_prepare::write::{IoError, remove, write_if_changed};
use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
use serde::{Deserialize, Serialize};

use super::file_state::FileState;
use super::reads::{Outputs, Reads};
use super::state::Key;
use crate::variables;

const VERSION: u32 = 2;

/// What a link read.
#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    key: String,
    /// Of the whole environment, where a program ran that may depend on any of it.
    environment: Option<String>,
    files: Vec<FileState>,
    absent: Vec<PathBuf>,
}

/// What it wrote. Apart, as it is written anew whenever the outputs' times are.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    files: Vec<FileState>,
}

fn record_place(directory: &str) -> PathBuf {
    PathBuf::from(format!("{directory}/last-link.json"))
}

fn written_place(directory: &str) -> PathBuf {
    PathBuf::from(format!("{directory}/last-outputs.json"))
}

fn read<T: for<'de> Deserialize<'de>>(place: &Path) -> Option<T> {
    serde_json::from_slice(&regular::read(place).ok()?).ok()
}

/// Whether the last link in this directory was the same and nothing it read or wrote has changed.
pub fn is_unchanged(directory: &str, key: &Key) -> bool {
    let hold = |files: &[FileState]| files.par_iter().with_min_len(64).all(FileState::holds);
    let Some(written) = read::<Written>(&written_place(directory)) else { return false };
    written.version == VERSION && hold(&written.files) && reads_hold(directory, key)
}

fn reads_hold(directory: &str, key: &Key) -> bool {
    holds_besides(directory, key, &HashSet::new())
}

/// Whether the last link in this directory was the same, and nothing has changed of what it read besides files that are
/// `compared` otherwise, and of what it wrote besides the program.
pub fn is_unchanged_besides(directory: &str, key: &Key, compared: &HashSet<&Path>) -> bool {
    let written = read::<Written>(&written_place(directory));
    written.is_some_and(|written| written.files.iter().skip(1).all(FileState::holds))
        && holds_besides(directory, key, compared)
}

fn holds_besides(directory: &str, key: &Key, compared: &HashSet<&Path>) -> bool {
    let Some(record) = read::<Record>(&record_place(directory)) else { return false };
    let holds = |file: &FileState| compared.contains(file.path()) || file.holds();
    record.version == VERSION
        && record.key == key.to_string()
        && record.environment.is_none_or(|environment| environment == variables::environment().to_string())
        && record.files.par_iter().with_min_len(64).all(holds)
        && record.absent.par_iter().with_min_len(64).all(|path| !path.exists())
}

/// Has the outputs of the last link in this directory become newer than whatever asked for it again, as the linker's
/// would: they are written now.
pub fn renew(directory: &str) -> Result<(), IoError> {
    let Some(written) = read::<Written>(&written_place(directory)) else { return Ok(()) };
    for file in &written.files {
        touch(file.path())?;
    }
    write_states(directory, written.files.iter().map(FileState::path))
}

/// The same for outputs that a link has found up to date.
pub fn touch_all(outputs: &Outputs) -> Result<(), IoError> {
    outputs.files().iter().try_for_each(|path| touch(path))
}

/// Sets a file's time of modification to this moment. One that may not be touched is left alone: it asks for the link
/// again, which does no harm.
pub fn touch(path: &Path) -> Result<(), IoError> {
    let now = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    match utimensat(CWD, path, &now, AtFlags::empty()).map_err(io::Error::from) {
        Err(error)
            if error.kind() != io::ErrorKind::PermissionDenied && error.kind() != io::ErrorKind::NotFound =>
        {
            Err(IoError::on("set the times of", path)(error))
        }
        _ => Ok(()),
    }
}

fn write_states<'a>(directory: &str, files: impl Iterator<Item = &'a Path>) -> Result<(), IoError> {
    let place = written_place(directory);
    let states: Option<Vec<FileState>> = files.map(FileState::of).collect();
    match states.and_then(|files| serde_json::to_vec(&Written { version: VERSION, files }).ok()) {
        Some(text) => write_if_changed(&place, &text).map(drop),
        // An output that is gone, or whose path has no JSON form.
        None => remove(&place),
    }
}

/// Records a successful link that `started` after its command's files had settled. Nothing is recorded if something
/// that it read may have changed since.
pub fn record(
    directory: &str,
    key: &Key,
    reads: &Reads,
    outputs: &Outputs,
    started: SystemTime,
) -> Result<(), IoError> {
    let place = record_place(directory);
    let environment = reads.environment_matters().then(|| variables::environment().to_string());
    let record = reads.settled(started).map(|(files, absent)| Record {
        version: VERSION,
        key: key.to_string(),
        environment,
        files,
        absent,
    });
    match record.and_then(|record| serde_json::to_vec(&record).ok()) {
        Some(text) => write_if_changed(&place, &text).map(drop)?,
        None => remove(&place)?,
    }
    write_states(directory, outputs.files().iter().map(PathBuf::as_path))
}
