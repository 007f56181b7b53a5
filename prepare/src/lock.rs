//! Advisory locks: `flock(2)` on a file or a directory, which ends with the process that holds it.
//!
//! The one place that asks the system for a lock. A [`Lock`] has its purpose, its place and its patience; a warning
//! names both in a long wait. Returns the outcome; the caller decides how to go on without the lock.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::io_error::IoError;
use crate::regular::Links;
use crate::warning::warn;

/// How often a lock that another process has is asked for again.
const PAUSE: Duration = Duration::from_millis(1);

/// How long a wait lasts before a warning.
const SILENCE: Duration = Duration::from_secs(5);

/// A lock that can be asked for.
#[derive(Clone, Copy)]
pub struct Lock<'a> {
    /// The work that nobody else may do at the same time, such as `unpacking into`.
    pub guards: &'static str,
    /// The file or directory that is locked.
    pub place: &'a Path,
    /// Whether it may be reached by a link.
    pub links: Links,
    /// How long it is waited for.
    pub patience: Patience<'a>,
}

/// How long a lock is waited for that another process has.
#[derive(Clone, Copy)]
pub enum Patience<'a> {
    /// Not at all: the other process does the same work, or is in its right.
    None,
    /// At most this long; the guarded work takes a moment, unless the other process was stopped.
    AtMost(Duration),
    /// As long as this says.
    While(&'a dyn Fn() -> bool),
    /// Until it is free. After a few seconds a warning names the work and the place.
    Endless,
}

/// The outcome of a request for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locked {
    /// It is held for as long as the file is open.
    Held,
    /// Another process has it.
    Taken,
    /// The file system has no locks.
    Impossible,
}

impl Lock<'_> {
    /// Opens a directory and asks for the lock on it. Anything else than a directory is an error.
    pub fn hold(&self) -> Result<(File, Locked), IoError> {
        let directory = self.open()?;
        let locked = self.ask(&directory)?;
        Ok((directory, locked))
    }

    /// Opens a directory that is to be locked.
    pub fn open(&self) -> Result<File, IoError> {
        let follow = if self.links == Links::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | follow;
        let opened = rustix::fs::open(self.place, flags, Mode::empty());
        opened.map(File::from).map_err(|error| IoError::on("open directory", self.place)(error.into()))
    }

    /// Asks for the lock on an open file.
    pub fn ask(&self, file: &File) -> Result<Locked, IoError> {
        let begun = Instant::now();
        loop {
            let locked = self.try_once(file, FlockOperation::NonBlockingLockExclusive)?;
            let goes_on = locked == Locked::Taken
                && match self.patience {
                    Patience::None => false,
                    Patience::AtMost(patience) => begun.elapsed() < patience,
                    Patience::While(waits) => waits(),
                    Patience::Endless => true,
                };
            if !goes_on {
                return Ok(locked);
            }
            if matches!(self.patience, Patience::Endless) && begun.elapsed() >= SILENCE {
                warn(format_args!("waiting for another process that is {self}"));
                return self.try_once(file, FlockOperation::LockExclusive);
            }
            sleep(PAUSE);
        }
    }

    fn try_once(&self, file: &File, how: FlockOperation) -> Result<Locked, IoError> {
        loop {
            return match flock(file, how) {
                Ok(()) => Ok(Locked::Held),
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => Ok(Locked::Taken),
                Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::BADF) => {
                    Ok(Locked::Impossible)
                }
                Err(error) => Err(IoError::on("lock", self.place)(error.into())),
            };
        }
    }
}

/// Whether an open file or directory is still the one at its place: the last holder of its lock may have renamed or
/// removed it.
pub(crate) fn is_in_place(file: &File, place: &Path) -> io::Result<bool> {
    let (open, there) = (file.metadata()?, fs::metadata(place)?);
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

impl fmt::Display for Lock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.guards, self.place.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn patience_ends_as_it_was_said() {
        let place = tempfile::tempdir().expect("a directory");
        let lock = |patience| Lock { guards: "testing", place: place.path(), links: Links::Refuse, patience };
        let (held, locked) = lock(Patience::None).hold().expect("a directory");
        assert_eq!(locked, Locked::Held);
        let taken = |patience| lock(patience).hold().expect("a directory").1;
        assert_eq!(taken(Patience::None), Locked::Taken);
        assert_eq!(taken(Patience::AtMost(PAUSE)), Locked::Taken);
        let asked = Cell::new(0);
        let thrice = || {
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        assert_eq!((taken(Patience::While(&thrice)), asked.get()), (Locked::Taken, 3));
        let let_go = Cell::new(Some(held));
        let once = || {
            drop(let_go.take());
            true
        };
        assert_eq!(taken(Patience::While(&once)), Locked::Held);
        assert_eq!(lock(Patience::Endless).to_string(), format!("testing {}", place.path().display()));
    }
}
