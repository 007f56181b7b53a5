//! Starts children with `fork` and `exec` on this machine.
//!
//! A child leads its own process group and is killed when the thread that started it ends (Linux). A descriptor signals
//! its end (`pidfd_open`, Linux 5.3), so no thread has to poll at intervals.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use distlto_planner::search_path::program_file;
use distlto_prepare::limits::SystemLimit;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};

use crate::execute::process::{Child, Command, Ended, Spawner};
use crate::protocol::{IMPORT, NOTES};
use crate::{hook, program_files, trace, variables};

/// How the file name of glibc's loader begins.
const LOADER: &[u8] = b"ld-linux";
/// How often, and after how long each time, it is tried again to start a process where there may be no more.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(10);

/// One that observes nothing.
pub static PLAIN: LocalSpawner = LocalSpawner { hook: None };

/// Starts each command as a process of its own.
#[derive(Debug, Clone)]
pub struct LocalSpawner {
    /// The library by which reads are observed; without one they are unknown.
    hook: Option<PathBuf>,
}

impl LocalSpawner {
    /// One that can observe the reads of commands.
    pub fn observing() -> Self {
        Self { hook: hook::find_library().filter(|hook| hook::can_be_preloaded(hook)) }
    }
}

impl Spawner for LocalSpawner {
    fn spawn(&self, command: &Command, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Box<dyn Child>> {
        let mut prepared = std::process::Command::new(&command.program);
        prepared.env_remove(variables::REMOTE_HEADERS);
        prepared.args(&command.args).stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        if let Some(directory) = &command.directory {
            prepared.current_dir(directory);
        }
        let hook = self.hook.as_ref().filter(|_| command.is_observed && loads_libraries(command));
        let notes = hook.map(|hook| observe(&mut prepared, hook)).transpose()?;
        if let Some(place) = &command.import {
            let hook =
                self.hook.as_ref().filter(|_| loads_libraries(command)).ok_or(io::ErrorKind::Unsupported)?;
            prepared.env("LD_PRELOAD", hook::preload([hook.as_path()])).env(IMPORT, place);
        }
        die_with_parent(&mut prepared);
        let child = start(&mut prepared)?;
        let pid = Pid::from_child(&child);
        Ok(Box::new(LocalChild { pid, ended: descriptor_of(pid), reaped: None, notes }))
    }
}

/// Whether a program is loaded by glibc's loader. That of another libc may refuse the hook, and a static program has none.
fn loads_libraries(command: &Command) -> bool {
    let directory = command.directory.as_deref().unwrap_or(Path::new(""));
    let program = program_file(Path::new(&command.program)).map(|program| directory.join(program));
    let loader = program.and_then(|program| program_files::interpreter(&program).ok().flatten());
    let name = loader.as_deref().and_then(Path::file_name).unwrap_or_default();
    name.as_encoded_bytes().starts_with(LOADER)
}

/// Has a program and its children note their reads; returns the memory for the notes.
fn observe(command: &mut std::process::Command, hook: &Path) -> io::Result<File> {
    let notes = trace::notes()?;
    let inherited = notes.as_raw_fd();
    command.env("LD_PRELOAD", hook::preload([hook])).env(NOTES, inherited.to_string());
    let inherit = move || {
        // SAFETY: the parent holds the descriptor.
        let notes = unsafe { BorrowedFd::borrow_raw(inherited) };
        Ok(rustix::io::fcntl_setfd(notes, FdFlags::empty())?)
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; this is one system call.
    unsafe { command.pre_exec(inherit) };
    Ok(notes)
}

/// Starts a process. An ended process counts against the limit for a moment longer, so a lack of processes is retried
/// for 200 ms.
fn start(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    for _ in 0..LOOKS {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            started => return started.map_err(SystemLimit::on_start),
        }
    }
    command.spawn().map_err(SystemLimit::on_start)
}

/// Has the kernel kill the child when the calling thread ends.
#[cfg(target_os = "linux")]
pub fn die_with_parent(command: &mut std::process::Command) {
    let parent = rustix::process::getpid();
    let tell = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from(rustix::io::Errno::SRCH))
        }
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; these are two system calls
    // that allocate nothing.
    unsafe { command.pre_exec(tell) };
}

#[cfg(not(target_os = "linux"))]
pub fn die_with_parent(_: &mut std::process::Command) {}

#[cfg(target_os = "linux")]
fn descriptor_of(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn descriptor_of(_: Pid) -> Option<OwnedFd> {
    None
}

struct LocalChild {
    pid: Pid,
    ended: Option<OwnedFd>,
    reaped: Option<Ended>,
    notes: Option<File>,
}

impl Child for LocalChild {
    fn id(&self) -> Option<Pid> {
        Some(self.pid)
    }

    fn ended(&self) -> Option<BorrowedFd<'_>> {
        self.ended.as_ref().map(AsFd::as_fd)
    }

    fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        if self.reaped.is_none() {
            self.reaped = wait4(self.pid)?;
        }
        Ok(self.reaped)
    }

    fn take_notes(&mut self) -> Option<File> {
        self.notes.take()
    }

    fn signal_group(&self, signal: Signal) {
        if self.reaped.is_none() {
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }
}

impl Drop for LocalChild {
    /// A child that nobody waits for any more must not go on running.
    fn drop(&mut self) {
        if self.reaped.is_none() {
            self.signal_group(Signal::KILL);
            let _ = rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty());
        }
    }
}

/// Waits without blocking. Only this call returns one child's memory and processor time.
fn wait4(pid: Pid) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: `rusage` is a plain C structure for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the types that wait4(2) writes.
    let got = unsafe { libc::wait4(pid.as_raw_pid(), &mut status, libc::WNOHANG, &mut usage) };
    match got {
        0 => Ok(None),
        _ if got == pid.as_raw_pid() => Ok(Some(Ended {
            status: ExitStatus::from_raw(status),
            peak_memory: peak_memory(&usage),
            cpu: Some(time(usage.ru_utime) + time(usage.ru_stime)),
        })),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            error => Err(error),
        },
    }
}

/// `ru_maxrss` counts kilobytes, on macOS bytes.
fn peak_memory(usage: &libc::rusage) -> Option<u64> {
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    u64::try_from(usage.ru_maxrss).ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

fn time(value: libc::timeval) -> Duration {
    let seconds = u64::try_from(value.tv_sec).unwrap_or(0);
    let micros = u64::try_from(value.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
