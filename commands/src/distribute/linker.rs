//! The linker that this process works for: known by the process number in the job file's name, watched until it ends,
//! and cleaned up after when it is killed.
//!
//! lld that is killed leaves its distributor running, and by SIGKILL also its temporaries. Nothing is done about a
//! process that is not an ancestor of this one, since a job file may also be run again by hand, long after. Process
//! facts are those of Linux's `/proc/PID/stat` (proc(5)); where there is none, only the parent is known.

use std::fs;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::path::Path;

use distlto_planner::dtlto::dropped::{self, Dropped};
use distlto_planner::invocation::{self, ProgramKind};
use distlto_planner::link_line;
use distlto_planner::link_options::is_for_windows;
use distlto_planner::linker::options::last;
use distlto_planner::response;
use distlto_planner::words::{Word, lossy};
use distlto_prepare::regular;
use distlto_prepare::threads;
#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, poll};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::getppid;
#[cfg(target_os = "linux")]
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde::{Deserialize, Serialize};

use distlto_executor::cancel::Cancel;
use distlto_executor::process_stat::stat;
use distlto_planner::dtlto::temporaries;

/// How many processes may stand between the linker and this one: wrapper scripts, tracers.
const GENERATIONS: usize = 16;
/// The file in a run's directory that lists the leftovers of the linker in case it is killed.
const RECORD: &str = "linker.json";

/// A linker process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLinker {
    /// Its number.
    process: u32,
    /// Its start time in the system's ticks, to distinguish it from a later process with the same number.
    started: Option<u64>,
}

/// A linker, and the files beside its output that it removes unless it is killed.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    linker: ParentLinker,
    /// Names in the directory of the output.
    temporaries: Vec<String>,
}

impl ParentLinker {
    /// The linker that waits for this process to run its job file.
    pub fn of_job_file(job_file: &Path) -> Option<Self> {
        let process = temporaries::process_of(job_file.file_name()?.to_str()?)?;
        let parent = getppid()?;
        let mut above = u32::try_from(parent.as_raw_pid()).ok()?;
        for _ in 0..GENERATIONS {
            if above == process {
                return Some(Self { process, started: stat(process).map(|found| found.started) });
            }
            above = stat(above)?.parent;
        }
        None
    }

    /// Its process number.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Whether its link line has --save-temps, so that it keeps its temporaries.
    pub fn keeps_temporaries(&self) -> bool {
        let line = link_line::parse(self.arguments().into_iter().skip(1)).unwrap_or_default();
        last(&line, "save-temps").is_some()
    }

    /// Returns the options of its link line that it does not pass to the compilers, each with a remedy. The spelling is
    /// that of the program that started it. Empty if the link line cannot be read.
    pub fn dropped(&self) -> Vec<String> {
        let starter = stat(self.process).and_then(|found| program_of(found.parent)).unwrap_or_default();
        let by_driver = is_driver(&starter);
        let arguments = self.arguments();
        let Some((linker, words)) = arguments.split_first() else { return Vec::new() };
        let first = words.first().map(Vec::as_slice);
        let Ok(line) = link_line::parse(words.iter().cloned()) else { return Vec::new() };
        if invocation::program(&lossy(linker), first) != ProgramKind::Lld || is_for_windows(&line) {
            return Vec::new();
        }
        let dropped = dropped::of_link_line(&line);
        let text = |dropped: &Dropped| match by_driver {
            true => dropped.for_driver().to_string(),
            false => dropped.to_string(),
        };
        dropped.iter().map(text).collect()
    }

    /// Its name and arguments, response files expanded. The distributor runs where the linker does.
    fn arguments(&self) -> Vec<Word> {
        let line = fs::read(format!("/proc/{}/cmdline", self.process)).unwrap_or_default();
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        let words: Vec<Word> = line.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        response::expand(words.clone()).unwrap_or(words)
    }

