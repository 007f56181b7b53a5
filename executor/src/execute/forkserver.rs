//! Starts children by asking a fork server: the compiler itself, loaded once, that forks a child per job.
//!
//! Loading clang's libraries costs more than compiling a small module. The server is the unmodified program with
//! `libdistlto_hook.so` preloaded (its source says how it works). A program that does not become a server
//! (static, another libc, a script, the library missing) is started the ordinary way, without an error.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use distlto_prepare::limits::SystemLimit;
use distlto_prepare::mutex::lock;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal};

use crate::execute::heap;
use crate::execute::process::{Child, Command, Ended, Lost, Spawner};
use crate::execute::spawn;
use crate::trace;
use crate::variables;
use library::{can_be_preloaded, find_library, preload};
use protocol::{Hello, Reply};

pub mod library;
// A link to the source of the library: a published crate holds a copy.
#[expect(dead_code, reason = "the server half is compiled into the preloaded library")]
pub(crate) mod protocol;

/// From this many jobs on, a server's work for all of them together is worth it.
pub const MANY: usize = 64;

/// How long a server may take to load. A program that is no server is known by its end, long before.
const LOADING: Duration = Duration::from_secs(5);
/// How long a server may take to start a child. One that is stopped takes for ever.
const STARTING: Duration = Duration::from_secs(30);
/// Servers of one program that may die before it is run without.
const DEATHS: u32 = 3;
/// How long a server may take to end, and a job that was lost with one.
const ENDING: Duration = Duration::from_secs(1);

/// Starts children through one server per program, or through another spawner where there can be none.
pub struct ForkServer<S> {
    library: Option<PathBuf>,
    otherwise: S,
    servers: Mutex<HashMap<OsString, Arc<Mutex<Slot>>>>,
    patience: Duration,
}

/// The server of one program.
#[derive(Default)]
struct Slot {
    state: State,
    /// Servers of it that were killed or hung.
    deaths: u32,
}

#[derive(Default)]
enum State {
    #[default]
    Absent,
    Loading(Server),
    Ready(Server),
    /// The program did not become a server, and is not asked again.
    Unable,
}

impl<S: Spawner> ForkServer<S> {
    /// Returns servers with the library of [`find_library`]. `otherwise` starts the programs that cannot be servers.
    pub fn new(otherwise: S) -> Self {
        Self::with_library(find_library(), otherwise)
    }

    /// Servers with this library; with `None` every child is started by `otherwise`.
    pub fn with_library(library: Option<PathBuf>, otherwise: S) -> Self {
        let is_for = cfg!(all(target_os = "linux", target_env = "gnu"));
        let library = library.filter(|library| is_for && can_be_preloaded(library));
        Self { library, otherwise, servers: Mutex::default(), patience: STARTING }
    }

    /// The same, but a server that takes longer than this to start a child is replaced.
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Starts loading a program before its first job is known. `jobs` is how many are expected at most.
    ///
    /// Returns at once; a failure shows, if at all, as an ordinary start of the first job. May be called again
    /// when more is known.
    pub fn prewarm(&self, program: &OsStr, jobs: usize) {
        let Some(library) = &self.library else { return };
        let Some(key) = key(program, None) else { return };
        let slot = self.slot(&key);
        let mut slot = lock(&slot);
        slot.state.begin(&key, library);
        if let State::Loading(server) | State::Ready(server) = &mut slot.state {
            server.expect_jobs(jobs);
        }
    }

    /// The process id of a program's server, where one runs.
    pub fn server_of(&self, program: &OsStr) -> Option<u32> {
        match &lock(&self.slot(&key(program, None)?)).state {
            State::Ready(server) => Some(server.process.id()),
            _ => None,
        }
    }

    fn slot(&self, key: &OsStr) -> Arc<Mutex<Slot>> {
        Arc::clone(lock(&self.servers).entry(key.to_owned()).or_default())
    }

