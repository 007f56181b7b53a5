//! One run at a time for one output: an advisory lock on the state directory.
//!
//! The lock file holds the number of the process while it runs. The kernel drops the lock when a process dies, so a
//! number that is found under a free lock is one of a run that was killed.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use distlto_executor::process_stat::is_running;
use distlto_planner::state::Place;
use distlto_prepare::io_error::IoError;
use distlto_prepare::lock::{Lock, Locked, Patience};
use distlto_prepare::regular::{self, Links};

use super::error::LinkError;

/// The state directory, held; released when dropped.
#[derive(Debug)]
pub struct StateLock {
    file: File,
    /// Whether the run before this one was killed.
    pub after_crash: bool,
}

/// How long a lock may be held that names no running process. A run names itself once it holds the lock, and its
/// children hold it from their fork to their first program, also if it was killed.
const DYING: Duration = Duration::from_secs(10);

/// The process that a lock names. Text that is not a number is no process to name.
fn holder(mut file: &File) -> String {
    let mut holder = String::new();
    let _ = file.rewind().and_then(|()| file.read_to_string(&mut holder));
    holder.trim().to_owned()
}

/// Whether a link runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// None does, and the last one has ended.
    None,
    /// This process makes one.
    Running(u32),
    /// The last one was killed.
    Killed,
}

/// Whether a link of a state directory runs, by its lock file.
pub fn activity(directory: &Path) -> Activity {
    let text = regular::read(&Place::Lock.path(directory)).unwrap_or_default();
    match String::from_utf8_lossy(&text).trim().parse() {
        Ok(process) if is_running(process) => Activity::Running(process),
        Ok(_) => Activity::Killed,
        Err(_) => Activity::None,
    }
}

impl StateLock {
    /// Takes the lock of a state directory, which is there.
    pub fn take(directory: &str) -> Result<Self, LinkError> {
        let path = Place::Lock.path(directory);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let (file, _) =
            regular::open_with(&mut options, Links::Refuse, &path).map_err(IoError::on("write", &path))?;
        let start = Instant::now();
        let last = RefCell::default();
        let ends = || {
            let holder = holder(&file);
            let is_dead = holder.parse().is_ok_and(|holder| !is_running(holder));
            // Without a number, a run has just begun or is about to end.
            let ends = is_dead || holder.is_empty();
            *last.borrow_mut() = holder;
            ends && start.elapsed() < DYING
        };
        let patience = Patience::While(&ends);
        let lock = Lock { guards: "linking with", place: &path, links: Links::Refuse, patience };
        let taken = lock.ask(&file)?;
        match taken {
            Locked::Held => {}
            Locked::Taken => return Err(LinkError::Busy { path, holder: last.into_inner() }),
            Locked::Impossible => {
                return Err(IoError::on("lock", path)(std::io::ErrorKind::Unsupported.into()).into());
            }
        }
        let after_crash = !holder(&file).is_empty();
        let lock = Self { file, after_crash };
        lock.write(&format!("{}\n", std::process::id())).map_err(IoError::on("write", &path))?;
        Ok(lock)
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // A number that stays makes the next run sweep, which finds nothing.
        let _ = self.write("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_run_that_is_about_to_end_is_waited_for() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().to_str().expect("UTF-8");
        let lock = StateLock::take(directory).expect("free");
        lock.write("").expect("written");
        let taken = thread::scope(|scope| {
            let waiting = scope.spawn(|| StateLock::take(directory));
            thread::sleep(Duration::from_millis(50));
            drop(lock);
            waiting.join().expect("it returns")
        });
        assert!(!taken.expect("free").after_crash);
    }
}