    /// Has the run end when the linker does.
    pub fn watch(&self, cancel: &Cancel) {
        #[cfg(target_os = "linux")]
        match self.descriptor() {
            Ok(descriptor) => {
                let cancel = cancel.clone();
                // Without the thread the run goes on to its end, as without a linker.
                let _ = threads::start("linker", move || {
                    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
                    while poll(&mut descriptors, None) == Err(Errno::INTR) {}
                    cancel.cancel(Some(libc::SIGTERM));
                });
            }
            // A kernel before 5.3. The signal comes once for each thread of a parent that ends, so it is second choice:
            // from the third one on, this process ends at once.
            Err(Errno::NOSYS | Errno::PERM) if self.is_parent() => {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
            }
            Err(_) => {}
        }
        // It may have ended before it was watched.
        if !self.is_alive() {
            cancel.cancel(Some(libc::SIGTERM));
        }
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Result<OwnedFd, Errno> {
        let pid = i32::try_from(self.process).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        pidfd_open(pid, PidfdFlags::empty())
    }

    fn is_parent(&self) -> bool {
        getppid().is_some_and(|parent| parent.as_raw_pid().unsigned_abs() == self.process)
    }

    /// Whether it still runs. A zombie does not, and has already removed its temporaries.
    pub fn is_alive(&self) -> bool {
        match stat(self.process) {
            Some(found) => !found.ended && self.started.is_none_or(|started| started == found.started),
            None if Path::new("/proc/self/stat").exists() => false,
            None => self.is_parent(),
        }
    }

    /// Records in a run's directory the files beside that directory that the linker leaves if it is killed.
    pub fn record(&self, run_directory: &Path, temporaries: Vec<String>) {
        let record = Record { linker: self.clone(), temporaries };
        // Without the record a killed linker's files stay, as they do without a distributor.
        if let Ok(text) = serde_json::to_vec(&record) {
            let _ = fs::write(run_directory.join(RECORD), text);
        }
    }
}

/// Removes the temporaries of a killed linker that a run's directory names, if that linker has ended.
pub fn clean_up_after(run_directory: &Path) {
    let record = regular::read(&run_directory.join(RECORD)).unwrap_or_default();
    let Ok(Record { linker, temporaries }) = serde_json::from_slice(&record) else { return };
    let Some(directory) = run_directory.parent() else { return };
    if linker.is_alive() {
        return;
    }
    for name in temporaries {
        // The record is checked like any input: plain names, and such as this linker gives.
        if !name.contains('/') && temporaries::is_temporary(&name, linker.process) {
            let _ = fs::remove_file(directory.join(name));
        }
    }
}

/// The names of those of `files` that this linker has made, or has made for it, in `directory`.
pub fn temporaries_among<'a>(
    files: impl Iterator<Item = &'a Path>,
    directory: &Path,
    linker: &ParentLinker,
) -> Vec<String> {
    let name = |file: &'a Path| {
        let name = file.file_name()?.to_str()?;
        let there = file.parent() == Some(directory);
        (there && temporaries::is_temporary(name, linker.process)).then(|| name.to_owned())
    };
    files.filter_map(name).collect()
}

/// The name of a process's program.
fn program_of(process: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Whether a program is a compiler driver, or gcc's `collect2` between driver and linker.
fn is_driver(program: &str) -> bool {
    program == "collect2" || invocation::program(program, None) == ProgramKind::Clang
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> u32 {
        std::process::id()
    }

    #[test]
    fn a_later_process_of_the_number_is_another_one() {
        let started = stat(own()).expect("this process").started;
        assert!(ParentLinker { process: own(), started: Some(started) }.is_alive());
        assert!(!ParentLinker { process: own(), started: Some(started + 1) }.is_alive());
    }

    #[test]
    fn only_recorded_temporaries_of_a_dead_linker_are_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let run = place.path().join("run");
        fs::create_dir(&run).expect("made");
        let dead = ParentLinker { process: own(), started: Some(0) };
        let mine = [
            format!("a.1.{}.native.o", own()),
            format!("l.a(m.o at 8).2.{:X}.o", own()),
            format!("p.{}.dist-file.json", own()),
        ];
        let other = format!("b.1.{}.native.o", own());
        let users = ["a.o".to_owned(), "a.1.native.o".to_owned()];
        for name in mine.iter().chain(&users).chain([&other]) {
            fs::write(place.path().join(name), "x").expect("writable");
        }
        let recorded = || mine.iter().chain(&users).cloned().chain(["../x".to_owned()]).collect();
        let alive = ParentLinker { process: own(), started: None };
        alive.record(&run, recorded());
        clean_up_after(&run);
        assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 7);
        dead.record(&run, recorded());
        clean_up_after(&run);
        for name in &mine {
            assert!(!place.path().join(name).exists(), "{name}");
        }
        for name in users.iter().chain([&other]) {
            assert!(place.path().join(name).exists(), "{name}");
        }
    }
}
