//! The job slots and memory that one user's runs take of this machine together.
//!
//! Concurrent links know nothing of each other, and each would take all memory that it finds. So each run writes down
//! its use, and reads the entries of the others before it starts one more action. [`share`] computes the share of one
//! run; this file keeps the entries.
//!
//! # The books
//!
//! The ledger is a directory of the user's own ([`place`]), with one small file for each run ([`holding`]). Each run
//! locks its file for its lifetime, so that the system itself ends the reservations of a killed run. A file without a
//! lock belongs to a dead run and holds nothing; the next reader removes it. Reading the others and writing one's own
//! entry is one [`Turn`], with a lock on the directory. So two runs never take the same memory.
//!
//! The directory also records the servers that did not answer ([`absence`]).
//!
//! A ledger never fails a link. The caller warns once about a ledger that cannot be used, and the run goes on alone.
//! Independent of actions.

pub mod absence;
pub mod holding;
pub mod place;
pub mod share;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use distlto_prepare::io_error::IoError;
use distlto_prepare::lock::{Lock, Locked, Patience};
use distlto_prepare::private::Exposed;
use distlto_prepare::regular::{self, Links};
use tempfile::NamedTempFile;
use thiserror::Error;

use crate::process_stat;
use holding::Holding;

/// How the names of runs begin.
const PREFIX: &str = "run-";
/// Time limit for another run's turn. A turn takes less than a millisecond, unless its process was stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of known ancestor processes.
const GENERATIONS: usize = 64;

/// Why there is no ledger, or none any more.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The variable would mean another directory in each one.
    #[error("{} names {}, which is no absolute path", place::VARIABLE, path.display())]
    Relative {
        /// As it is named.
        path: PathBuf,
    },
    /// Something else is in its place, a symbolic link too.
    #[error("{} is no directory", path.display())]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// Others could have written its contents.
    #[error("{_0}; {}", _0.remedy())]
    Exposed(#[from] Exposed),
    /// Memory of another machine would be counted.
    #[error("{} is on a network file system, which other machines may see", path.display())]
    Network {
        /// The directory.
        path: PathBuf,
    },
    /// A killed run's holding would stay for ever.
    #[error("the file system of {} has no locks", path.display())]
    NoLocks {
        /// The directory.
        path: PathBuf,
    },
    /// A process that was stopped in its turn, for example.
    #[error("another process has held the lock on {} for {} s", path.display(), PATIENCE.as_secs())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// It cannot be made, read or written.
    #[error(transparent)]
    Io(#[from] IoError),
}

/// A ledger that can be used.
#[derive(Debug, Clone)]
pub struct Ledger {
    place: PathBuf,
}

/// The entry of one run, for the run's lifetime.
#[derive(Debug)]
pub struct Seat {
    ledger: Ledger,
    file: NamedTempFile,
    /// The processes that wait for this one.
    above: BTreeSet<u32>,
}

/// The time in which one run alone reads and writes.
pub struct Turn<'s> {
    seat: &'s mut Seat,
    others: Vec<Holding>,
    _lock: File,
}

impl Ledger {
    /// The one that the environment names, or the user's own; `None` where it is switched off. It is made if missing.
    pub fn of_environment() -> Result<Option<Self>, LedgerError> {
        place::of_environment()?.map(Self::open).transpose()
    }

    /// A ledger in this directory, which is made if missing.
    pub fn open(place: PathBuf) -> Result<Self, LedgerError> {
        place::make(&place)?;
        Self::locked(place)
    }

    /// The one in this directory; `None` if there is none so far.
    pub fn existing(place: PathBuf) -> Result<Option<Self>, LedgerError> {
        match place::check(&place) {
            Err(LedgerError::Io(error)) if error.source.kind() == ErrorKind::NotFound => Ok(None),
            checked => checked.and_then(|()| Self::locked(place)).map(Some),
        }
    }

    /// One that can be locked.
    fn locked(place: PathBuf) -> Result<Self, LedgerError> {
        let ledger = Self { place };
        ledger.lock().map(|_lock| ledger.clone())
    }

    /// Takes part.
    pub fn join(&self) -> Result<Seat, LedgerError> {
        let _lock = self.lock()?;
        Ok(Seat { ledger: self.clone(), file: self.enter()?, above: process_stat::above(GENERATIONS) })
    }

    /// Returns the holdings of all runs, without joining.
    pub fn holdings(&self) -> Result<Vec<Holding>, LedgerError> {
        let _lock = self.lock()?;
        Ok(self.read(None)?.others)
    }

