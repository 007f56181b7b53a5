//! One child process: started in a process group of its own, its output captured within bounds, ended with us.
//!
//! Knows nothing of compilers and actions. Linux signals a child when the *thread* that started it ends
//! (`PR_SET_PDEATHSIG`), so [`run`] starts a child and waits for it on one thread. Starting is behind [`Spawner`].

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use distlto_planner::words::{Word, path_of};
use distlto_record::report::Measured;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};

use crate::cancel::{Cancel, Urgency};
use crate::execute::capture::{Captured, HEAD};

/// How long a child may take to end after it was asked to.
pub const GRACE: Duration = Duration::from_secs(2);

/// How often a child is looked at that the system gives no descriptor for.
const LOOK: Duration = Duration::from_millis(5);

/// A command to run. It inherits the environment; its standard input is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, looked up in `PATH` when it holds no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs; the current directory when `None`.
    pub directory: Option<PathBuf>,
    /// Whether its reads are to be observed.
    pub is_observed: bool,
    /// Where a clang writes its module after the imports, and ends.
    pub import: Option<PathBuf>,
}

/// Starts children. The seam between running a command and how a process comes to be.
pub trait Spawner: Send + Sync {
    /// Starts a command with these descriptors as its standard output and standard error.
    ///
    /// The child leads a process group of its own and ends when the calling thread or this process does.
    fn spawn(&self, command: &Command, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Box<dyn Child>>;
}

/// A child that runs or has ended.
pub trait Child {
    /// Its process number, which is that of its process group.
    fn id(&self) -> Option<Pid>;
    /// A descriptor that is ready to be read from once the child has ended, where the system has one.
    fn ended(&self) -> Option<BorrowedFd<'_>>;
    /// Returns how the child ended, or `None` while it runs. Does not block.
    fn try_wait(&mut self) -> io::Result<Option<Ended>>;
    /// The memory with its notes ([`Trace`](crate::trace::Trace)), if it makes any.
    fn take_notes(&mut self) -> Option<File> {
        None
    }
    /// Sends a signal to the child's whole process group. Nothing happens when the group is gone.
    fn signal_group(&self, signal: Signal);
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code or signal.
    pub status: ExitStatus,
    /// Peak memory in bytes, if the system reports it.
    pub peak_memory: Option<u64>,
    /// Processor time, if the system reports it.
    pub cpu: Option<Duration>,
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Finished {
    /// The process number of the child, which may be another's from here on.
    pub process: Option<Pid>,
    /// How the child ended.
    pub ended: Ended,
    /// Standard output of the child.
    pub stdout: Captured,
    /// Standard error of the child.
    pub stderr: Captured,
    /// From start to end.
    pub wall: Duration,
    /// Whether the child was ended because the run was cancelled.
    pub cancelled: bool,
    /// The memory with the child's notes ([`Trace`](crate::trace::Trace)), if it made any.
    pub notes: Option<File>,
}

impl Finished {
    /// Returns its wall time, processor time and peak memory.
    pub fn measured(&self) -> Measured {
        let Ended { cpu, peak_memory, .. } = self.ended;
        Measured { wall: self.wall, cpu, peak_memory, ..Measured::default() }
    }
}

/// Runs a command to its end, or until `cancel` ends it: `SIGTERM` to its group, `SIGKILL` after `grace`.
///
/// Fails only if the command cannot be started or waited for. Kills the
/// remaining processes of its group when it ends: they could write outputs that have been checked.
pub fn run(
    command: &Command,
    spawner: &dyn Spawner,
    cancel: &Cancel,
    grace: Duration,
) -> io::Result<Finished> {
    run_keeping(command, spawner, cancel, grace, HEAD)
}

/// [`run`], keeping this many bytes of each stream's beginning.
pub fn run_keeping(
    command: &Command,
    spawner: &dyn Spawner,
    cancel: &Cancel,
    grace: Duration,
    keep: usize,
) -> io::Result<Finished> {
    let start = Instant::now();
    let (out_reader, out_writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (err_reader, err_writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    for reader in [&out_reader, &err_reader] {
        rustix::io::ioctl_fionbio(reader, true)?;
    }
    let child = spawner.spawn(command, out_writer, err_writer)?;
    let stream = |reader| Stream { reader: Some(reader), captured: Captured::keeping(keep) };
    let finished = attend(child, stream(out_reader), stream(err_reader), cancel, grace)?;
    Ok(Finished { wall: start.elapsed(), ..finished })
}

/// Reads the output of a child until it ends, or ends it.
fn attend(
    mut child: Box<dyn Child>,
    mut stdout: Stream,
    mut stderr: Stream,
    cancel: &Cancel,
    grace: Duration,
) -> io::Result<Finished> {
    let mut ending = Ending::default();
    let ended = loop {
        wait_for_news(&stdout, &stderr, child.as_ref(), cancel, &ending)?;
        ending.step(child.as_ref(), cancel, grace);
        stdout.drain()?;
        stderr.drain()?;
        if child.ended().is_some_and(is_ready) {
            // The leader is a zombie, so no other group can have its number: kill its remaining processes.
            child.signal_group(Signal::KILL);
        }
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
    };
    // All output of the child is in the pipes by now. A process that it left behind may hold them open.
    stdout.drain()?;
    stderr.drain()?;
    Ok(Finished {
        process: child.id(),
        ended,
        stdout: stdout.captured,
        stderr: stderr.captured,
        wall: Duration::ZERO,
        cancelled: ending.asked.is_some(),
        notes: child.take_notes(),
    })
}

/// How far the ending of a cancelled child has come.
#[derive(Default)]
struct Ending {
    asked: Option<Instant>,
    killed: bool,
}

impl Ending {
    fn step(&mut self, child: &dyn Child, cancel: &Cancel, grace: Duration) {
        let urgency = cancel.urgency();
        if urgency == Urgency::None || self.killed {
            return;
        }
        let asked = *self.asked.get_or_insert_with(|| {
            child.signal_group(Signal::TERM);
            Instant::now()
        });
        if urgency == Urgency::Kill || asked.elapsed() >= grace {
            child.signal_group(Signal::KILL);
            self.killed = true;
        }
    }
}

/// One captured stream; without a reader once it has come to its end.
struct Stream {
    reader: Option<OwnedFd>,
    captured: Captured,
}

impl Stream {
    /// Reads the available output. Stops after one megabyte, so that a flood of output cannot delay a signal.
    fn drain(&mut self) -> io::Result<()> {
        let Some(reader) = &self.reader else { return Ok(()) };
        let mut buffer = [0; 64 << 10];
        for _ in 0..16 {
            match rustix::io::read(reader, &mut buffer) {
                Ok(0) => {
                    self.reader = None;
                    break;
                }
                Ok(count) => self.captured.push(&buffer[..count]),
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Sleeps until there is output, the child has ended, or the run is cancelled.
fn wait_for_news(
    stdout: &Stream,
    stderr: &Stream,
    child: &dyn Child,
    cancel: &Cancel,
    ending: &Ending,
) -> io::Result<()> {
    let ended = child.ended();
    let cancelled = ending.asked.is_none().then(|| cancel.ready());
    let readers = [&stdout.reader, &stderr.reader].into_iter().flatten().map(AsFd::as_fd);
    let mut descriptors: Vec<PollFd<'_>> = readers
        .chain(ended)
        .chain(cancelled)
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
        .collect();
    // Once asked to end, the clock and a second signal matter too, which have no descriptor.
    let look = (ended.is_none() || ending.asked.is_some()).then_some(LOOK);
    let timeout = look.map(|look| Timespec { tv_sec: 0, tv_nsec: look.subsec_nanos().into() });
    match poll(&mut descriptors, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_ready(descriptor: BorrowedFd<'_>) -> bool {
    let mut descriptors = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    matches!(poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1))
}

impl Command {
    /// Returns a command of these words; the first one is the program. `None` if there are no words.
    pub fn of_words(words: &[Word], directory: Option<&Path>) -> Option<Self> {
        let (program, args) = words.split_first()?;
        Some(Self {
            program: path_of(program).into(),
            args: args.iter().map(|word| path_of(word).into()).collect(),
            directory: directory.map(Path::to_owned),
            is_observed: false,
            import: None,
        })
    }
}

/// The signal that ended a process, with its name.
pub fn signal_name(status: ExitStatus) -> Option<(i32, &'static str)> {
    let signal = status.signal()?;
    Some((signal, signal_hook::low_level::signal_name(signal).unwrap_or("a signal without a name")))
}
