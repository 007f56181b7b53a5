//! What a linker that was killed leaves beside its output: what it had unpacked, shards, objects and its job file.
//!
//! What it had handed over is noted; what it had unpacked before that is known by its name, in which an archive's member
//! and the process stand. Only what a process left that is gone is removed. Names are those of `temporaries`.

use std::fs;
use std::path::{Path, PathBuf};

use distlto_planner::dtlto::identifier;
use distlto_planner::state::Place;
use distlto_planner::words::path_of;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::{remove, write_atomically};
use rustix::process::Pid;

use super::failed;
use super::line::staged;
use crate::distribute::linker;
use crate::link::{LinkError, Session};
use distlto_planner::dtlto::temporaries;

/// Removes what the linker of a killed run has left.
pub fn before(session: &Session<'_>) -> Result<(), LinkError> {
    let note = Place::Linker.path(session.directory);
    let output = PathBuf::from(session.link.line.output());
    remove(&staged(&output))?;
    failed::sweep(session.directory)?;
    let killed = regular::read_if_there(&note)?.unwrap_or_default();
    let killed = path_of(&killed);
    if !session.after_crash && killed.as_os_str().is_empty() {
        return Ok(());
    }
    let noted = killed.file_name().and_then(|name| temporaries::process_of(name.to_str()?));
    remove_left(&output, noted)?;
    Ok(remove(&note)?)
}

/// Removes the temporaries of a linker that failed: one that crashes or is killed does not do so itself.
pub fn after_failure(session: &Session<'_>, linkers: &[Pid]) -> Result<(), IoError> {
    let mut processes = linkers.iter().filter_map(|linker| u32::try_from(linker.as_raw_pid()).ok());
    processes.try_for_each(|process| remove_left(Path::new(session.link.line.output()), Some(process)))
}

/// Removes temporaries beside an output: all of this linker, and unpacked members of any that has ended.
fn remove_left(output: &Path, process: Option<u32>) -> Result<(), IoError> {
    let beside = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    for entry in fs::read_dir(beside).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let process = temporaries::unpacking_process(name).filter(|_| is_member(name)).or(process);
        let left = process
            .is_some_and(|process| temporaries::is_temporary(name, process) && !linker::is_running(process));
        if left {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Notes that a linker waits for a job file.
pub fn note(session: &Session<'_>, job_file: &Path) -> Result<(), IoError> {
    let note = Place::Linker.path(session.directory);
    write_atomically(&note, job_file.as_os_str().as_encoded_bytes())
}

/// The linker has ended, and has removed what it made.
pub fn after(session: &Session<'_>) -> Result<(), IoError> {
    remove(&Place::Linker.path(session.directory))
}

/// Whether a file's name is that of an archive's member.
fn is_member(name: &str) -> bool {
    let stem = temporaries::unpacking_process(name).and_then(|process| temporaries::unpacked(name, process));
    stem.is_some_and(|stem| !identifier::members(stem).is_empty())
}
