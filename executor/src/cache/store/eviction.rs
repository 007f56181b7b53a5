//! Keeping to the limits while a cache is in use, without looking at everything each time something is put.
//!
//! Each process adds its stored bytes to a sum that all share (see [`super::usage`]), a few times per second at most.
//! The process that brings the sum over the limit scans all files once, in a thread of its own. It removes the least
//! recently used files until a tenth of the limit is free, so each stored tenth of the limit costs one scan. Once a
//! day, or as often as the age limit needs, one process scans in any case. A link does not remove files that it uses
//! itself.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use distlto_prepare::blobs::Blobs;
use distlto_prepare::io_error::IoError;
use distlto_prepare::lock::{Lock, Locked, Patience};
use distlto_prepare::mutex::lock;
use distlto_prepare::prune::{GoOn, PruneReport};
use distlto_prepare::regular::Links;
use distlto_prepare::threads;

use super::layout::{PARTS, RECORDS};
use super::limits::CacheLimits;
use super::usage::{self, Usage};
use crate::cancel::Cancel;

/// Puts and bytes of a process that are not in the shared statistics yet: at most so many.
const UNNOTED_PUTS: u64 = 256;
const UNNOTED_BYTES: u64 = 16 << 20;
/// How often all files are counted in any case.
const COUNT_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The counts of one process, and its pruning thread.
#[derive(Debug)]
pub(super) struct Evictor {
    pub limits: CacheLimits,
    /// Files that were used after this moment stay, if there is one: this process may have used them.
    pub since: Option<SystemTime>,
    /// What the shared statistics lack so far.
    unnoted: Mutex<Usage>,
    puts: AtomicU64,
    state: Arc<PruneState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct PruneState {
    running: AtomicBool,
    cancel: OnceLock<Cancel>,
}

impl PruneState {
    fn is_cancelled(&self) -> bool {
        self.cancel.get().is_some_and(Cancel::is_cancelled)
    }
}

impl Evictor {
    pub fn new(limits: CacheLimits) -> Self {
        Self {
            limits,
            since: None,
            unnoted: Mutex::default(),
            puts: AtomicU64::new(0),
            state: Arc::default(),
            thread: Mutex::default(),
        }
    }

    /// A result was stored.
    pub fn stored(&self) {
        lock(&self.unnoted).stored += 1;
    }

    /// A lookup gave all outputs, or did not.
    pub fn looked_up(&self, hit: bool) {
        let mut unnoted = lock(&self.unnoted);
        *if hit { &mut unnoted.hits } else { &mut unnoted.misses } += 1;
    }

    /// Counts a put of so many bytes, and sometimes updates the shared statistics.
    pub fn put(&self, blobs: &Arc<Blobs>, bytes: u64) {
        let bytes = {
            let mut unnoted = lock(&self.unnoted);
            unnoted.bytes = unnoted.bytes.saturating_add(bytes);
            unnoted.bytes
        };
        let puts = self.puts.fetch_add(1, Ordering::Relaxed) + 1;
        let most = self.limits.size.map_or(UNNOTED_BYTES, |size| UNNOTED_BYTES.min(size / 64));
        if bytes >= most || puts.is_multiple_of(UNNOTED_PUTS) {
            self.note(blobs);
        }
    }

    /// Adds to the shared sum, and begins to prune if it is time.
    fn note(&self, blobs: &Arc<Blobs>) {
        let counts = std::mem::take(&mut *lock(&self.unnoted));
        if counts == Usage::default() {
            return;
        }
        match usage::update(blobs, |usage| usage.add(&counts)) {
            Some(usage) if self.is_due(&usage) => self.prune_to_limits(blobs),
            Some(_) => {}
            None => lock(&self.unnoted).add(&counts),
        }
    }

    fn is_due(&self, usage: &Usage) -> bool {
        let often = self.limits.age.map_or(COUNT_EVERY, |age| COUNT_EVERY.min(age / 8));
        self.limits.size.is_some_and(|size| usage.bytes > size)
            || usage::now().saturating_sub(usage.counted) >= often.as_secs().max(1)
    }

