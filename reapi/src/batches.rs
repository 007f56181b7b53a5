//! Uploads and downloads of small blobs, for many tasks at once: BatchUpdateBlobs and BatchReadBlobs.
//!
//! Each blob of a call has a status of its own, so a call is made again only for the blobs that may succeed then. Every
//! blob is checked by its digest.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use bazel_remote_apis::google::rpc;
use prost::bytes::Bytes;
use tonic::{Code, Status};

use crate::batching::{BatchCall, BatchLimits};
use crate::blob::Blob;
use crate::call::{Attempt, AttemptFailure, Calls, status, stub};
use crate::capabilities::{Capabilities, compresses, weight};
use crate::digest::{Digest, DigestMessage};
use crate::error::Error;
use crate::method::Method;
use crate::proto;
use crate::proto::batch_update_blobs_request::Request;
use crate::retry::{RetryVerdict, verdict};
use crate::silence::cut;
use crate::zstd_stream;

const UPDATE_CALLS: usize = 4;
const READ_CALLS: usize = 8;
/// Requests at once to a cache that speaks plain HTTP. Each holds one blob.
const HTTP_CALLS: usize = 32;
/// Bytes for the status of each blob, and for the overhead of zstd.
const SLACK: usize = 1 << 20;

const ZSTD: i32 = proto::compressor::Value::Zstd as i32;

/// Uploads blobs that the server lacks.
pub struct BatchUpdates {
    pub calls: Arc<Calls>,
    pub capabilities: Capabilities,
}

/// Downloads blobs.
pub struct BatchReads {
    pub calls: Arc<Calls>,
    pub capabilities: Capabilities,
}

/// What became of each blob.
type Outcomes<T> = HashMap<Digest, Result<T, Error>>;

/// The server's answer for one blob: its digest, its status and the rest.
type BlobAnswer<R> = (Option<proto::Digest>, Option<rpc::Status>, R);

fn limits(capabilities: &Capabilities, calls: usize) -> BatchLimits {
    let calls = if capabilities.count > 1 { calls } else { HTTP_CALLS };
    BatchLimits { weight: capabilities.batch, count: capabilities.count, calls }
}

/// Makes calls until each of `digests` has succeeded or failed for good. `accept` looks at the answer for a blob that the
/// server has no objection to.
async fn settle<T, R, F>(
    calls: &Calls,
    method: Method,
    digests: impl IntoIterator<Item = Digest>,
    send: impl Fn(Arc<Attempt>, &HashSet<Digest>) -> F,
    mut accept: impl FnMut(Digest, R) -> Result<T, AttemptFailure>,
) -> Outcomes<T>
where
    F: Future<Output = Result<Vec<BlobAnswer<R>>, AttemptFailure>>,
{
    let mut pending: HashSet<Digest> = digests.into_iter().collect();
    let mut outcomes = Outcomes::new();
    let all = async {
        let mut retry = calls.retry();
        while !pending.is_empty() {
            let attempt = Arc::new(calls.attempt(method).await?);
            let bytes = pending.iter().map(|digest| weight(digest.size)).fold(0, usize::saturating_add);
            let answers = calls.within(bytes, send(attempt.clone(), &pending)).await;
            let settled = answers.and_then(|answers| {
                settle_answers(answers, &mut pending, &mut outcomes, |digest, state, rest| {
                    match (state.code(), verdict(&state)) {
                        (Code::Ok | Code::AlreadyExists, _) => accept(digest, rest),
                        (Code::NotFound, _) if method == Method::BatchReadBlobs => {
                            Err(calls.lost(&attempt, method, vec![digest], &state).into())
                        }
                        (_, RetryVerdict::Final | RetryVerdict::Unauthenticated) => {
                            Err(calls.failed(method, &calls.retry(), &attempt, &state).into())
                        }
                        _ => Err(state.into()),
                    }
                })?;
                match pending.is_empty() {
                    true => Ok(()),
                    false => Err(calls.protocol(method, "the answer says nothing about some blobs").into()),
                }
            });
            if let Err(failure) = settled {
                calls.recover(method, &mut retry, &attempt, failure).await?;
            }
        }
        Ok(())
    };
    let failed = all.await.err().unwrap_or(Error::Shutdown);
    outcomes.extend(pending.into_iter().map(|digest| (digest, Err(failed.clone()))));
    outcomes
}

