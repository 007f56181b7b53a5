//! Advisory locks: `flock(2)` on a file or a directory, which ends with the process that holds it.
//!
//! The one place that asks the system for a lock. Knows what became of asking, and not what the lock is for.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::regular::Links;

/// What became of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// It is held for as long as the file is open.
    Held,
    /// Another process has it.
    Taken,
    /// The file system has no locks.
    Impossible,
}

/// Asks for a lock that nobody else has.
pub fn take(file: &File) -> io::Result<Locked> {
    ask(file, FlockOperation::NonBlockingLockExclusive)
}

/// Asks for a lock that others who share it may have too.
pub fn share(file: &File) -> io::Result<Locked> {
    ask(file, FlockOperation::NonBlockingLockShared)
}

/// Waits for the lock, however long another process has it.
pub fn wait(file: &File) -> io::Result<Locked> {
    ask(file, FlockOperation::LockExclusive)
}

/// Waits for the lock, but not longer than this.
pub fn wait_for(file: &File, patience: Duration) -> io::Result<Locked> {
    let begun = Instant::now();
    loop {
        match take(file)? {
            Locked::Taken if begun.elapsed() < patience => sleep(Duration::from_millis(1)),
            locked => return Ok(locked),
        }
    }
}

fn ask(file: &File, how: FlockOperation) -> io::Result<Locked> {
    loop {
        return match flock(file, how) {
            Ok(()) => Ok(Locked::Held),
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => Ok(Locked::Taken),
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::BADF) => {
                Ok(Locked::Impossible)
            }
            Err(error) => Err(error.into()),
        };
    }
}

/// Opens a directory, to be locked. Anything else is an error and is not waited for.
pub fn open_directory(path: &Path, links: Links) -> io::Result<File> {
    let follow = if links == Links::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    Ok(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC | follow, Mode::empty())?.into())
}
