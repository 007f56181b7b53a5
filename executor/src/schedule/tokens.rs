//! Job slots of a build: how many jobs all its programs run at once.
//!
//! The protocol is GNU make's (`MAKEFLAGS`, "Job Slots" in its manual), which cargo and Ninja 1.13 speak too. A free slot
//! is a byte in a pipe. Every program may run one job without asking, and takes a byte for each further one. Without a
//! pipe, or with a broken one, nothing is asked for.
//!
//! The variable names a fifo, or two descriptors of one pipe. Few programs have these descriptors: make closes them in a
//! recipe line without `+`, and rustc in its linker. The program that has set the variable still has them, and the system
//! opens its pipe anew in `/proc`. So the slots are those of any process, which the crate jobserver cannot ask for: it
//! knows its own environment and its own descriptors alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use distlto_prepare::threads;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;

use crate::process_stat;

/// Variables that name a pipe, the first one that does counts. cargo's is for its compilers.
const VARIABLES: [&str; 2] = ["CARGO_MAKEFLAGS", "MAKEFLAGS"];
/// Before the name; the second until make 4.1.
const OPTIONS: [&str; 2] = ["--jobserver-auth=", "--jobserver-fds="];
const FIFO: &str = "fifo:";
/// Descriptors that make withholds have this in place of a number.
const WITHHELD: char = '-';

/// A pipe that a process's environment names and that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{variable} names the job slots {name}, which cannot be used: {why}")]
pub struct Unusable {
    variable: &'static str,
    name: String,
    why: io::Error,
}

/// The pipe with the free slots of a build.
#[derive(Debug, Clone)]
pub struct JobSlots(Arc<File>);

impl JobSlots {
    /// Returns the slots of the build that runs a process; `None` if that has none.
    pub fn of(process: u32) -> Result<Option<Self>, Unusable> {
        let found = VARIABLES.into_iter().find_map(|variable| Some((variable, named(process, variable)?)));
        let Some((variable, name)) = found else { return Ok(None) };
        let opened = match name.strip_prefix(FIFO) {
            Some(path) => Self::at(Path::new(path)),
            None => of_setter(process, variable, &name),
        };
        opened.map(Some).map_err(|why| Unusable { variable, name, why })
    }

    /// Opens a pipe for both directions. The flags of the others' descriptors stay theirs, so that this one need not block.
    pub fn at(pipe: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(pipe)?;
        match file.metadata()?.file_type().is_fifo() {
            true => Ok(Self(Arc::new(file))),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no pipe")),
        }
    }

    /// Like [`JobSlots::of`], but `None` also for those that cannot be used: `distlto doctor` reports them.
    pub fn usable(process: u32) -> Option<Self> {
        Self::of(process).ok().flatten()
    }

    /// Takes a slot if one is free.
    fn try_take(&self) -> io::Result<Option<Slot>> {
        let mut byte = [0];
        match (&*self.0).read(&mut byte) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(Some(Slot { byte: byte[0], slots: self.clone() })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for a slot; `None` if the run has ended meanwhile.
    fn take(&self, run: &PipeReader) -> io::Result<Option<Slot>> {
        loop {
            let mut ready = [PollFd::new(&*self.0, PollFlags::IN), PollFd::new(run, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            if !ready[1].revents().is_empty() {
                return Ok(None);
            }
            // Another program may have been faster.
            if let Some(slot) = self.try_take()? {
                return Ok(Some(slot));
            }
        }
    }
}

/// A taken slot, which is given back when it is dropped.
#[derive(Debug)]
pub struct Slot {
    byte: u8,
    slots: JobSlots,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A pipe that nobody reads any more needs it no more.
        let _ = (&*self.slots.0).write(&[self.byte]);
    }
}

/// The name of a pipe in a variable of a process. The last one counts, as for make.
fn named(process: u32, variable: &str) -> Option<String> {
    let value = process_stat::variable(process, variable).ok()??;
    let name = |word: &str| OPTIONS.iter().find_map(|option| word.strip_prefix(option)).map(str::to_owned);
    let name = value.to_str()?.split(' ').filter_map(name).next_back();
    name.filter(|name| !name.starts_with(WITHHELD))
}

/// Opens the pipe of the program that has set a variable: the nearest above the process that has the pipe, and whose own
/// variable differs from that of its child. Others may have any file under these numbers.
fn of_setter(process: u32, variable: &str, descriptors: &str) -> io::Result<JobSlots> {
    let Some((reader, writer)) = descriptors.split_once(',') else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither two numbers nor fifo:PATH"));
    };
    let value = |process| process_stat::variable(process, variable).ok();
    let parent =
        |&process: &u32| process_stat::stat(process).map(|stat| stat.parent).filter(|&parent| parent != 0);
    let mut below = process;
    for above in std::iter::successors(parent(&process), parent) {
        let [reader, writer] = [reader, writer].map(|number| format!("/proc/{above}/fd/{number}"));
        if value(above) != value(below) && is_one_pipe(&reader, &writer) {
            return JobSlots::at(Path::new(&reader));
        }
        below = above;
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "no program that runs this one has that pipe"))
}

fn is_one_pipe(reader: &str, writer: &str) -> bool {
    let file = |descriptor| fs::metadata(descriptor).ok().map(|found| (found.dev(), found.ino()));
    file(reader).is_some_and(|found| file(writer) == Some(found))
}

/// The slots of one run.
#[derive(Debug)]
pub struct Tokens {
    requests: Option<PipeWriter>,
    held: Vec<Slot>,
    asked: bool,
    /// Whether there are slots that cannot be asked for.
    broken: bool,
}

impl Tokens {
    /// Sends slots that are asked for to `deliver`, as messages made by `wrap`.
    pub fn new<M: Send + 'static>(
        slots: Option<&JobSlots>,
        deliver: Sender<M>,
        wrap: fn(io::Result<Slot>) -> M,
    ) -> Self {
        let requests = slots.map(|slots| {
            let (mut requested, requests) = io::pipe()?;
            let slots = slots.clone();
            threads::start("job slots", move || {
                while requested.read_exact(&mut [0]).is_ok()
                    && let Some(slot) = slots.take(&requested).transpose()
                {
                    // A run that has ended no longer listens; the slot is given back as it is dropped.
                    let _ = deliver.send(wrap(slot));
                }
            })?;
            Ok::<_, io::Error>(requests)
        });
        let broken = matches!(requests, Some(Err(_)));
        Self { requests: requests.and_then(Result::ok), held: Vec::new(), asked: false, broken }
    }

    /// Returns how many jobs may run at once at the moment.
    pub fn allowed(&self) -> usize {
        if self.requests.is_none() && !self.broken { usize::MAX } else { 1 + self.held.len() }
    }

    /// Asks for one more slot, unless one is on its way.
    pub fn ask(&mut self) {
        if let Some(requests) = self.requests.as_mut().filter(|_| !self.asked && !self.broken) {
            self.asked = requests.write_all(&[0]).is_ok();
            self.broken = !self.asked;
        }
    }

    /// Whether a slot that was asked for has not come.
    pub fn is_waiting(&self) -> bool {
        self.asked
    }

    /// Takes the answer. After an error the run goes on with its slots, at least one job.
    pub fn take(&mut self, answer: io::Result<Slot>) {
        self.asked = false;
        match answer {
            Ok(slot) => self.held.push(slot),
            Err(_) => self.broken = true,
        }
    }

    /// Gives back the slots that `running` jobs do not need.
    pub fn give_back(&mut self, running: usize) {
        self.held.truncate(running.saturating_sub(1));
    }
}