    /// Asks the program's server. `None` when the program has none.
    fn ask(&self, command: &Command, [out, err]: [BorrowedFd<'_>; 2]) -> Option<io::Result<ServedChild>> {
        let library = self.library.as_deref()?;
        let request = request(command)?;
        let key = key(&command.program, command.directory.as_deref())?;
        let slot = self.slot(&key);
        // A server may have been killed since its last job.
        loop {
            let notes = match trace::notes() {
                Ok(notes) => notes,
                Err(error) => return Some(Err(error)),
            };
            let (server, control) = {
                let mut slot = lock(&slot);
                let server = slot.state.ready(&key, library)?;
                (
                    server.process.id(),
                    server
                        .send([out, err, notes.as_fd()])
                        .map(|control| (control, Arc::clone(&server.serves))),
                )
            };
            match control.and_then(|(control, served)| begin(control, served, notes, &request, self.patience))
            {
                Err(error) if is_gone(&error) => lock(&slot).forget(server),
                result => return Some(result),
            }
        }
    }
}

impl<S: Spawner> Spawner for ForkServer<S> {
    fn spawn(&self, command: &Command, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Box<dyn Child>> {
        match self.ask(command, [stdout.as_fd(), stderr.as_fd()]) {
            Some(child) => Ok(Box::new(child?)),
            None => self.otherwise.spawn(command, stdout, stderr),
        }
    }

    fn is_warm(&self) -> bool {
        self.library.is_some()
    }

    fn shrink(&self) {
        let slots: Vec<_> = lock(&self.servers).values().map(Arc::clone).collect();
        for slot in slots {
            let mut slot = lock(&slot);
            let is_idle = match &slot.state {
                State::Loading(server) | State::Ready(server) => Arc::strong_count(&server.serves) == 1,
                State::Absent | State::Unable => true,
            };
            if is_idle {
                slot.state = State::Unable;
            }
        }
    }

    fn plain(&self) -> Option<&dyn Spawner> {
        Some(&self.otherwise)
    }
}

impl Slot {
    /// Ends a server that does not answer; one that another thread has started since stays.
    fn forget(&mut self, server: u32) {
        if let State::Ready(found) = &mut self.state
            && found.process.id() == server
        {
            // A stopped process would not notice that its socket closes.
            let _ = found.process.kill();
            self.deaths += 1;
            self.state = if self.deaths < DEATHS { State::Absent } else { State::Unable };
        }
    }
}

impl State {
    /// Starts the server, if that was not tried yet.
    fn begin(&mut self, key: &OsStr, library: &Path) {
        if matches!(self, Self::Absent) {
            *self = Server::start(key, library).map_or(Self::Unable, Self::Loading);
        }
    }

    /// The server, once it is loaded; `None` when there is to be none.
    fn ready(&mut self, key: &OsStr, library: &Path) -> Option<&mut Server> {
        self.begin(key, library);
        if let Self::Loading(server) = self {
            let greeted = server.await_hello();
            *self = match std::mem::take(self) {
                Self::Loading(server) if greeted => Self::Ready(server),
                _ => Self::Unable,
            };
        }
        match self {
            Self::Ready(server) => Some(server),
            _ => None,
        }
    }
}

/// A process that was asked to be a server.
struct Server {
    process: std::process::Child,
    socket: UnixStream,
    jobs: usize,
    knows_of_many: bool,
    /// Each running job has one of it.
    serves: Arc<()>,
}

impl Server {
    fn start(program: &OsStr, library: &Path) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut command = std::process::Command::new(program);
        command
            .arg(protocol::ARGUMENT)
            .env("LD_PRELOAD", preload([library]))
            // Symbols bound before the fork are bound for every child.
            .env("LD_BIND_NOW", "1")
            .env(protocol::VARIABLE, "0")
            .env_remove(variables::REMOTE_HEADERS)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        // Jobs inherit the heap, and have environments of their own.
        if let Some(tunables) = heap::tunables() {
            command.env(heap::VARIABLE, tunables);
        }
        // SAFETY: does nothing. With it the process is forked; posix_spawn(3) would leave a signal of glibc's own
        // ignored in the server, and so in its children.
        unsafe { command.pre_exec(|| Ok(())) };
        Ok(Self {
            process: spawn::start(&mut command)?,
            socket,
            jobs: 0,
            knows_of_many: false,
            serves: Arc::default(),
        })
    }

    /// Whether the process greets as a server does, and is the one that was started.
    fn await_hello(&mut self) -> bool {
        let mut bytes = [0; Hello::SIZE];
        let read =
            self.socket.set_read_timeout(Some(LOADING)).and_then(|()| self.socket.read_exact(&mut bytes));
        read.is_ok() && Hello::from_bytes(bytes) == Some(Hello { pid: self.process.id() })
    }

    /// Sends the server one message as soon as there are enough jobs.
    fn expect_jobs(&mut self, jobs: usize) {
        if jobs >= MANY && !self.knows_of_many {
            self.knows_of_many = true;
            // A server that is gone is noticed by the next job.
            let _ = rustix::net::send(&self.socket, &[protocol::MANY], SendFlags::NOSIGNAL);
        }
    }