/// Moves the blobs whose outcome is known from `pending` to `outcomes`. Returns the failure of one that is to be tried again.
fn settle_answers<T, R>(
    answers: Vec<BlobAnswer<R>>,
    pending: &mut HashSet<Digest>,
    outcomes: &mut Outcomes<T>,
    mut outcome: impl FnMut(Digest, Status, R) -> Result<T, AttemptFailure>,
) -> Result<(), AttemptFailure> {
    let mut again = Ok(());
    for (digest, state, rest) in answers {
        let digest = digest.as_ref().and_then(Digest::from_message);
        let Some(digest) = digest.filter(|digest| pending.contains(digest)) else { continue };
        let outcome = match outcome(digest, status(state.unwrap_or_default()), rest) {
            Ok(value) => Ok(value),
            Err(AttemptFailure::Final(error)) => Err(error),
            Err(failure) => {
                again = Err(failure);
                continue;
            }
        };
        pending.remove(&digest);
        outcomes.insert(digest, outcome);
    }
    again
}

/// The outcomes of blobs in their order. Two tasks may have asked for one blob.
fn in_order<T: Clone>(
    digests: impl Iterator<Item = Digest>,
    outcomes: &Outcomes<T>,
) -> Vec<Result<T, Error>> {
    digests.map(|digest| outcomes.get(&digest).cloned().unwrap_or(Err(Error::Shutdown))).collect()
}

impl BatchUpdates {
    /// Returns the limits of one call.
    pub fn limits(capabilities: &Capabilities) -> BatchLimits {
        limits(capabilities, UPDATE_CALLS)
    }

    /// Reads and checks blobs. Returns the request of each.
    async fn requests(&self, blobs: &[Blob]) -> Vec<Result<Request, Error>> {
        let (blobs, calls, compress) = (blobs.to_vec(), self.calls.clone(), self.capabilities.zstd_updates);
        let count = blobs.len();
        let read =
            move |blob: &Blob| request(blob, compress && compresses(&calls.options, blob.digest().size));
        let task = tokio::task::spawn_blocking(move || blobs.iter().map(read).collect());
        task.await.unwrap_or_else(|_| vec![Err(Error::Shutdown); count])
    }
}

impl BatchCall for BatchUpdates {
    type Request = Blob;
    type Answer = Result<(), Error>;

    fn weight(&self, blob: &Blob) -> usize {
        weight(blob.digest().size)
    }

    async fn send(&self, blobs: Vec<Blob>) -> Vec<Result<(), Error>> {
        let (mut requests, mut refused) = (HashMap::new(), Outcomes::new());
        for (blob, read) in blobs.iter().zip(self.requests(&blobs).await) {
            match read {
                Ok(request) => drop(requests.insert(blob.digest(), request)),
                Err(error) => drop(refused.insert(blob.digest(), Err(error))),
            }
        }
        let send = |attempt: Arc<Attempt>, pending: &HashSet<Digest>| {
            let requests: Vec<_> =
                pending.iter().filter_map(|digest| requests.get(digest).cloned()).collect();
            self.calls.statistics.sent(requests.iter().map(|request| request.data.len()).sum());
            let instance_name = self.calls.options.instance.clone();
            let request = proto::BatchUpdateBlobsRequest { instance_name, requests, digest_function: 0 };
            async move {
                let answer = match self.calls.http() {
                    Some(http) => http.update(attempt.headers(), request).await?,
                    None => {
                        let mut stub = stub!(attempt, cas, ContentAddressableStorageClient);
                        stub.batch_update_blobs(attempt.request(request)).await?.into_inner()
                    }
                };
                Ok(answer.responses.into_iter().map(|one| (one.digest, one.status, ())).collect())
            }
        };
        let digests = requests.keys().copied();
        let mut outcomes = settle(&self.calls, Method::BatchUpdateBlobs, digests, send, |_, ()| Ok(())).await;
        outcomes.extend(refused);
        let outcomes = in_order(blobs.iter().map(Blob::digest), &outcomes);
        for (blob, _) in blobs.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()) {
            self.calls.statistics.uploaded(blob.digest().size);
        }
        outcomes
    }

    fn is_too_large(answer: &Self::Answer) -> bool {
        answer.as_ref().is_err_and(Error::is_too_large)
    }
}

