//! Each blob goes up at most once for all callers, and only when the server lacks it.
//!
//! The state of a blob is "there" or "on its way"; never "missing", which ages badly. Uploads are tasks of their own:
//! one waiting caller may go away, and others still get it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, watch};

use crate::batches::BatchUpdates;
use crate::batching::Batcher;
use crate::blob::Blob;
use crate::call::Calls;
use crate::capabilities::{Capabilities, compresses};
use crate::digest::Digest;
use crate::error::Error;
use crate::missing_blobs::MissingBlobs;
use crate::stream_write;

type Ended = watch::Receiver<Option<Result<(), Error>>>;
type Ending = watch::Sender<Option<Result<(), Error>>>;

/// Blobs that this caller sends.
type Own = Vec<(Blob, Ending)>;
/// Blobs that somebody else sends.
type SentByOthers = Vec<(Blob, Ended)>;

/// The known state of a blob.
enum BlobState {
    /// The server has it.
    Present,
    /// It is being asked for or sent.
    Sending(Ended),
}

/// Uploads of a client.
pub struct Uploads {
    calls: Arc<Calls>,
    capabilities: Capabilities,
    finds: Arc<Batcher<MissingBlobs>>,
    updates: Arc<Batcher<BatchUpdates>>,
    known: Mutex<HashMap<Digest, BlobState>>,
    streams: Semaphore,
}

impl Uploads {
    pub fn new(calls: &Arc<Calls>, capabilities: &Capabilities) -> Arc<Self> {
        let update = BatchUpdates { calls: calls.clone(), capabilities: capabilities.clone() };
        Arc::new(Self {
            calls: calls.clone(),
            capabilities: capabilities.clone(),
            finds: Batcher::new(MissingBlobs { calls: calls.clone() }, MissingBlobs::limits()),
            updates: Batcher::new(update, BatchUpdates::limits(capabilities)),
            known: Mutex::default(),
            streams: Semaphore::new(calls.options.transfers.max(1)),
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, BlobState>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which of `digests` the server lacks.
    pub async fn missing(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, Error> {
        let unknown: Vec<_> = {
            let known = self.known();
            digests
                .into_iter()
                .filter(|digest| !matches!(known.get(digest), Some(BlobState::Present)))
                .collect()
        };
        let answers = self.finds.ask(unknown.clone());
        let mut missing = Vec::new();
        for (digest, answer) in unknown.into_iter().zip(answers) {
            if answer.await.map_err(|_| Error::Shutdown)?? {
                missing.push(digest);
            } else {
                self.known().entry(digest).or_insert(BlobState::Present);
            }
        }
        Ok(missing)
    }

    /// Forgets that blobs are there.
    pub fn forget(&self, digests: impl IntoIterator<Item = Digest>) {
        let mut known = self.known();
        for digest in digests {
            if let Entry::Occupied(entry) = known.entry(digest)
                && matches!(entry.get(), BlobState::Present)
            {
                entry.remove();
            }
        }
    }

    /// Sees to it that the server has all of `blobs`.
    pub async fn upload(self: &Arc<Self>, mut blobs: Vec<Blob>) -> Result<(), Error> {
        while !blobs.is_empty() {
            let (own, shared) = self.claim(blobs);
            let mut ends: Vec<_> = own.iter().map(|(_, ending)| ending.subscribe()).collect();
            if !own.is_empty() {
                tokio::spawn(self.clone().send(own));
            }
            blobs = Vec::new();
            for (blob, mut end) in shared {
                match ended(&mut end).await {
                    // Another one's file is not this one's.
                    Err(Error::Changed { .. } | Error::Io { .. }) => blobs.push(blob),
                    end => end?,
                }
            }
            for end in &mut ends {
                ended(end).await?;
            }
        }
        Ok(())
    }

    /// The blobs that nobody sends yet, and those that somebody does.
    fn claim(&self, blobs: Vec<Blob>) -> (Own, SentByOthers) {
        let mut known = self.known();
        let (mut own, mut shared) = (Vec::new(), Vec::new());
        for blob in blobs {
            match known.get(&blob.digest()) {
                Some(BlobState::Present) => continue,
                // A blob is free if its task is gone and left no result.
                Some(BlobState::Sending(end)) if end.has_changed().is_ok() || end.borrow().is_some() => {
                    shared.push((blob, end.clone()));
                    continue;
                }
                _ => {}
            }
            let (ending, end) = watch::channel(None);
            known.insert(blob.digest(), BlobState::Sending(end));
            own.push((blob, ending));
        }
        (own, shared)
    }

    async fn send(self: Arc<Self>, own: Own) {
        let missing = self.finds.ask(own.iter().map(|(blob, _)| blob.digest()).collect());
        let mut small = Vec::new();
        for ((blob, ending), missing) in own.into_iter().zip(missing) {
            match missing.await.unwrap_or(Err(Error::Shutdown)) {
                Ok(false) => self.end(blob.digest(), &ending, Ok(())),
                Err(error) => self.end(blob.digest(), &ending, Err(error)),
                Ok(true) if self.capabilities.batches(blob.digest().size) => small.push((blob, ending)),
                Ok(true) => drop(tokio::spawn(self.clone().large(blob, ending))),
            }
        }
        let answers = self.updates.ask(small.iter().map(|(blob, _)| blob.clone()).collect());
        for ((blob, ending), answer) in small.into_iter().zip(answers) {
            match answer.await.unwrap_or(Err(Error::Shutdown)) {
                Err(error) if error.is_too_large() => drop(tokio::spawn(self.clone().large(blob, ending))),
                result => self.end(blob.digest(), &ending, result),
            }
        }
    }

    async fn large(self: Arc<Self>, blob: Blob, ending: Ending) {
        let compress = self.capabilities.zstd_streams && compresses(&self.calls.options, blob.digest().size);
        let digest = blob.digest();
        let present = || async {
            let answer = self.finds.ask(vec![digest]).pop().ok_or(Error::Shutdown)?;
            answer.await.map_err(|_| Error::Shutdown)?.map(|missing| !missing)
        };
        let result = match self.streams.acquire().await {
            Ok(_permit) => stream_write::write(&self.calls, &blob, compress, present).await,
            Err(_closed) => Err(Error::Shutdown),
        };
        self.end(digest, &ending, result);
    }

    fn end(&self, digest: Digest, ending: &Ending, result: Result<(), Error>) {
        match &result {
            Ok(()) => drop(self.known().insert(digest, BlobState::Present)),
            Err(_) => drop(self.known().remove(&digest)),
        }
        ending.send_replace(Some(result));
    }
}

async fn ended(end: &mut Ended) -> Result<(), Error> {
    let end = end.wait_for(Option::is_some).await.map_err(|_| Error::Shutdown)?;
    end.clone().unwrap_or(Err(Error::Shutdown))
}
