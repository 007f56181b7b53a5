//! Downloads of small blobs: BatchReadBlobs, for many tasks at once. Every blob is checked by its digest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use prost::bytes::Bytes;
use tonic::Code;

use crate::batching::{BatchCall, BatchLimits};
use crate::call::{Attempt, AttemptFailure, Calls, stub};
use crate::capabilities::{Capabilities, compresses, weight};
use crate::digest::Digest;
use crate::error::Error;
use crate::method::Method;
use crate::proto;
use crate::proto::batch_read_blobs_response::Response;
use crate::retry::{Retry, RetryVerdict, verdict};
use crate::status_details;
use crate::zstd_stream;

/// Requests at once to a cache that speaks plain HTTP. Each holds one blob.
const HTTP_CALLS: usize = 32;
const CALLS: usize = 8;
/// Bytes for the status of each blob, and for the overhead of zstd.
const SLACK: usize = 1 << 20;

const METHOD: Method = Method::BatchReadBlobs;
const ZSTD: i32 = proto::compressor::Value::Zstd as i32;

/// Downloads blobs.
pub struct BatchReads {
    pub calls: Arc<Calls>,
    pub capabilities: Capabilities,
}

type Done = HashMap<Digest, Result<Bytes, Error>>;

impl BatchReads {
    /// Returns the limits of one call.
    pub fn limits(capabilities: &Capabilities) -> BatchLimits {
        let calls = if capabilities.count > 1 { CALLS } else { HTTP_CALLS };
        BatchLimits { weight: capabilities.batch, count: capabilities.count, calls }
    }

    async fn download(&self, pending: &mut HashSet<Digest>, done: &mut Done) -> Result<(), Error> {
        let mut retry = self.calls.retry();
        // Bytes that are wrong once may have been damaged on their way.
        let mut wrong = HashSet::new();
        while !pending.is_empty() {
            let largest = pending.iter().map(|digest| digest.size).max().unwrap_or(0);
            let zstd = self.capabilities.zstd_streams && compresses(&self.calls.options, largest);
            let request = proto::BatchReadBlobsRequest {
                instance_name: self.calls.options.instance.clone(),
                digests: pending.iter().map(Digest::message).collect(),
                acceptable_compressors: if zstd { vec![ZSTD] } else { Vec::new() },
                digest_function: 0,
            };
            let attempt = self.calls.attempt(METHOD).await?;
            let bytes = pending.iter().map(|digest| weight(digest.size)).fold(0, usize::saturating_add);
            let call = async {
                if let Some(http) = self.calls.http() {
                    return Ok(http.read(attempt.headers(), &request).await?);
                }
                // A longer answer holds more than the requested blobs.
                let mut stub = stub!(attempt, cas, ContentAddressableStorageClient)
                    .max_decoding_message_size(bytes.saturating_add(SLACK));
                Ok(stub.batch_read_blobs(attempt.request(request)).await?.into_inner())
            };
            let again = match self.calls.within(bytes, call).await {
                Ok(answer) => {
                    self.calls.statistics.answered();
                    self.settle(&attempt, pending, &mut wrong, done, answer.responses)
                }
                Err(failure) => Some(failure),
            };
            if let Some(failure) = again {
                self.calls.recover(METHOD, &mut retry, &attempt, failure).await?;
            }
        }
        Ok(())
    }

    /// Removes the settled blobs from `pending`. Returns the failure to retry after, if any are left.
    fn settle(
        &self,
        attempt: &Attempt,
        pending: &mut HashSet<Digest>,
        wrong: &mut HashSet<Digest>,
        done: &mut Done,
        responses: Vec<Response>,
    ) -> Option<AttemptFailure> {
        let mut again = None;
        for response in responses {
            let Some(digest) = response.digest.as_ref().and_then(Digest::from_message) else { continue };
            if !pending.contains(&digest) {
                continue;
            }
            let status = status_details::status(response.status.clone().unwrap_or_default());
            let end = match (status.code(), verdict(&status)) {
                (Code::Ok, _) => match self.check(digest, response) {
                    Err(error) if wrong.insert(digest) => {
                        again = Some(crate::call::cut(&error.to_string()).into());
                        continue;
                    }
                    end => end,
                },
                (Code::NotFound, _) => Err(Error::Lost {
                    endpoint: self.calls.endpoint(),
                    method: METHOD,
                    digests: vec![digest],
                    message: self.calls.server_message(attempt, &status),
                }),
                (_, RetryVerdict::Final | RetryVerdict::Unauthenticated) => {
                    Err(self.calls.failed(METHOD, &Retry::new(Default::default()), attempt, &status))
                }
                _ => {
                    again = Some(status.into());
                    continue;
                }
            };
            pending.remove(&digest);
            done.insert(digest, end);
        }
        if !pending.is_empty() && again.is_none() {
            again = Some(self.calls.protocol(METHOD, "the answer says nothing about some blobs").into());
        }
        again
    }

    fn check(&self, digest: Digest, response: Response) -> Result<Bytes, Error> {
        self.calls.statistics.received(response.data.len());
        let corrupt = |found: String| Error::Corrupt { endpoint: self.calls.endpoint(), digest, found };
        let bytes = if response.compressor == ZSTD {
            zstd_stream::decompress(&response.data, digest.size)
                .map_err(|error| corrupt(error.to_string()))?
        } else {
            response.data
        };
        let found = Digest::of(&bytes);
        if found != digest {
            return Err(corrupt(found.to_string()));
        }
        self.calls.statistics.downloaded(digest.size);
        Ok(bytes.into())
    }
}

impl BatchCall for BatchReads {
    type Request = Digest;
    type Answer = Result<Bytes, Error>;

    fn weight(&self, digest: &Digest) -> usize {
        weight(digest.size)
    }

    async fn send(&self, digests: Vec<Digest>) -> Vec<Result<Bytes, Error>> {
        let mut done = Done::new();
        let mut pending = digests.iter().copied().collect();
        let failed = self.download(&mut pending, &mut done).await.err().unwrap_or(Error::Shutdown);
        let end = |digest: &Digest| done.get(digest).cloned().unwrap_or_else(|| Err(failed.clone()));
        digests.iter().map(end).collect()
    }

    fn is_too_large(answer: &Self::Answer) -> bool {
        answer.as_ref().is_err_and(Error::is_too_large)
    }
}
