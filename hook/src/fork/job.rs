//! One job: its request, and the child that does it.
//!
//! For a compiler the child equals one that exec(2) made. Only the auxiliary vector (the random bytes of AT_RANDOM,
//! AT_EXECFN) and the memory layout are the server's.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::fork::layout::MemoryLayout;
use crate::program::Program;
use crate::protocol::{self, JobEnd, REQUEST_LIMIT, Reply};
use crate::socket;
use crate::system::check;
use crate::trace;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
    static mut program_invocation_name: *mut c_char;
    static mut program_invocation_short_name: *mut c_char;
}

/// A job's description as received.
pub struct JobRequest {
    /// Directory, arguments and environment, each with its NUL. The vectors below point into it.
    strings: Vec<u8>,
    argc: c_int,
    /// Where in the strings the arguments and the environment begin.
    starts: [usize; 2],
    /// As `execve` lays them out: arguments, NULL, environment, NULL, an empty auxiliary vector.
    vectors: Vec<*mut c_char>,
}

impl JobRequest {
    /// Reads the request from a job's control socket.
    pub fn receive(control: &OwnedFd) -> io::Result<Self> {
        let malformed = || io::Error::from_raw_os_error(libc::EPROTO);
        let mut length = [0; 4];
        socket::receive(control.as_fd(), &mut length)?;
        let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| malformed())?;
        if length > REQUEST_LIMIT {
            return Err(malformed());
        }
        let mut bytes = vec![0; length];
        socket::receive(control.as_fd(), &mut bytes)?;
        let (argc, envc, strings) = protocol::parse_request(&bytes).ok_or_else(malformed)?;
        let mut strings = strings.to_vec();
        let mut vectors = Vec::with_capacity(argc + envc + 4);
        let mut starts = [strings.len(); 2];
        let mut at = 0;
        let mut rest = strings.as_mut_slice();
        for index in 0..=argc + envc {
            let end = rest.iter().position(|&byte| byte == 0).ok_or_else(malformed)?;
            let (string, after) = rest.split_at_mut(end + 1);
            rest = after;
            let start = at;
            at += string.len();
            match index {
                0 => continue,
                1 => starts[0] = start,
                _ if index == argc + 1 => {
                    starts[1] = start;
                    vectors.push(ptr::null_mut());
                }
                _ => {}
            }
            vectors.push(string.as_mut_ptr().cast());
        }
        vectors.resize(argc + envc + 4 + usize::from(envc == 0), ptr::null_mut());
        Ok(Self { strings, argc: c_int::try_from(argc).map_err(|_| malformed())?, starts, vectors })
    }

    /// The argument after the program's name.
    pub fn first_argument(&self) -> Option<&CStr> {
        let word = *self.vectors.get(1)?;
        // SAFETY: a pointer that is not null points to a NUL-terminated string in `strings`.
        (self.argc > 1).then(|| unsafe { CStr::from_ptr(word) })
    }

    /// Enters the job's directory. The server does not need its own, so the children inherit this one.
    pub fn enter_directory(&self) -> io::Result<()> {
        // SAFETY: `strings` begins with a NUL-terminated directory (checked by parse_request).
        check(unsafe { libc::chdir(self.strings.as_ptr().cast()) }).map(drop)
    }
}

/// Parts of the server that only a child needs.
pub struct Surroundings<'a> {
    /// How the program is started.
    pub program: Program,
    /// The server's process id.
    pub server: libc::pid_t,
    /// Position of the program's arguments for the kernel, if it can be changed.
    pub layout: Option<MemoryLayout>,
    /// Opened for reading: the standard input of jobs.
    pub null: &'a OwnedFd,
    /// The signal mask the server was started with.
    pub mask: &'a libc::sigset_t,
    /// Descriptors that are the server's and not its children's.
    pub close: &'a [RawFd],
}

