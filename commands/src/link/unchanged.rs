//! Whether a link has anything to do at all, answered from file states: no tool is run, and the content of a file is
//! compared only if its state differs.
//!
//! A successful link records the state of every file it read and of those it wrote. The next run of the same command
//! with all of them as they were is done. Any doubt (a file changed while the link ran, one that cannot be looked at)
//! means that the link is done. Outputs of a link that had nothing to do become newer than its inputs, or
//! a build system that goes by times would ask for the link for ever.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use camino::Utf8Path;
use distlto_planner::digests::FileDigests;
use distlto_planner::state::Place;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::{remove, write_if_changed};
use rayon::prelude::*;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
use serde::{Deserialize, Serialize};

use super::file_state::{FileState, Start};
use super::reads::{Outputs, Reads};
use super::state::LinkKey;
use distlto_executor::variables;

const VERSION: u32 = 6;

/// The reads of a link.
#[derive(Serialize, Deserialize)]
struct LinkReads {
    version: u32,
    key: String,
    /// The digest of the whole environment, if a program ran that may depend on any of it.
    environment: Option<String>,
    /// The variables that programs asked for.
    variables: BTreeMap<String, Option<String>>,
    /// The warnings of backends.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    warnings: String,
    files: Vec<FileState>,
    /// The contents of inputs: a file that was only touched counts as unchanged.
    contents: BTreeMap<PathBuf, String>,
    absent: Vec<PathBuf>,
}

/// The outputs of a link. Canonical, as it is written anew whenever the outputs' times are.
#[derive(Serialize, Deserialize)]
struct Written {
    version: u32,
    files: Vec<FileState>,
}

/// A link that has nothing to do.
pub struct Unchanged {
    /// The record of its reads, if some were touched.
    record: Option<LinkReads>,
    written: Written,
    /// The warnings of its backends.
    pub warnings: String,
}

fn record_place(directory: &str) -> PathBuf {
    Place::LastLink.of(directory).into()
}

fn written_place(directory: &str) -> PathBuf {
    Place::LastOutputs.of(directory).into()
}

fn read<T: for<'de> Deserialize<'de>>(place: &Path) -> Option<T> {
    serde_json::from_slice(&regular::read(place).ok()?).ok()
}

/// Returns the last link in this directory if it was the same, and its reads and outputs are unchanged. An input that
/// was replaced or touched counts as unchanged while its content is the same.
pub fn find(directory: &str, key: &LinkKey) -> Option<Unchanged> {
    let written = read::<Written>(&written_place(directory))?;
    let hold = written.files.par_iter().with_min_len(64).all(FileState::holds);
    let record = read::<LinkReads>(&record_place(directory))?;
    if written.version != VERSION || !hold || !record.is_of(key) {
        return None;
    }
    let other: Vec<&FileState> =
        record.files.par_iter().with_min_len(64).filter(|file| !file.holds()).collect();
    let unchanged = other.par_iter().all(|file| record.holds_content(file));
    let touched = !other.is_empty();
    let warnings = record.warnings.clone();
    unchanged.then(|| Unchanged { record: touched.then_some(record), written, warnings })
}

/// Returns the outputs of the last link with this state directory that have changed since; none without a record. The
/// link ran in `root`.
pub fn changed_outputs(directory: &str, root: &Path) -> Vec<PathBuf> {
    let written = read::<Written>(&written_place(directory)).filter(|written| written.version == VERSION);
    let files = written.map(|written| written.files).unwrap_or_default();
    let places = files.iter().map(|file| (root.join(file.path()), file));
    places.filter(|(place, file)| !file.holds_at(place)).map(|(place, _)| place).collect()
}

/// Returns the content of a file as a digest; `None` if it is no readable file.
fn content_of(path: &Path) -> Option<String> {
    let path = Utf8Path::from_path(path).filter(|path| path.is_file())?;
    FileDigests::new(Path::new("")).digest(path).ok().map(|digest| digest.to_string())
}

impl LinkReads {
    /// Whether a file has the recorded content, regardless of its times.
    fn holds_content(&self, file: &FileState) -> bool {
        self.contents
            .get(file.path())
            .is_some_and(|content| content_of(file.path()).as_ref() == Some(content))
    }

