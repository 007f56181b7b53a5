//! The file accesses of a link's processes: its reads, its outputs, and the program to put back after a failure.
//!
//! Does not depend on how a link is done.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use camino::Utf8PathBuf;
use distlto_executor::trace::{BackendTrace, FileNote, Trace, is_of_kernel};
use distlto_planner::dtlto::temporaries::is_temporary;
use distlto_planner::link_line::Argument;
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::warning::warn;
use distlto_prepare::write::{TEMPORARY_PREFIX, remove};
use rayon::prelude::*;

use super::process::{self, Process};
use super::settings::CompileSettings;
use crate::link::Session;
use crate::link::file_state::Start;
use crate::link::identity;
use crate::link::reads::{Outputs, Reads};

/// A process, and the memory with its notes.
pub struct Observed {
    pub process: Process,
    /// None where there was no room for it.
    pub notes: Option<File>,
}

/// The files that a link has read and written.
pub struct ReadFiles {
    pub reads: Reads,
    pub outputs: Outputs,
    files: BTreeSet<PathBuf>,
    /// The place of each file in the order of reading.
    order: HashMap<PathBuf, usize>,
}

impl Observed {
    fn trace(&self) -> std::io::Result<Trace> {
        let notes = self.notes.as_ref().ok_or(ErrorKind::StorageFull)?;
        Trace::read(notes, &self.process.directory)
    }
}

impl ReadFiles {
    /// When a file was read, relative to others.
    pub fn place(&self, path: &Path) -> usize {
        let path = std::path::absolute(path).unwrap_or_default();
        self.order.get(&path).copied().unwrap_or(usize::MAX)
    }

    /// The files that were read, as far as their names are text; below the link's directory without it.
    pub fn inputs(&self, directory: &Path) -> BTreeSet<Utf8PathBuf> {
        let here = std::path::absolute(directory).unwrap_or_default();
        let files = self.files.iter().filter(|file| file.is_file());
        let files = files.map(|file| file.strip_prefix(&here).unwrap_or(file));
        files.filter_map(|file| Utf8PathBuf::from_path_buf(file.to_owned()).ok()).collect()
    }
}

/// Returns the files that a link's processes have read and written, from their notes. `service` has the folders of
/// the service.
pub fn read(
    session: &Session<'_>,
    compilation: &CompileSettings,
    command: &[Word],
    observed: &[Observed],
    service: &[PathBuf],
) -> ReadFiles {
    let mut reads = Reads::new(session.directory);
    reads.program(&command[0]);
    reads.program(&session.link.linker[0]);
    reads.compiler(&compilation.compiler.clone().into_bytes(), session.link.installed.as_deref());
    let absolute = |path: &Utf8PathBuf| std::path::absolute(path).unwrap_or_default();
    reads.observed(compilation.flags.inputs.iter().map(absolute));
    let own = std::path::absolute(session.directory).unwrap_or_default();
    let own = own.as_path();
    let is_own = |path: &Path| path.starts_with(own) || is_of(service, path) || is_of_kernel(path);
    let known = [&command[0], &session.link.linker[0]].map(|word| identity::located(&lossy(word)));
    let known: Vec<PathBuf> = known.into_iter().flatten().collect();
    let [mut read, mut mapped, mut absent, mut written, mut others] = [const { BTreeSet::new() }; 5];
    let mut order = HashMap::new();
    let streams = process::streams(Path::new("/proc/self"));
    for seen in observed {
        let process = &seen.process;
        // A wrapper's log is no output.
        let is_known = known.contains(&process.program);
        // The files of a distributor's jobs are gone.
        let is_of_job = |path: &Path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| is_temporary(name, process.id))
        };
        match seen.trace() {
            Ok(trace) if !trace.is_cut => {
                if let Some(pipe) = trace.of(FileNote::Read).find(|path| is_pipe(path)) {
                    reads.doubt(format!("what comes through {} cannot be compared", pipe.display()));
                }
                let printed = trace
                    .printed
                    .iter()
                    .filter_map(|&stream| process.streams.get(usize::from(stream).checked_sub(1)?));
                // Kept with the objects.
                let has_kept = compilation.linker.is_some();
                let prints = |backend: &BackendTrace| !backend.printed.is_empty() && !has_kept;
                let has_printed = trace.backends.values().any(prints);
                if has_printed || printed.into_iter().any(|stream| streams.contains(stream)) {
                    reads.doubt(format!("{} prints something", process.program.display()));
                }
                if trace.has_input {
                    reads.doubt("data from standard input cannot be compared");
                }
                reads.variables(trace.variables);
                for (note, path) in
                    trace.files.into_iter().filter(|(_, path)| !is_own(path) && !is_of_job(path))
                {
                    match note {
                        FileNote::Read => {
                            let place = order.len();
                            order.entry(path.clone()).or_insert(place);
                            read.insert(path);
                        }
                        FileNote::Absent => drop(absent.insert(path)),
                        FileNote::Written if is_known => drop(written.insert(path)),
                        FileNote::Written => drop(others.insert(path)),
                    }
                }
            }
            Ok(_) => reads.doubt("a process noted more than there was room for"),
            Err(error) => reads.doubt(format!("a process's notes cannot be read: {error}")),
        }
        if !is_known {
            // Its other dependencies are unknown.
            reads.any_environment();
        }
        mapped.extend(process.mapped.iter().filter(|path| !is_own(path)).cloned());
    }
    // Temporary files of a compiler are gone. An input that a process of the link has changed was another one before.
    if let Some(changed) = read.intersection(&others).find(|path| path.exists()) {
        reads.doubt(format!("{} is read and written", changed.display()));
    }
    let files: BTreeSet<PathBuf> = &(&read - &written) - &others;
    reads.files(mapped.into_iter().filter(|path| path.is_file()));
    reads.observed(files.iter().cloned());
    reads.absent(absent);
    let program = PathBuf::from(session.link.line.output());
    let absolute = std::path::absolute(&program).unwrap_or_default();
    let mut outputs = Outputs::new(program);
    written.into_iter().filter(|path| *path != absolute).for_each(|path| outputs.file(path));
    ReadFiles { reads, outputs, files, order }
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
    let files = read.difference(&written).filter(|path| !is_of(service, path) && !is_of_kernel(path));
    let files = files.filter(|path| path.is_file()).map(|path| path.strip_prefix(&here).unwrap_or(path));
    Ok(files.filter_map(|path| Utf8PathBuf::from_path_buf(path.to_owned()).ok()).collect())
}

