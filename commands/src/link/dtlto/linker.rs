//! The linker's process: run to its end on a thread of its own, watched from another.
//!
//! Knows nothing of what it links.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use distlto_prepare::io_error::IoError;

use super::hand_over::{HandOver, JobFileRequest};
use super::messages::Messages;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::{self, Command, Finished, GRACE, Spawner};

/// The linker's process, as far as it is seen from here.
pub struct Linker {
    pub begun: Instant,
    /// Ends with the linker.
    over: OwnedFd,
    /// Whether it waits for backends.
    waits: AtomicBool,
    pub messages: Messages,
}

impl Linker {
    /// One that is about to run; `over` ends with it.
    pub fn new(over: OwnedFd) -> Self {
        Self { begun: Instant::now(), over, waits: AtomicBool::new(false), messages: Messages::new() }
    }

    /// Does what the linker waits for. A linker that ends meanwhile ends the run.
    pub fn while_it_waits<T>(&self, body: impl FnOnce() -> T) -> T {
        self.waits.store(true, Ordering::SeqCst);
        let result = body();
        self.waits.store(false, Ordering::SeqCst);
        result
    }

    /// Runs the linker to its end.
    pub fn run(&self, command: &Command, spawner: &dyn Spawner, cancel: &Cancel) -> io::Result<Finished> {
        let finished =
            process::run_through(command, spawner, cancel, GRACE, &|text| self.messages.take(text));
        // Nobody is left to take what backends make. A second call would kill those that were asked to end.
        if self.waits.load(Ordering::SeqCst) && !cancel.is_cancelled() {
            cancel.cancel(None);
        }
        finished
    }

    /// Waits for a job file; `None` once the linker has ended.
    pub fn request(&self, hand_over: &mut HandOver) -> Result<Option<JobFileRequest>, IoError> {
        hand_over.next(self.over.as_fd()).map_err(IoError::on("wait for", "the linker"))
    }
}
