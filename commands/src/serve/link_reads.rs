//! The files that a link has read and written, from the notes of its processes.
//!
//! Does not depend on how a link is done.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use distlto_executor::trace::{BackendTrace, FileNote, Trace, is_of_kernel};
use distlto_planner::dtlto::temporaries::is_temporary;
use distlto_planner::words::lossy;

use super::link::Link;
use super::observed::{Observed, is_in};
use super::process::{self, Process};
use crate::link::identity;
use crate::link::reads::{Outputs, Reads};

/// The files that a link has read and written.
pub struct ReadFiles {
    pub reads: Reads,
    pub outputs: Outputs,
    files: BTreeSet<PathBuf>,
    /// The place of each file in the order of reading.
    order: HashMap<PathBuf, usize>,
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

/// The paths that the processes of a link have noted.
struct Collected<'l> {
    link: &'l Link<'l>,
    reads: Reads,
    read: BTreeSet<PathBuf>,
    mapped: BTreeSet<PathBuf>,
    absent: BTreeSet<PathBuf>,
    /// Written by the linker or its driver.
    written: BTreeSet<PathBuf>,
    /// Written by other processes.
    others: BTreeSet<PathBuf>,
    order: HashMap<PathBuf, usize>,
}

/// Returns the files that a link's processes have read and written. `service` has the folders of the service.
pub fn read(link: &Link<'_>, observed: &[Observed], service: &[PathBuf]) -> ReadFiles {
    let command = &link.build.command[0];
    let mut reads = Reads::new(link.state());
    reads.program(command);
    reads.program(&link.command.linker[0]);
    reads.compiler(&link.settings.compiler.clone().into_bytes(), link.command.installed.as_deref());
    let absolute = |path: &Utf8PathBuf| std::path::absolute(path).unwrap_or_default();
    reads.observed(link.settings.flags.inputs.iter().map(absolute));
    let [read, mapped, absent, written, others] = [const { BTreeSet::new() }; 5];
    let order = HashMap::new();
    let mut collected = Collected { link, reads, read, mapped, absent, written, others, order };
    let own = std::path::absolute(link.state()).unwrap_or_default();
    let is_own = |path: &Path| path.starts_with(&own) || is_in(service, path) || is_of_kernel(path);
    let known = [command, &link.command.linker[0]].map(|word| identity::located(&lossy(word)));
    let known: Vec<PathBuf> = known.into_iter().flatten().collect();
    let streams = process::streams(Path::new("/proc/self"));
    for seen in observed {
        // A wrapper's log is no output.
        let is_known = known.contains(&seen.process.program);
        match seen.trace() {
            Ok(trace) if !trace.is_cut => {
                collected.doubt_streams(&trace, &seen.process, &streams);
                collected.add(trace, &seen.process, is_known, &is_own);
            }
            Ok(_) => collected.reads.doubt("a process noted more than there was room for"),
            Err(error) => collected.reads.doubt(format!("a process's notes cannot be read: {error}")),
        }
        if !is_known {
            // Its other dependencies are unknown.
            collected.reads.any_environment();
        }
        let mapped = seen.process.mapped.iter().filter(|path| !is_own(path));
        collected.mapped.extend(mapped.cloned());
    }
    collected.into_files()
}

impl Collected<'_> {
    /// Doubts what comes through pipes, or goes to the command's own output.
    fn doubt_streams(&mut self, trace: &Trace, process: &Process, streams: &[PathBuf; 2]) {
        let reads = &mut self.reads;
        if let Some(pipe) = trace.of(FileNote::Read).find(|path| is_pipe(path)) {
            reads.doubt(format!("what comes through {} cannot be compared", pipe.display()));
        }
        let stream = |stream: &u8| process.streams.get(usize::from(*stream).checked_sub(1)?);
        let is_printed = trace.printed.iter().filter_map(stream).any(|stream| streams.contains(stream));
        // What a linker prints while it compiles is kept with the objects.
        let has_kept = self.link.settings.linker.is_some();
        let prints = |backend: &BackendTrace| !backend.printed.is_empty() && !has_kept;
        if is_printed || trace.backends.values().any(prints) {
            reads.doubt(format!("{} prints something", process.program.display()));
        }
        if trace.has_input {
            reads.doubt("data from standard input cannot be compared");
        }
    }

    fn add(&mut self, trace: Trace, process: &Process, is_known: bool, is_own: &dyn Fn(&Path) -> bool) {
        self.reads.variables(trace.variables);
        // The files of a distributor's jobs are gone.
        let is_of_job = |path: &Path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| is_temporary(name, process.id))
        };
        for (note, path) in trace.files.into_iter().filter(|(_, path)| !is_own(path) && !is_of_job(path)) {
            let paths = match note {
                FileNote::Read => {
                    let place = self.order.len();
                    self.order.entry(path.clone()).or_insert(place);
                    &mut self.read
                }
                FileNote::Absent => &mut self.absent,
                FileNote::Written if is_known => &mut self.written,
                FileNote::Written => &mut self.others,
            };
            paths.insert(path);
        }
    }

    fn into_files(self) -> ReadFiles {
        let Self { link, mut reads, read, mapped, absent, written, others, order } = self;
        // Temporary files of a compiler are gone. An input that a process of the link has changed was another one before.
        if let Some(changed) = read.intersection(&others).find(|path| path.exists()) {
            reads.doubt(format!("{} is read and written", changed.display()));
        }
        let files: BTreeSet<PathBuf> = &(&read - &written) - &others;
        reads.files(mapped.into_iter().filter(|path| path.is_file()));
        reads.observed(files.iter().cloned());
        reads.absent(absent);
        let program = PathBuf::from(link.command.line.output());
        let absolute = std::path::absolute(&program).unwrap_or_default();
        let mut outputs = Outputs::new(program);
        written.into_iter().filter(|path| *path != absolute).for_each(|path| outputs.file(path));
        ReadFiles { reads, outputs, files, order }
    }
}

/// Whether a path names a pipe or an open file, which will be another one next time.
fn is_pipe(path: &Path) -> bool {
    let opened = || path.starts_with("/proc") && path.parent().is_some_and(|place| place.ends_with("fd"));
    path.starts_with("/dev/fd")
        || path == Path::new("/dev/stdin")
        || opened()
        || fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}
