//! The work of a client, in counters.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use distlto_prepare::mutex::lock;

use crate::method::Method;

/// The counters of a client. They only grow.
#[derive(Debug, Default)]
pub struct Statistics {
    counts: Mutex<Snapshot>,
    /// Read without a lock.
    answers: AtomicU64,
}

/// [`Statistics`] at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Blobs that were uploaded.
    pub blobs_up: u64,
    /// Their bytes.
    pub bytes_up: u64,
    /// Bytes of blobs that were sent: compressed ones count as they were sent, repeated ones each time.
    pub wire_up: u64,
    /// Blobs that were downloaded.
    pub blobs_down: u64,
    /// Their bytes.
    pub bytes_down: u64,
    /// Bytes of blobs that were received, as `wire_up`.
    pub wire_down: u64,
    /// Calls that were made again.
    pub retries: u64,
    /// Connections that were begun.
    pub channels: u64,
    /// How often the credential helper ran.
    pub helper_runs: u64,
    /// Calls by method, each attempt counted.
    pub calls: BTreeMap<Method, u64>,
}

impl Statistics {
    pub(crate) fn called(&self, method: Method) {
        *lock(&self.counts).calls.entry(method).or_default() += 1;
    }

    pub(crate) fn called_again(&self) {
        lock(&self.counts).retries += 1;
    }

    pub(crate) fn connected(&self) {
        lock(&self.counts).channels += 1;
    }

    pub(crate) fn helper_ran(&self) {
        lock(&self.counts).helper_runs += 1;
    }

    pub(crate) fn sent(&self, bytes: usize) {
        lock(&self.counts).wire_up += bytes as u64;
    }

    pub(crate) fn uploaded(&self, size: u64) {
        let mut counts = lock(&self.counts);
        counts.blobs_up += 1;
        counts.bytes_up += size;
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.answered();
        lock(&self.counts).wire_down += bytes as u64;
    }

    pub(crate) fn downloaded(&self, size: u64) {
        let mut counts = lock(&self.counts);
        counts.blobs_down += 1;
        counts.bytes_down += size;
    }

    pub(crate) fn answered(&self) {
        self.answers.fetch_add(1, Relaxed);
    }

    /// How many answers to lookups came, and pieces of downloads: while this grows, the server is not silent.
    pub fn answers(&self) -> u64 {
        self.answers.load(Relaxed)
    }

    /// All counters.
    pub fn snapshot(&self) -> Snapshot {
        lock(&self.counts).clone()
    }
}
