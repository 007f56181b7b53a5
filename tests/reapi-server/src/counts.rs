//! What a server was asked for, so that a test can assert on it.

use std::collections::BTreeMap;

/// Sums since the server was made; a restart does not begin them anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls by the method's name, as `FindMissingBlobs`, refused ones too.
    pub calls: BTreeMap<String, u64>,
    /// Calls that were refused by a switch.
    pub refused: u64,
    /// Connections.
    pub connections: u64,
    /// Bytes that came over connections, after TLS.
    pub bytes_in: u64,
    /// Bytes that went over connections, before TLS.
    pub bytes_out: u64,
    /// Blobs that were uploaded,
    pub blobs_uploaded: u64,
    /// and their bytes, uncompressed.
    pub blob_bytes_uploaded: u64,
    /// Of them, blobs that were there by an upload, or when the server was started.
    pub blobs_uploaded_again: u64,
    /// Blobs that were downloaded,
    pub blobs_downloaded: u64,
    /// and their bytes, uncompressed.
    pub blob_bytes_downloaded: u64,
    /// Digests that FindMissingBlobs was asked about.
    pub digests_asked: u64,
    /// Results that came from the action cache, by GetActionResult or Execute.
    pub cache_hits: u64,
    /// Bytes of the distinct files that actions had as inputs when they were run.
    pub input_bytes: u64,
    /// Actions that were run to an end, by worker.
    pub executed: BTreeMap<String, u64>,
}

impl Counts {
    /// Calls of one method.
    pub fn of(&self, method: &str) -> u64 {
        self.calls.get(method).copied().unwrap_or(0)
    }

    /// Actions that were run, wherever.
    pub fn all_executed(&self) -> u64 {
        self.executed.values().sum()
    }
}
