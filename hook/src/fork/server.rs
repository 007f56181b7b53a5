//! The server's loop: takes jobs, reports their ends, passes signals on, until the client closes the socket.
//!
//! One thread, several jobs at a time. Independent of the contents of a job.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::fork::heap;
use crate::fork::huge::Mover;
use crate::fork::job::{self, JobRequest, RunningJob, Surroundings};
use crate::fork::layout::MemoryLayout;
use crate::fork::llvm;
use crate::program::Program;
use crate::protocol::{Hello, JOB, MANY, Reply};
use crate::socket;
use crate::system::check;

/// Serves jobs until the client closes `socket`; then no job is left running.
pub fn serve(program: Program, socket: &OwnedFd) {
    // A server that cannot begin sends no greeting; the client does without it.
    let Ok(mut server) = Server::begin(program, socket) else { return };
    while server.step().is_ok() {}
    for job in &server.jobs {
        job.signal(libc::SIGKILL);
    }
}

struct Server<'a> {
    program: Program,
    socket: &'a OwnedFd,
    null: OwnedFd,
    layout: Option<MemoryLayout>,
    pid: libc::pid_t,
    /// The mask that jobs get.
    mask: libc::sigset_t,
    /// The same with SIGCHLD let through: the mask during the server's wait.
    waiting: libc::sigset_t,
    jobs: Vec<RunningJob>,
    mover: Mover,
}

impl<'a> Server<'a> {
    fn begin(program: Program, socket: &'a OwnedFd) -> io::Result<Self> {
        let null = OwnedFd::from(std::fs::File::open("/dev/null")?);
        // SAFETY: the sets are plain data, initialised by sigemptyset and sigprocmask; the handler does nothing.
        let (mask, waiting, pid) = unsafe {
            check(libc::fcntl(socket.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC))?;
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut blocked);
            libc::sigaddset(&raw mut blocked, libc::SIGCHLD);
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, &raw mut mask))?;
            let mut waiting = mask;
            libc::sigdelset(&raw mut waiting, libc::SIGCHLD);
            let handler: extern "C" fn(c_int) = interrupted;
            if libc::signal(libc::SIGCHLD, handler as libc::sighandler_t) == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
            (mask, waiting, libc::getpid())
        };
        // The memory of the targets is on the heap before the first job.
        let program = if llvm::register_targets() { program.ending_early() } else { program };
        heap::begin_at_huge_page();
        let hello = Hello { pid: u32::try_from(pid).unwrap_or(0) };
        socket::send(socket.as_fd(), &hello.to_bytes())?;
        let layout = MemoryLayout::own();
        Ok(Self {
            program,
            socket,
            null,
            layout,
            pid,
            mask,
            waiting,
            jobs: Vec::new(),
            mover: Mover::default(),
        })
    }

    /// Waits for one round of events and deals with them; an error ends the server.
    fn step(&mut self) -> io::Result<()> {
        let of = |descriptor: RawFd| libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // poll(2) passes over negative descriptors: those of clients that have given their job up.
        let controls =
            self.jobs.iter().map(|job| of(if job.given_up { -1 } else { job.control.as_raw_fd() }));
        let mut polled: Vec<_> = std::iter::once(of(self.socket.as_raw_fd())).chain(controls).collect();
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = if self.mover.is_done() { ptr::null() } else { &raw const at_once };
        // SIGCHLD is blocked except here, so no end of a child goes unnoticed between a look and the wait.
        // SAFETY: the array, the set and the time are live locals or fields.
        let ready =
            unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as _, timeout, &raw const self.waiting) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if ready > 0 {
            for (job, _) in self.jobs.iter_mut().zip(&polled[1..]).filter(|(_, polled)| polled.revents != 0) {
                job.take_signal();
            }
            if polled[0].revents != 0 {
                self.take_request()?;
            }
        }
        if ready == 0 {
            self.mover.step();
        }
        self.jobs.retain(|job| !job.reap());
        Ok(())
    }

    /// Takes one request off the socket; an error of the job itself fails the job alone.
    fn take_request(&mut self) -> io::Result<()> {
        let (byte, descriptors) =
            socket::receive_descriptors(self.socket.as_fd())?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if byte == MANY && self.mover.moved == 0 {
            self.mover = Mover::find();
            return Ok(());
        }
        let Ok([control, out, err, notes]) = <[OwnedFd; 4]>::try_from(descriptors) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if byte != JOB {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match self.start(&control, &out, &err, &notes) {
            Ok(pid) => {
                drop(socket::send(control.as_fd(), &Reply::Started(pid).to_bytes()));
                let inherited = u64::try_from(self.mover.moved / 1024).unwrap_or(0);
                self.jobs.push(RunningJob::new(pid, control, inherited));
            }
            Err(error) => {
                let reply = Reply::Refused(error.raw_os_error().unwrap_or(libc::EIO));
                drop(socket::send(control.as_fd(), &reply.to_bytes()));
            }
        }
        Ok(())
    }

    fn start(
        &self,
        control: &OwnedFd,
        out: &OwnedFd,
        err: &OwnedFd,
        notes: &OwnedFd,
    ) -> io::Result<libc::pid_t> {
        let request = JobRequest::receive(control)?;
        request.enter_directory()?;
        llvm::before_job(request.first_argument());
        let others = self.jobs.iter().map(|job| job.control.as_raw_fd());
        let close: Vec<RawFd> = [&self.null, control, out, err, notes]
            .into_iter()
            .map(AsRawFd::as_raw_fd)
            .chain(others)
            .collect();
        let around = Surroundings {
            program: self.program,
            server: self.pid,
            layout: self.layout,
            null: &self.null,
            mask: &self.mask,
            close: &close,
        };
        job::fork(request, [out, err], notes, &around)
    }
}

extern "C" fn interrupted(_: c_int) {}