    /// Announces a job; returns our end of its control socket.
    fn send(&mut self, [stdout, stderr, notes]: [BorrowedFd<'_>; 3]) -> io::Result<UnixStream> {
        self.jobs += 1;
        self.expect_jobs(self.jobs);
        let (control, theirs) = UnixStream::pair()?;
        let descriptors = [theirs.as_fd(), stdout, stderr, notes];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let byte = [IoSlice::new(&[protocol::JOB])];
        rustix::net::sendmsg(&self.socket, &byte, &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(control)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    /// A server ends its jobs and itself when its socket closes.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let end = Instant::now() + ENDING;
        while !self.has_ended() {
            if Instant::now() >= end {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Sends the request and waits until the child is there.
fn begin(
    mut control: UnixStream,
    served: Arc<()>,
    notes: File,
    request: &[u8],
    patience: Duration,
) -> io::Result<ServedChild> {
    let mut rest = request;
    while !rest.is_empty() {
        // Not `write`: a server that is gone must not end us with SIGPIPE.
        match rustix::net::send(&control, rest, SendFlags::NOSIGNAL) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut bytes = [0; Reply::SIZE];
    control.set_read_timeout(Some(patience))?;
    control.read_exact(&mut bytes)?;
    match Reply::from_bytes(bytes) {
        Some(Reply::Started(pid)) => Ok(ServedChild {
            control,
            group: Pid::from_raw(pid),
            ended: None,
            notes: Some(notes),
            _served: served,
        }),
        Some(Reply::Refused(errno)) => Err(SystemLimit::on_start(io::Error::from_raw_os_error(errno))),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A child of a server.
struct ServedChild {
    control: UnixStream,
    /// Its process id and process group.
    group: Option<Pid>,
    ended: Option<Ended>,
    notes: Option<File>,
    _served: Arc<()>,
}

impl ServedChild {
    /// Ends the group of a child without a server, and waits at most a second for that: the next run of the job must be
    /// the only writer of its outputs. The number is still the group's: the system gives out all others first.
    fn end_group(&self) {
        let Some(group) = self.group else { return };
        let end = Instant::now() + ENDING;
        while rustix::process::kill_process_group(group, Signal::KILL).is_ok() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Child for ServedChild {
    fn id(&self) -> Option<Pid> {
        self.group
    }

    fn ended(&self) -> Option<BorrowedFd<'_>> {
        Some(self.control.as_fd())
    }

    fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let mut bytes = [0; Reply::SIZE];
        // The server sends a reply in one piece, so either all of it is there or nothing is.
        let count = match rustix::net::recv(&self.control, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((count, _)) => count,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
            Err(_) => 0,
        };
        match Reply::from_bytes(bytes).filter(|_| count == bytes.len()) {
            Some(Reply::Ended(usage)) => {
                self.ended = Some(Ended {
                    status: ExitStatus::from_raw(usage.status),
                    peak_memory: usage.max_rss_kib.checked_mul(1024).filter(|&bytes| bytes > 0),
                    cpu: Some(Duration::from_micros(usage.user_us.saturating_add(usage.system_us))),
                });
                Ok(self.ended)
            }
            _ => {
                self.end_group();
                Err(Lost.into())
            }
        }
    }

    fn is_served(&self) -> bool {
        true
    }

    fn take_notes(&mut self) -> Option<File> {
        self.notes.take()
    }

    fn signal_group(&self, signal: Signal) {
        // The server signals, since it alone knows whether the number still is the child's.
        if let (None, Ok(byte)) = (self.ended, u8::try_from(signal.as_raw())) {
            let _ = rustix::net::send(&self.control, &[byte], SendFlags::NOSIGNAL);
        }
    }
}

impl Drop for ServedChild {
    /// A child that nobody waits for any more must not go on running.
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.control.shutdown(std::net::Shutdown::Write);
            // The server kills the group and reports; how the child ended no longer matters.
            let _ = self.control.set_read_timeout(Some(ENDING));
            if matches!(self.control.read(&mut [0; Reply::SIZE]), Ok(0)) {
                self.end_group();
            }
        }
    }
}

/// Returns the key of a program's server. As for exec(2), a path with a slash starts from the job's directory.
fn key(program: &OsStr, directory: Option<&Path>) -> Option<OsString> {
    if !program.as_bytes().contains(&b'/') {
        return Some(program.to_owned());
    }
    let directory = std::path::absolute(directory.unwrap_or(Path::new("."))).ok()?;
    Some(directory.join(program).into_os_string())
}

/// A command with everything that a child of our own would inherit.
fn request(command: &Command) -> Option<Vec<u8>> {
    let here = std::env::current_dir().ok()?;
    let directory = command.directory.as_ref().map_or(here.clone(), |directory| here.join(directory));
    let environment: Vec<Vec<u8>> = variables::of_programs()
        .map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='))
        .collect();
    let words = std::iter::once(&command.program).chain(&command.args);
    protocol::request(
        directory.as_os_str().as_bytes(),
        words.map(|word| word.as_bytes()),
        environment.iter().map(Vec::as_slice),
    )
}

/// Whether an error says that the other end of a socket has closed or does not answer.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof | WouldBlock | TimedOut)
}
