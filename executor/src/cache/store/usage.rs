//! How much a cache holds and how it was used, in a file that all its users add to.
//!
//! The lock is held only while a small file is read and written. Nobody waits for it long: counts that cannot be added
//! now are added with the next. Bytes that killed processes did not add are found when all files are counted again. See
//! [`distlto_prepare::sealed`] for the file's form; its body is JSON. Knows nothing of the cached files.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use distlto_prepare::blobs::{self, Blobs};
use distlto_prepare::lock::{Lock, Locked, Patience};
use distlto_prepare::regular::Links;
use distlto_prepare::sealed;
use serde::{Deserialize, Serialize};

use super::layout::sha256;

const HEADER: &str = "distlto cache usage 1\n";

/// The holder of the lock needs less than a millisecond, unless it was stopped.
const PATIENCE: Duration = Duration::from_millis(20);

/// Statistics that need no look at the files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes on disk, about.
    pub bytes: u64,
    /// When everything was counted last, in seconds since 1970; 0 for never.
    pub counted: u64,
    /// Since when the following are counted, in seconds since 1970.
    pub since: u64,
    /// Lookups that gave a result.
    pub hits: u64,
    /// Lookups that gave none.
    pub misses: u64,
    /// Results stored.
    pub stored: u64,
    /// Files removed because of a limit.
    pub removed: u64,
}

impl Usage {
    /// Adds the counts of a process.
    pub(super) fn add(&mut self, counts: &Self) {
        self.bytes = self.bytes.saturating_add(counts.bytes);
        self.stored = self.stored.saturating_add(counts.stored);
        self.hits = self.hits.saturating_add(counts.hits);
        self.misses = self.misses.saturating_add(counts.misses);
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

fn path(root: &Path) -> PathBuf {
    root.join("usage")
}

/// Reads the statistics; `None` if there are none yet. The error is a sentence about the damage.
pub(super) fn read(blobs: &Blobs) -> Result<Option<Usage>, String> {
    let path = path(blobs.root());
    let bytes = match blobs::read_at_most(&path, 1 << 16) {
        Ok((bytes, _)) => bytes,
        Err(error) if blobs::is_nothing(&error) => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let usage = sealed::decode(HEADER, &bytes, sha256)
        .and_then(|body| serde_json::from_slice(body).map_err(|error| error.to_string()));
    usage.map(Some).map_err(|problem| format!("{}: {problem}", path.display()))
}

/// Changes the statistics and returns them; `None` if that cannot be done at the moment.
pub(super) fn update(blobs: &Blobs, change: impl FnOnce(&mut Usage)) -> Option<Usage> {
    let patience = Patience::AtMost(PATIENCE);
    let lock = Lock { guards: "counting the use of", place: blobs.root(), links: Links::Follow, patience };
    let (_root, locked) = lock.hold().ok()?;
    // Without locks something may go uncounted, until all is counted again.
    if locked == Locked::Taken {
        return None;
    }
    let begun = Usage { since: now(), ..Usage::default() };
    let mut usage = read(blobs).ok().flatten().unwrap_or(begun);
    change(&mut usage);
    let body = serde_json::to_vec(&usage).expect("numbers have a JSON form");
    blobs.write(&path(blobs.root()), &sealed::encode(HEADER, &body, sha256)).ok()?;
    Some(usage)
}

/// Checks the statistics. Returns a sentence about the damage, and removes a damaged file unless `keep` is set.
pub(super) fn check(blobs: &Blobs, keep: bool) -> Option<String> {
    let problem = read(blobs).err()?;
    if !keep {
        // A damaged file that stays is never believed.
        let _ = blobs::remove(&path(blobs.root()));
    }
    Some(problem)
}