    fn lock(&self) -> Result<File, LedgerError> {
        let path = || self.place.clone();
        let patience = Patience::AtMost(PATIENCE);
        let lock = Lock { guards: "writing to", place: &self.place, links: Links::Refuse, patience };
        match lock.hold()? {
            (file, Locked::Held) => Ok(file),
            (_, Locked::Taken) => Err(LedgerError::Busy { path: path() }),
            (_, Locked::Impossible) => Err(LedgerError::NoLocks { path: path() }),
        }
    }

    /// Makes a file for a run, and locks it. The directory is locked, so no other run takes the file for a dead run's
    /// before.
    fn enter(&self) -> Result<NamedTempFile, LedgerError> {
        let made = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.place);
        let file = made.map_err(IoError::on("write into", &self.place))?;
        if of_run(file.path()).ask(file.as_file())? != Locked::Held {
            return Err(LedgerError::NoLocks { path: self.place.clone() });
        }
        write(&file, &Holding::default())?;
        Ok(file)
    }

    /// Reads the entries of all other runs, with the directory locked.
    fn read(&self, own: Option<&Path>) -> Result<LedgerContents, LedgerError> {
        let failed = || IoError::on("read", &self.place);
        let mut found = LedgerContents { others: Vec::new(), has_own: false };
        for entry in fs::read_dir(&self.place).map_err(failed())? {
            let name: OsString = entry.map_err(failed())?.file_name();
            if !name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                continue;
            }
            let path = self.place.join(name);
            if own == Some(&path) {
                found.has_own = true;
            } else {
                found.others.extend(living(&path));
            }
        }
        Ok(found)
    }
}

/// The contents of a ledger.
struct LedgerContents {
    others: Vec<Holding>,
    has_own: bool,
}

impl Seat {
    /// Waits for the ledger and reads the holdings of all others.
    pub fn turn(&mut self) -> Result<Turn<'_>, LedgerError> {
        let lock = match self.ledger.lock() {
            Err(LedgerError::Io(error)) if error.source.kind() == ErrorKind::NotFound => {
                // The directory was removed meanwhile.
                place::make(&self.ledger.place)?;
                self.ledger.lock()?
            }
            locked => locked?,
        };
        let found = self.ledger.read(Some(self.file.path()))?;
        if !found.has_own {
            self.file = self.ledger.enter()?;
        }
        Ok(Turn { seat: self, others: found.others, _lock: lock })
    }

    /// Returns whether another run goes on to its end while this one waits: it was not stopped, and does not itself
    /// wait for this one.
    pub fn goes_on(&self, other: &Holding) -> bool {
        !self.above.contains(&other.process)
            && !process_stat::stat(other.process).is_some_and(|found| found.is_stopped)
    }
}

impl Turn<'_> {
    /// Returns the holdings of the other runs.
    pub fn others(&self) -> &[Holding] {
        &self.others
    }

    /// See [`Seat::goes_on`].
    pub fn goes_on(&self, other: &Holding) -> bool {
        self.seat.goes_on(other)
    }

    /// Writes the holding of this run, and ends the turn.
    pub fn write(self, holding: &Holding) -> Result<(), LedgerError> {
        write(&self.seat.file, holding)
    }
}

/// Writes in place, since the lock is on the file. Nobody reads it meanwhile, and the leftovers of a killed process
/// count for nothing.
fn write(file: &NamedTempFile, holding: &Holding) -> Result<(), LedgerError> {
    let written = file.as_file().write_all_at(&holding.to_bytes(), 0);
    Ok(written.map_err(IoError::on("write", file.path()))?)
}

/// Reads the entry of a run; `None` if it has ended, and then removes its file.
fn living(path: &Path) -> Option<Holding> {
    let options = &mut OpenOptions::new();
    let (file, _) = regular::open_with(options.read(true).write(true), Links::Refuse, path).ok()?;
    if of_run(path).ask(&file).is_ok_and(|locked| locked == Locked::Held) {
        // After a failure the next reader tries again.
        let _ = fs::remove_file(path);
        return None;
    }
    let mut bytes = Vec::new();
    (&file).take(holding::SIZE as u64).read_to_end(&mut bytes).ok()?;
    Holding::parse(&bytes)
}

fn of_run(path: &Path) -> Lock<'_> {
    Lock { guards: "taking part in", place: path, links: Links::Refuse, patience: Patience::None }
}