/// Whether a path is in one of these folders.
fn is_of(folders: &[PathBuf], path: &Path) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Whether a path names a pipe or an open file, which will be another one next time.
fn is_pipe(path: &Path) -> bool {
    let opened = || path.starts_with("/proc") && path.parent().is_some_and(|place| place.ends_with("fd"));
    path.starts_with("/dev/fd")
        || path == Path::new("/dev/stdin")
        || opened()
        || fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Returns the existing input files of a linker that runs in `root`, with their metadata.
pub fn line_inputs(root: &Path, arguments: &[Argument]) -> Vec<(PathBuf, Metadata)> {
    let inputs = arguments.iter().filter_map(|argument| match argument {
        Argument::Input(word) => Some(root.join(path_of(word))),
        _ => None,
    });
    let inputs: Vec<PathBuf> = inputs.collect();
    let look = |path: PathBuf| fs::metadata(&path).ok().map(|found| (path, found));
    inputs.into_par_iter().with_min_len(64).filter_map(look).collect()
}

/// Warns of objects without content, which lld takes for linker scripts that say nothing.
pub fn warn_of_empty(inputs: &[(PathBuf, Metadata)]) {
    let is_object = |path: &Path| path.extension().is_some_and(|extension| extension == "o");
    for (path, _) in
        inputs.iter().filter(|(path, found)| is_object(path) && found.is_file() && found.len() == 0)
    {
        warn(format_args!("{} is empty: compile it again", path.display()));
    }
}

/// The start of a link of these inputs.
pub fn start(inputs: &[(PathBuf, Metadata)]) -> Start {
    let changed = |found: &Metadata| found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Start::with(inputs.iter().map(|(path, found)| (path.as_path(), found.len(), changed(found))))
}

/// The program that was there before a link, by a second name: the linker removes it just before it writes its own.
pub struct Previous {
    output: PathBuf,
    kept: Option<PathBuf>,
}

/// The program's second name in the state directory.
const PREVIOUS: &str = "previous";

impl Previous {
    /// Keeps a program, if there is one; else the one that an earlier link kept, which has failed. `state` is empty
    /// where a link has none.
    pub fn of(output: &Path, state: &Path) -> Self {
        let beside = output.with_file_name(format!("{TEMPORARY_PREFIX}{PREVIOUS}"));
        // The state may lie on another file system.
        let places = match state.as_os_str().is_empty() {
            true => vec![beside],
            false => vec![state.join(PREVIOUS), beside],
        };
        let keep = |place: &PathBuf| match output.exists() {
            true => remove(place).is_ok() && fs::hard_link(output, place).is_ok(),
            false => place.is_file(),
        };
        Self { output: output.to_owned(), kept: places.into_iter().find(keep) }
    }

    /// Whether another program is there.
    pub fn is_replaced(&self) -> bool {
        let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
        let there = identity(&self.output);
        there.is_some() && self.kept.as_deref().is_none_or(|kept| identity(kept) != there)
    }

    /// Puts the program back after a link that failed and left none, and removes the linker's unfinished files.
    pub fn settle(self, succeeded: bool, observed: &[Observed]) -> Result<(), IoError> {
        if !succeeded {
            for place in unfinished(&self.output, observed) {
                remove(&place)?;
            }
        }
        let Some(kept) = self.kept else { return Ok(()) };
        if !succeeded && !self.output.exists() {
            return match fs::rename(&kept, &self.output) {
                // Another link of the command has the same output, and has put it back.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                renamed => renamed.map_err(IoError::on("put back", &self.output)),
            };
        }
        match fs::remove_file(&kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(IoError::on("remove", kept)(error)),
            _ => Ok(()),
        }
    }
}

/// Returns the unfinished files of a program, which lld names `P.tmp` and seven digits.
fn unfinished(output: &Path, observed: &[Observed]) -> HashSet<PathBuf> {
    let output = std::path::absolute(output).unwrap_or_default();
    let begins = [output.as_os_str().as_bytes(), b".tmp"].concat();
    let traces = observed.iter().filter_map(|seen| seen.trace().ok());
    let made = traces.flat_map(|trace| trace.creating);
    let named = made.filter(|path| path.as_os_str().as_bytes().starts_with(&begins));
    named.filter(|path| path.exists()).collect()
}
