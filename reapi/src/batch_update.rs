//! Uploads of small blobs: BatchUpdateBlobs, for many tasks at once.

use std::collections::HashMap;
use std::sync::Arc;

use prost::bytes::Bytes;
use tonic::Code;

use crate::batching::{BatchCall, BatchLimits};
use crate::blob::{Blob, Source};
use crate::call::{Attempt, AttemptFailure, Calls, stub};
use crate::capabilities::{Capabilities, compresses, weight};
use crate::digest::Digest;
use crate::error::Error;
use crate::method::Method;
use crate::proto;
use crate::proto::batch_update_blobs_request::Request;
use crate::retry::{RetryVerdict, verdict};
use crate::status_details;
use crate::zstd_stream;

/// Requests at once to a cache that speaks plain HTTP. Each holds one blob.
const HTTP_CALLS: usize = 32;
const CALLS: usize = 4;

/// Uploads blobs that the server lacks.
pub struct BatchUpdates {
    pub calls: Arc<Calls>,
    pub capabilities: Capabilities,
}

impl BatchUpdates {
    /// Returns the limits of one call.
    pub fn limits(capabilities: &Capabilities) -> BatchLimits {
        let calls = if capabilities.count > 1 { CALLS } else { HTTP_CALLS };
        BatchLimits { weight: capabilities.batch, count: capabilities.count, calls }
    }

    /// Reads and checks blobs. Returns the request of each.
    async fn read(&self, blobs: &[Blob]) -> Vec<Result<Request, Error>> {
        let blobs = blobs.to_vec();
        let compress = self.capabilities.zstd_updates;
        let calls = self.calls.clone();
        let read = move |blob: &Blob| {
            let size = blob.digest().size;
            request(blob, compress && compresses(&calls.options, size))
        };
        let count = blobs.len();
        let task = tokio::task::spawn_blocking(move || blobs.iter().map(read).collect());
        task.await.unwrap_or_else(|_| vec![Err(Error::Shutdown); count])
    }

    /// Sends the blobs in `pending` until all of them are there or refused.
    async fn upload(&self, pending: &mut HashMap<Digest, Request>, done: &mut Done) -> Result<(), Error> {
        let method = Method::BatchUpdateBlobs;
        let mut retry = self.calls.retry();
        while !pending.is_empty() {
            let request = proto::BatchUpdateBlobsRequest {
                instance_name: self.calls.options.instance.clone(),
                requests: pending.values().cloned().collect(),
                digest_function: 0,
            };
            let bytes = pending.values().map(|request| request.data.len()).sum();
            self.calls.statistics.sent(bytes);
            let attempt = self.calls.attempt(method).await?;
            let call = async {
                if let Some(http) = self.calls.http() {
                    return Ok(http.update(attempt.headers(), request).await?);
                }
                let mut stub = stub!(attempt, cas, ContentAddressableStorageClient);
                Ok(stub.batch_update_blobs(attempt.request(request)).await?.into_inner())
            };
            let again = match self.calls.within(bytes, call).await {
                Ok(answer) => self.settle(&attempt, pending, done, answer),
                Err(failure) => Some(failure),
            };
            if let Some(failure) = again {
                self.calls.recover(method, &mut retry, &attempt, failure).await?;
            }
        }
        Ok(())
    }

    /// Removes the settled blobs from `pending`. Returns the failure to retry after, if any are left.
    fn settle(
        &self,
        attempt: &Attempt,
        pending: &mut HashMap<Digest, Request>,
        done: &mut Done,
        answer: proto::BatchUpdateBlobsResponse,
    ) -> Option<AttemptFailure> {
        let method = Method::BatchUpdateBlobs;
        let mut again = None;
        for response in answer.responses {
            let Some(digest) = response.digest.as_ref().and_then(Digest::from_message) else { continue };
            let status = status_details::status(response.status.unwrap_or_default());
            let end = match (status.code(), verdict(&status)) {
                (Code::Ok | Code::AlreadyExists, _) => Ok(()),
                (_, RetryVerdict::Final | RetryVerdict::Unauthenticated) => {
                    Err(self.calls.failed(method, &self.calls.retry(), attempt, &status))
                }
                _ => {
                    again = Some(status.into());
                    continue;
                }
            };
            if pending.remove(&digest).is_some() {
                done.insert(digest, end);
            }
        }
        if !pending.is_empty() && again.is_none() {
            again = Some(self.calls.protocol(method, "the answer says nothing about some blobs").into());
        }
        again
    }
}

impl BatchCall for BatchUpdates {
    type Request = Blob;
    type Answer = Result<(), Error>;

    fn weight(&self, blob: &Blob) -> usize {
        weight(blob.digest().size)
    }

    async fn send(&self, blobs: Vec<Blob>) -> Vec<Result<(), Error>> {
        let mut done = Done::new();
        let mut pending = HashMap::new();
        for (blob, read) in blobs.iter().zip(self.read(&blobs).await) {
            match read {
                Ok(request) => drop(pending.insert(blob.digest(), request)),
                Err(error) => drop(done.insert(blob.digest(), Err(error))),
            }
        }
        let failed = self.upload(&mut pending, &mut done).await.err().unwrap_or(Error::Shutdown);
        let end = |blob: &Blob| done.get(&blob.digest()).cloned().unwrap_or_else(|| Err(failed.clone()));
        let ends: Vec<_> = blobs.iter().map(end).collect();
        for (blob, _) in blobs.iter().zip(&ends).filter(|(_, end)| end.is_ok()) {
            self.calls.statistics.uploaded(blob.digest().size);
        }
        ends
    }

    fn is_too_large(answer: &Self::Answer) -> bool {
        answer.as_ref().is_err_and(Error::is_too_large)
    }
}

type Done = HashMap<Digest, Result<(), Error>>;

fn request(blob: &Blob, compress: bool) -> Result<Request, Error> {
    let bytes: Bytes = blob.read().map_err(|error| unreadable(blob, error))?;
    if Digest::of(&bytes) != blob.digest() {
        return Err(changed(blob));
    }
    let digest = Some(blob.digest().message());
    if compress {
        let data = zstd_stream::compress(&bytes).map_err(|error| unreadable(blob, error))?;
        // A blob that does not shrink goes as it is, so that the weight of a batch is a bound.
        if data.len() < bytes.len() {
            return Ok(Request { digest, data, compressor: proto::compressor::Value::Zstd as i32 });
        }
    }
    Ok(Request { digest, data: bytes.into(), compressor: 0 })
}

fn place(blob: &Blob) -> std::path::PathBuf {
    match blob.source() {
        Source::File(path) => path.to_path_buf(),
        Source::Bytes(_) => "a blob in memory".into(),
    }
}

/// That a blob's file cannot be read.
pub fn unreadable(blob: &Blob, error: std::io::Error) -> Error {
    Error::Io { path: place(blob), source: Arc::new(error) }
}

/// Returns the error of a blob with bytes that do not have its digest.
pub fn changed(blob: &Blob) -> Error {
    Error::Changed { place: place(blob).display().to_string(), digest: blob.digest() }
}