/// Forks a child for `request` with the given stdout and stderr, which notes its actions; returns its process id.
pub fn fork(
    mut request: JobRequest,
    [out, err]: [&OwnedFd; 2],
    notes: &OwnedFd,
    around: &Surroundings<'_>,
) -> io::Result<libc::pid_t> {
    // SAFETY: the server has one thread, so the child may go on to do anything.
    let pid = check(unsafe { libc::fork() })?;
    if pid != 0 {
        // The child does the same; in either order, the group exists before the first signal to it.
        // SAFETY: plain system call.
        unsafe { libc::setpgid(pid, pid) };
        return Ok(pid);
    }
    // SAFETY: plain system calls on descriptors that are open; the globals are glibc's, and this process has one
    // thread. `request` is forgotten below, so the strings of the vectors live for ever.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let streams = [(around.null, 0), (out, 1), (err, 2)];
        if libc::getppid() != around.server
            || streams.iter().any(|(from, to)| libc::dup2(from.as_raw_fd(), *to) < 0)
        {
            libc::_exit(127);
        }
        trace::begin(notes);
        for &descriptor in around.close {
            libc::close(descriptor);
        }
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let argv = request.vectors.as_mut_ptr();
        environ = argv.add(request.argc as usize + 1);
        program_invocation_name = *argv;
        let slash = libc::strrchr(*argv, c_int::from(b'/'));
        program_invocation_short_name = if slash.is_null() { *argv } else { slash.add(1) };
        libc::sigprocmask(libc::SIG_SETMASK, around.mask, ptr::null_mut());
        let argc = request.argc;
        if let Some(layout) = around.layout {
            let (arguments, environment) = request.strings.split_at(request.starts[1]);
            layout.show(&arguments[request.starts[0]..], environment);
        }
        std::mem::forget(request);
        around.program.run(argc, argv)
    }
}

/// A child that runs.
pub struct RunningJob {
    pid: libc::pid_t,
    /// Where its end is reported and signals for it arrive.
    pub control: OwnedFd,
    /// Whether the client has closed the control socket.
    pub given_up: bool,
    /// KiB of its resident size that are the server's, which it was forked with, and not counted.
    inherited: u64,
}

impl RunningJob {
    /// A job with a freshly forked child; its process group has the same number.
    pub fn new(pid: libc::pid_t, control: OwnedFd, inherited: u64) -> Self {
        Self { pid, control, given_up: false, inherited }
    }

    /// Passes on a signal of the client, or kills a job that the client has given up.
    pub fn take_signal(&mut self) {
        let mut signal = [0];
        match socket::receive(self.control.as_fd(), &mut signal) {
            Ok(()) => self.signal(c_int::from(signal[0])),
            Err(_) => {
                self.given_up = true;
                self.signal(libc::SIGKILL);
            }
        }
    }

    /// Signals the whole group. The leader is not reaped yet, so the number is still the job's.
    pub fn signal(&self, signal: c_int) {
        // SAFETY: plain system call.
        unsafe { libc::kill(-self.pid, signal) };
    }

    /// Reaps the child if it has ended and reports that; whether it has.
    pub fn reap(&self) -> bool {
        if !self.has_ended() {
            return false;
        }
        // The child's leftover processes end with it. Until it is reaped no other process can have its number.
        // SAFETY: plain system call.
        unsafe { libc::kill(-self.pid, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: rusage is plain data for which all zeroes is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live locals.
        if unsafe { libc::wait4(self.pid, &raw mut status, libc::WNOHANG, &raw mut usage) } != self.pid {
            return false;
        }
        let reply = Reply::Ended(JobEnd {
            status,
            user_us: microseconds(usage.ru_utime),
            system_us: microseconds(usage.ru_stime),
            max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_sub(self.inherited),
        });
        // A client that is gone needs no report.
        drop(socket::send(self.control.as_fd(), &reply.to_bytes()));
        true
    }

    /// Whether the child is a zombie.
    fn has_ended(&self) -> bool {
        // SAFETY: siginfo_t is plain data for which all zeroes is valid; the pointer is to a live local.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid as libc::id_t, &raw mut info, options) == 0
                && info.si_pid() == self.pid
        }
    }
}

fn microseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000)
        + u64::try_from(time.tv_usec).unwrap_or(0)
}
