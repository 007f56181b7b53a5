//! The work of a client, in counters that every thread may read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::method::Method;

/// The counters of a client. They only grow, and are read without locks.
#[derive(Debug, Default)]
pub struct Statistics {
    pub(crate) blobs_up: AtomicU64,
    pub(crate) bytes_up: AtomicU64,
    pub(crate) wire_up: AtomicU64,
    pub(crate) blobs_down: AtomicU64,
    pub(crate) bytes_down: AtomicU64,
    pub(crate) wire_down: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) channels: AtomicU64,
    pub(crate) helper_runs: AtomicU64,
    answers: AtomicU64,
    calls: [AtomicU64; Method::ALL.len()],
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
        self.calls[method as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.wire_up.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn uploaded(&self, size: u64) {
        self.blobs_up.fetch_add(1, Relaxed);
        self.bytes_up.fetch_add(size, Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.answered();
        self.wire_down.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn downloaded(&self, size: u64) {
        self.blobs_down.fetch_add(1, Relaxed);
        self.bytes_down.fetch_add(size, Relaxed);
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
        let calls = Method::ALL.map(|method| (method, self.calls[method as usize].load(Relaxed)));
        Snapshot {
            blobs_up: self.blobs_up.load(Relaxed),
            bytes_up: self.bytes_up.load(Relaxed),
            wire_up: self.wire_up.load(Relaxed),
            blobs_down: self.blobs_down.load(Relaxed),
            bytes_down: self.bytes_down.load(Relaxed),
            wire_down: self.wire_down.load(Relaxed),
            retries: self.retries.load(Relaxed),
            channels: self.channels.load(Relaxed),
            helper_runs: self.helper_runs.load(Relaxed),
            calls: calls.into_iter().filter(|(_, count)| *count > 0).collect(),
        }
    }
}