    /// Makes room on a full disk, even below the limit: removes at least a tenth of the cache.
    pub fn make_room(&self, blobs: &Arc<Blobs>) {
        let limits = self.limits;
        // The shared sum lacks the last puts, in a small cache all of them, so the files themselves are counted.
        self.prune(blobs, move |blobs| {
            let held = blobs.holdings(&PARTS).map(|holdings| holdings.disk).ok();
            CacheLimits { size: [limits.size, held].into_iter().flatten().min(), ..limits }
        });
    }

    fn prune_to_limits(&self, blobs: &Arc<Blobs>) {
        let limits = self.limits;
        self.prune(blobs, move |_| limits);
    }

    /// Prunes in a thread, unless one does so already. A failure shows when the cache is looked after by hand.
    fn prune(&self, blobs: &Arc<Blobs>, limits: impl FnOnce(&Blobs) -> CacheLimits + Send + 'static) {
        if self.state.is_cancelled() || self.state.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let (state, blobs, since) = (Arc::clone(&self.state), Arc::clone(blobs), self.since);
        let pruning = threads::start("distlto-prune", move || {
            if let Some(_alone) = alone(&blobs) {
                let _ = prune(&blobs, with_room(limits(&blobs)), since, &|| !state.is_cancelled());
            }
            state.running.store(false, Ordering::Release);
        });
        match pruning {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(_) => self.state.running.store(false, Ordering::Release),
        }
    }

    /// Gives up pruning as soon as the token is set.
    pub fn until(&self, cancel: Cancel) {
        // The first token stays: a cache is opened for one run.
        let _ = self.state.cancel.set(cancel);
    }

    /// Adds the remaining counts to the shared statistics, and waits for pruning.
    pub fn end(&self, blobs: &Arc<Blobs>) {
        self.note(blobs);
        if self.wait() && usage::read(blobs).ok().flatten().is_some_and(|usage| self.is_due(&usage)) {
            // For the puts while it ran.
            self.prune_to_limits(blobs);
            self.wait();
        }
    }

    /// Waits for pruning, if there is any.
    fn wait(&self) -> bool {
        let thread = lock(&self.thread).take();
        thread.is_some_and(|thread| thread.join().is_ok())
    }
}

/// A tenth below the limit.
fn with_room(limits: CacheLimits) -> CacheLimits {
    CacheLimits { size: limits.size.map(|size| size - size / 10), ..limits }
}

/// Returns a file that holds the lock while it lives; `None` while another process prunes.
fn alone(blobs: &Blobs) -> Option<std::fs::File> {
    let place = blobs.root().join(RECORDS);
    let lock = Lock { guards: "pruning", place: &place, links: Links::Follow, patience: Patience::None };
    let (records, locked) = lock.hold().ok()?;
    // Without locks two prune at once, which harms nobody.
    (locked != Locked::Taken).then_some(records)
}

/// Prunes to the limits, but for files used after `since`, and records the remaining bytes. If `go_on` ends it early, the
/// next one to prune counts.
pub(super) fn prune(
    blobs: &Blobs,
    limits: CacheLimits,
    since: Option<SystemTime>,
    go_on: GoOn<'_>,
) -> Result<PruneReport, IoError> {
    let before = usage::read(blobs).ok().flatten().unwrap_or_default().bytes;
    let report = blobs.prune(&PARTS, limits.size, limits.age, since, go_on)?;
    if !go_on() {
        return Ok(report);
    }
    usage::update(blobs, |usage| {
        let meanwhile = usage.bytes.saturating_sub(before);
        usage.bytes = report.kept_bytes.saturating_add(meanwhile);
        usage.counted = usage::now();
        usage.removed = usage.removed.saturating_add(report.removed_files as u64);
    });
    Ok(report)
}

/// Whether a disk or a quota has no room.
pub(super) fn is_full(error: &IoError) -> bool {
    matches!(error.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