fn request(blob: &Blob, compress: bool) -> Result<Request, Error> {
    let bytes = blob.read()?;
    let digest = Some(blob.digest().message());
    if compress {
        let data = zstd_stream::compress(&bytes).map_err(|error| blob.unreadable(error))?;
        // A blob that does not shrink goes as it is, so that the weight of a batch is a bound.
        if data.len() < bytes.len() {
            return Ok(Request { digest, data, compressor: ZSTD });
        }
    }
    Ok(Request { digest, data: bytes.into(), compressor: 0 })
}

impl BatchReads {
    /// Returns the limits of one call.
    pub fn limits(capabilities: &Capabilities) -> BatchLimits {
        limits(capabilities, READ_CALLS)
    }

    /// The bytes of a blob, as they came.
    fn check(&self, digest: Digest, data: Vec<u8>, compressor: i32) -> Result<Bytes, Error> {
        self.calls.statistics.received(data.len());
        let corrupt = |found: String| Error::Corrupt { endpoint: self.calls.endpoint(), digest, found };
        let bytes = match compressor {
            ZSTD => {
                zstd_stream::decompress(&data, digest.size).map_err(|error| corrupt(error.to_string()))?
            }
            _ => data,
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
        let send = |attempt: Arc<Attempt>, pending: &HashSet<Digest>| {
            let largest = pending.iter().map(|digest| digest.size).max().unwrap_or(0);
            let zstd = self.capabilities.zstd_streams && compresses(&self.calls.options, largest);
            let request = proto::BatchReadBlobsRequest {
                instance_name: self.calls.options.instance.clone(),
                digests: pending.iter().map(Digest::message).collect(),
                acceptable_compressors: if zstd { vec![ZSTD] } else { Vec::new() },
                digest_function: 0,
            };
            // A longer answer holds more than the requested blobs.
            let most = pending.iter().map(|digest| weight(digest.size)).fold(SLACK, usize::saturating_add);
            async move {
                let answer = match self.calls.http() {
                    Some(http) => http.read(attempt.headers(), &request).await?,
                    None => {
                        let stub = stub!(attempt, cas, ContentAddressableStorageClient);
                        let mut stub = stub.max_decoding_message_size(most);
                        stub.batch_read_blobs(attempt.request(request)).await?.into_inner()
                    }
                };
                self.calls.statistics.answered();
                Ok(answer
                    .responses
                    .into_iter()
                    .map(|one| (one.digest, one.status, (one.data, one.compressor)))
                    .collect())
            }
        };
        // Bytes that are wrong once may have been damaged on their way.
        let mut wrong = HashSet::new();
        let accept = |digest, (data, compressor)| match self.check(digest, data, compressor) {
            Err(error) if wrong.insert(digest) => Err(cut(&error.to_string()).into()),
            outcome => Ok(outcome?),
        };
        let asked = digests.iter().copied();
        let outcomes = settle(&self.calls, Method::BatchReadBlobs, asked, send, accept).await;
        in_order(digests.into_iter(), &outcomes)
    }

    fn is_too_large(answer: &Self::Answer) -> bool {
        answer.as_ref().is_err_and(Error::is_too_large)
    }
}
