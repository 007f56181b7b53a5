//! One token that ends a run: set by a signal (or by a caller), seen by every waiting worker at once.
//!
//! Independent of processes. The rule is that of make and cargo: the first signal asks children to end and lets them
//! clean up. The second kills them; the third ends this process as if it had no handler.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use rustix::pipe::PipeFlags;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// How urgently a run is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Go on.
    None,
    /// Start nothing, ask children to end (`SIGTERM`), kill those that do not within the grace period.
    Ask,
    /// Kill children at once.
    Kill,
}

/// A shared token; clones are the same token.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    urgency: AtomicU8,
    signal: AtomicI32,
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Cancel {
    /// A token that nothing has set. Fails when the process has no file descriptor left.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Shared { urgency: AtomicU8::new(0), signal: AtomicI32::new(0), reader, writer })))
    }

    /// Ends the run, one step more urgently with each call. `signal` is the one that asked for it, if one did.
    pub fn cancel(&self, signal: Option<i32>) {
        if let Some(signal) = signal {
            // The first signal names the exit code.
            let _ = self.0.signal.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
        }
        let raised =
            self.0.urgency.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some((old + 1).min(2)));
        if raised == Ok(0) {
            // The byte is never read, so the reader stays ready for every worker. A pipe that holds nothing
            // takes one byte.
            let _ = rustix::io::write(&self.0.writer, &[1]);
        }
    }

    /// How urgently the run is to end.
    pub fn urgency(&self) -> Urgency {
        match self.0.urgency.load(Ordering::SeqCst) {
            0 => Urgency::None,
            1 => Urgency::Ask,
            _ => Urgency::Kill,
        }
    }

    /// Whether the run is to end.
    pub fn is_cancelled(&self) -> bool {
        self.urgency() > Urgency::None
    }

    /// The signal that ended the run, if one did.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.signal.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }

    /// The exit code of a program that this token ended: 128 + signal, 130 when no signal is known.
    pub fn exit_code(&self) -> u8 {
        self.signal().and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(130)
    }

    /// Ready to be read from as soon as the token is set; to be polled, never read.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.0.reader.as_fd()
    }
}

/// Returns a token that `SIGINT`, `SIGTERM` and `SIGHUP` set. Leaves out signals ignored since the start of this
/// process (by `nohup`, or by a shell for a background job). To be called once, early in `main`.
pub fn cancel_on_signals() -> io::Result<Cancel> {
    let cancel = Cancel::new()?;
    if is_ignored(SIGCHLD)? {
        // Nobody can wait for a child then, compilers neither.
        // SAFETY: sets the action of a signal before anything depends on it.
        unsafe { libc::signal(SIGCHLD, libc::SIG_DFL) };
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if is_ignored(signal)? {
            continue;
        }
        let token = cancel.clone();
        let handler = move || {
            if token.urgency() == Urgency::Kill {
                // Killing did not end the run; obey the user rather than hang.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            token.cancel(Some(signal));
        };
        // SAFETY: the handler is signal-safe: it changes atomics and writes a byte to a pipe, and ends the process by a
        // function that is made for handlers.
        unsafe { signal_hook::low_level::register(signal, handler) }?;
    }
    Ok(cancel)
}

/// Whether a signal does nothing to this process.
fn is_ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: `sigaction` is a plain C structure for which all zeroes is a value.
    let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only; the pointer is to a live variable.
    match unsafe { libc::sigaction(signal, std::ptr::null(), &mut found) } {
        0 => Ok(found.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}
