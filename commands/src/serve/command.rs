//! Runs the user's command, and reads the command lines of its linkers.
//!
//! Does not answer linkers.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

use camino::Utf8PathBuf;
use distlto_exec::environment::SERVICE;
use distlto_executor::cancel::Urgency;
use distlto_executor::execute::spawn::die_with_parent;
use distlto_executor::variables;
use distlto_planner::invocation::{ProgramKind, program};
use distlto_planner::link_command::{LinkCommand, LinkCommandError};
use distlto_planner::link_line::{Argument, LinkLine, options};
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::linker::help::Help;
use distlto_planner::response;
use distlto_planner::runner::ToolError;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, path_of, word_of};
use distlto_prepare::io_error::IoError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::build::{Build, Seen};
use super::observed;
use super::process::{Process, linker_words};
use crate::link::error::LinkError;

/// How a command ended.
pub struct CommandEnd {
    /// Its own exit code; that of the link if it is one.
    pub code: u8,
    /// When it ended.
    pub at: Instant,
    /// The folders of the service, whose files are no inputs of a link.
    pub folders: Vec<PathBuf>,
    /// What its processes have done.
    pub seen: Seen,
    /// Whether it was one link, which is concluded.
    pub is_concluded: bool,
}

impl CommandEnd {
    /// The files that its processes have read and have not written, below the directory without it.
    pub fn files_read(&self) -> Result<Vec<Utf8PathBuf>, IoError> {
        observed::files_read(&self.seen.observed, &self.folders)
    }
}

/// Runs a command to its end, with the libraries in its processes; returns its exit code.
pub fn run(build: &Build<'_>) -> Result<u8, LinkError> {
    let words: Vec<_> = build.command.iter().map(|word| path_of(word)).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_remove(variables::REMOTE_HEADERS);
    command.env(SERVICE, build.listener().folder());
    command.env("LD_PRELOAD", build.libraries().preload(build.is_observed));
    command.envs(build.variables.iter().map(|(name, value)| (name, value)));
    die_with_parent(&mut command);
    let start = |source| ToolError::Start { program: lossy(&build.command[0]), source };
    let mut child = command.spawn().map_err(start)?;
    Ok(code_of(wait(build, &mut child).map_err(start)?))
}

/// Waits for a child, and forwards the signal that ends this process.
fn wait(build: &Build<'_>, child: &mut Child) -> io::Result<ExitStatus> {
    let process = Pid::from_child(child);
    let ended = pidfd_open(process, PidfdFlags::empty())?;
    let mut urgency_sent = Urgency::None;
    loop {
        let urgency = build.cancel.urgency();
        if urgency > urgency_sent {
            urgency_sent = urgency;
            let signal = match (urgency, build.cancel.signal().and_then(Signal::from_named_raw)) {
                (Urgency::Kill, _) => Signal::KILL,
                (_, signal) => signal.unwrap_or(Signal::TERM),
            };
            // It may have ended by itself.
            let _ = rustix::process::kill_process(process, signal);
        }
        let mut watched = vec![PollFd::new(&ended, PollFlags::IN)];
        let cancelled = build.cancel.ready();
        // Once set it stays ready.
        watched.extend(
            (urgency_sent == Urgency::None).then(|| PollFd::from_borrowed_fd(cancelled, PollFlags::IN)),
        );
        match poll(&mut watched, (urgency_sent == Urgency::Ask).then_some(&CHECK)) {
            Err(rustix::io::Errno::INTR) => {}
            polled => drop(polled?),
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
    }
}

/// Interval of checks whether a child that was asked to end has to be killed: 100 ms.
const CHECK: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// As a shell has it.
fn code_of(status: ExitStatus) -> u8 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The link of a process that is a linker, which `command` has started. `flavoured` is for another flavour than ELF's.
pub fn link_of(
    process: &Process,
    command: &[Word],
    flavoured: Option<(Flavour, &Help)>,
) -> Result<LinkCommand, LinkCommandError> {
    let (linker, words) = process.words.split_at(linker_words(&process.words));
    let mut linker = linker.to_vec();
    if !linker[0].contains(&b'/') {
        // lld goes by the name that it was started with, which its file may not have.
        let named = program_file(&path_of(&linker[0])).filter(|file| is_file_of(file, process));
        linker[0] = word_of(named.unwrap_or_else(|| process.program.clone()).into_os_string());
    }
    let words = response::expand_in(&process.directory, words.to_vec())?;
    let line = match flavoured {
        Some((flavour, help)) => flavour.read(words, help)?,
        None => LinkLine::read(words)?,
    };
    let name = lossy(&command[0]);
    let is_clang = program(&name, command.get(1).map(Vec::as_slice)) == ProgramKind::Clang;
    let compiler = is_clang.then(|| command[0].clone());
    let installed = process.program.parent().map(Path::to_owned);
    Ok(LinkCommand { linker, line, compilations: Vec::new(), compiler, installed })
}

/// Whether a path leads to the program of a process.
fn is_file_of(path: &Path, process: &Process) -> bool {
    path.canonicalize().is_ok_and(|file| file == process.program)
}

/// Returns the arguments that the link line gives to every compiler.
pub fn compiler_arguments(arguments: &[Argument]) -> Vec<String> {
    let values = |name: &'static str| {
        let named = options(arguments).filter(move |option| option.name == name);
        named.filter_map(|option| option.value.clone())
    };
    values("thinlto-remote-compiler-prepend-arg").chain(values("thinlto-remote-compiler-arg")).collect()
}
