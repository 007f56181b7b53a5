//! What the services of one server share: contents, switches, counters, operations and the queue.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonic::Status;

use crate::counts::Counts;
use crate::digest::Digest;
use crate::faults::{Faults, take};
use crate::options::Options;
use crate::queue::Queue;
use crate::store::Store;

/// One server's state, over restarts too but for the queue.
pub struct State {
    /// How it was made.
    pub options: Options,
    /// Its contents.
    pub store: Arc<Store>,
    /// What was asked of it.
    pub counts: Arc<Mutex<Counts>>,
    /// The hashes of files that were inputs.
    pub inputs: Arc<Mutex<HashSet<String>>>,
    /// How it errs.
    pub faults: Arc<Mutex<Faults>>,
    /// What is to run.
    pub queue: Queue,
    /// How many executions are followed.
    pub streams: AtomicUsize,
    /// Uploads that broke off, by resource name.
    pub partial: Mutex<HashMap<String, Vec<u8>>>,
}

/// A lock whose holders do not panic half-way.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The switches.
    pub fn faults(&self) -> MutexGuard<'_, Faults> {
        locked(&self.faults)
    }

    /// The counters.
    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut locked(&self.counts));
    }

    /// Counts inputs of an action that were no action's before.
    pub fn count_inputs(&self, files: &[Digest]) {
        let mut known = locked(&self.inputs);
        let new = files.iter().filter(|file| known.insert(file.hash.clone()));
        let bytes: i64 = new.map(|file| file.size_bytes).sum();
        self.count(|counts| counts.input_bytes += bytes.max(0) as u64);
    }

    /// Takes a blob that a client sends.
    pub fn upload(&self, digest: &Digest, bytes: &[u8]) -> Result<(), Status> {
        let again = self.store.upload(digest, bytes)?;
        self.count(|counts| {
            counts.blobs_uploaded += 1;
            counts.blob_bytes_uploaded += bytes.len() as u64;
            counts.blobs_uploaded_again += u64::from(again);
        });
        if take(&mut self.faults().evict_uploads) {
            self.store.evict(digest);
        }
        Ok(())
    }

    /// Gives a client a blob.
    pub fn download(&self, digest: &Digest) -> Result<Vec<u8>, Status> {
        let found = self.store.read(digest)?;
        let mut bytes = found.ok_or_else(|| Status::not_found(format!("no blob {}", digest.hash)))?;
        self.count(|counts| {
            counts.blobs_downloaded += 1;
            counts.blob_bytes_downloaded += bytes.len() as u64;
        });
        if let Some(last) = bytes.last_mut()
            && take(&mut self.faults().wrong_bytes)
        {
            *last ^= 1;
        }
        Ok(bytes)
    }

    /// Whether no further execution can be followed.
    pub fn is_crowded(&self) -> bool {
        let most = self.faults().most_streams;
        most > 0 && self.streams.load(Ordering::Relaxed) >= most
    }

    /// Only one instance is there.
    pub fn instance(&self, name: &str) -> Result<(), Status> {
        if name == self.options.instance {
            return Ok(());
        }
        Err(Status::invalid_argument(format!("there is no instance {name:?}")))
    }
}