    /// Whether the key and the environment are the same, and the absent files are still absent.
    fn is_of(&self, key: &LinkKey) -> bool {
        let environment = |known: &String| *known == variables::environment().to_string();
        self.version == VERSION
            && self.key == key.to_string()
            && self.environment.as_ref().is_none_or(environment)
            && self.variables.iter().all(|(name, value)| std::env::var(name).ok() == *value)
            && self.absent.par_iter().with_min_len(64).all(|path| !path.exists())
    }

    /// Takes the present states of files, where a later change would show.
    fn with_present_states(mut self) -> Self {
        let now = SystemTime::now();
        for file in &mut self.files {
            if let Some(present) = FileState::of(file.path()).filter(|present| present.is_older_than(now)) {
                *file = present;
            }
        }
        self
    }

    fn write(&self, directory: &str) -> Result<(), IoError> {
        let place = record_place(directory);
        match serde_json::to_vec(self) {
            Ok(text) => write_if_changed(&place, &text).map(drop),
            // A path has no JSON form.
            Err(_) => remove(&place),
        }
    }
}

impl Unchanged {
    /// Makes the outputs of the last link newer than its inputs, as the linker would: sets their times to now.
    pub fn renew(self, directory: &str) -> Result<(), IoError> {
        if let Some(record) = self.record {
            // If this write fails, the next run reads the touched files again.
            let _ = record.with_present_states().write(directory);
        }
        for file in &self.written.files {
            touch(file.path())?;
        }
        write_states(directory, self.written.files.iter().map(FileState::path))
    }
}

/// Sets a file's time of modification to this moment. One that may not be touched is left alone: it asks for the link
/// again, which does no harm.
fn touch(path: &Path) -> Result<(), IoError> {
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
        // An output is gone, or its path has no JSON form.
        None => remove(&place),
    }
}

/// Records a successful link with that start. If a read may have changed since, no reads are recorded, and the reason
/// is returned.
pub fn record(
    directory: &str,
    key: &LinkKey,
    reads: &Reads,
    outputs: &Outputs,
    start: &Start,
    digests: &FileDigests,
) -> Result<Option<String>, IoError> {
    let environment = reads.environment_matters().then(|| variables::environment().to_string());
    let settled = reads.settled(start);
    let doubt = settled.as_ref().err().cloned();
    match settled {
        Ok((files, absent)) => {
            let earlier = read::<LinkReads>(&record_place(directory));
            let record = LinkReads {
                version: VERSION,
                key: key.to_string(),
                environment,
                variables: reads.variables_read().clone(),
                warnings: reads.warnings().to_owned(),
                contents: contents(reads.inputs_read(), &files, earlier.as_ref(), digests),
                files,
                absent,
            };
            record.write(directory)?;
        }
        Err(_) => remove(&record_place(directory))?,
    }
    write_states(directory, outputs.files().iter().map(PathBuf::as_path))?;
    Ok(doubt)
}

/// Returns the contents of inputs. `files` has their states: an input with the state of the earlier record is not
/// read again. An unreadable input is compared by its state alone.
fn contents<'p>(
    inputs: impl Iterator<Item = &'p Path>,
    files: &[FileState],
    earlier: Option<&LinkReads>,
    digests: &FileDigests,
) -> BTreeMap<PathBuf, String> {
    fn by_path(files: &[FileState]) -> HashMap<&Path, &FileState> {
        files.iter().map(|file| (file.path(), file)).collect()
    }
    let now = by_path(files);
    let before = earlier.map(|earlier| by_path(&earlier.files)).unwrap_or_default();
    let known = |path: &Path| {
        let is_same = now.get(path).is_some_and(|now| before.get(path) == Some(now));
        earlier.filter(|_| is_same)?.contents.get(path).cloned()
    };
    let inputs: Vec<&Path> = inputs.collect();
    let content = |path: &&Path| {
        let read = || Some(digests.digest(Utf8Path::from_path(path)?).ok()?.to_string());
        Some((path.to_path_buf(), known(path).or_else(read)?))
    };
    inputs.par_iter().with_min_len(16).filter_map(content).collect()
}
