//! Uploads of large blobs: ByteStream.Write, read and checked piece by piece while they are sent.
//!
//! An uncompressed stream that was cut goes on where QueryWriteStatus says. A compressed one never does: servers differ
//! in the unit of its offset. `committed_size` may be the blob's size, the number of bytes that were sent, or -1.

use std::future::Future;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bazel_remote_apis::google::bytestream::{QueryWriteStatusRequest, WriteRequest};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use crate::blob::Blob;
use crate::call::{Attempt, AttemptFailure, Calls, Pace, stub};
use crate::digest::Hasher;
use crate::error::Error;
use crate::method::Method;
use crate::silence::silent;
use crate::statistics::Statistics;
use crate::zstd_stream;

const METHOD: Method = Method::Write;
/// Bytes of one message.
const CHUNK: usize = 512 << 10;
/// Messages that wait to be sent.
const AHEAD: usize = 2;

/// How a stream ended.
enum End {
    /// The server has the blob.
    Complete,
    /// It says that it has another number of bytes.
    Odd(i64),
}

/// Uploads a blob. `present` asks whether the server has it after all.
pub async fn write<F>(
    calls: &Calls,
    blob: &Blob,
    compress: bool,
    present: impl Fn() -> F,
) -> Result<(), Error>
where
    F: Future<Output = Result<bool, Error>>,
{
    let mut retry = calls.retry();
    let mut compress = compress;
    let mut resource = resource(calls, blob, compress);
    let mut offset = 0;
    let pace = calls.pace();
    loop {
        let attempt = calls.attempt(METHOD).await?;
        let failure = match stream(calls, &attempt, blob, &resource, offset, compress, &pace).await {
            Ok(End::Complete) => break,
            Ok(End::Odd(committed)) => {
                if present().await? {
                    break;
                }
                compress = false;
                tonic::Status::aborted(format!("the server says that it has {committed} bytes")).into()
            }
            Err(failure) => failure,
        };
        calls.recover(METHOD, &mut retry, &attempt, failure).await?;
        let committed =
            if compress { Some(0) } else { committed(calls, &resource, blob.digest().size).await };
        let Some(committed) = committed else { break };
        if committed > offset {
            retry.progress();
        }
        offset = committed;
        if offset == 0 {
            resource = self::resource(calls, blob, compress);
        }
    }
    calls.statistics.uploaded(blob.digest().size);
    Ok(())
}

/// A name for an upload that nobody else has.
fn resource(calls: &Calls, blob: &Blob, compress: bool) -> String {
    let kind = if compress { "compressed-blobs/zstd" } else { "blobs" };
    calls.resource(&format!("uploads/{}/{kind}/{}", Uuid::new_v4(), blob.digest()))
}

/// Returns the bytes of an upload that the server has; `None` for all of it, 0 if the server does not know.
async fn committed(calls: &Calls, resource: &str, size: u64) -> Option<u64> {
    let query = |attempt: Arc<Attempt>| {
        let request = QueryWriteStatusRequest { resource_name: resource.to_owned() };
        let mut stub = stub!(attempt, bytestream, ByteStreamClient);
        async move { Ok(stub.query_write_status(attempt.request(request)).await?.into_inner()) }
    };
    let Ok(answer) = calls.unary(Method::QueryWriteStatus, query).await else { return Some(0) };
    match u64::try_from(answer.committed_size).unwrap_or(0) {
        all if all == size => None,
        part if part < size && !answer.complete => Some(part),
        _ => Some(0),
    }
}

async fn stream(
    calls: &Calls,
    attempt: &Attempt,
    blob: &Blob,
    resource: &str,
    offset: u64,
    compress: bool,
    pace: &Pace,
) -> Result<End, AttemptFailure> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let taken = Arc::new(AtomicU64::new(0));
    let source = BlobReader {
        blob: blob.clone(),
        sender,
        taken: taken.clone(),
        statistics: calls.statistics.clone(),
        resource: resource.to_owned(),
        offset: i64::try_from(offset).unwrap_or(i64::MAX),
    };
    let mut source = spawn_blocking(move || source.send(compress));
    let mut reading = true;
    let mut stub = stub!(attempt, bytestream, ByteStreamClient);
    let answer = stub.write(attempt.request(ReceiverStream::new(receiver)));
    tokio::pin!(answer);
    let limit = calls.options.call_timeout;
    let (mut seen, mut since) = (0, Instant::now());
    let answer = loop {
        tokio::select! {
            read = &mut source, if reading => {
                reading = false;
                // An error holds the sender: the stream must not look complete before it is dropped.
                if let Err((error, _sender)) = read.map_err(|_| Error::Shutdown)? {
                    return Err(error.into());
                }
            }
            answer = &mut answer => break answer?.into_inner(),
            () = sleep_until((since + limit).min(pace.due(offset + seen).max(since))) => {
                let moved = taken.load(Relaxed);
                if Instant::now() >= pace.due(offset + moved) {
                    return Err(calls.slow(blob.digest(), offset + moved, pace).into());
                }
                if moved == seen && since.elapsed() >= limit {
                    return Err(AttemptFailure::Silence(limit, silent(limit)));
                }
                if moved != seen {
                    (seen, since) = (moved, Instant::now());
                }
            }
        }
    };
    let sent = taken.load(Relaxed);
    let size = i64::try_from(blob.digest().size).unwrap_or(i64::MAX);
    match answer.committed_size {
        committed if committed == size || committed == -1 => Ok(End::Complete),
        committed if compress && i64::try_from(sent) == Ok(committed) => Ok(End::Complete),
        committed => Ok(End::Odd(committed)),
    }
}

/// Reads a blob on a thread that may block.
struct BlobReader {
    blob: Blob,
    sender: Sender,
    taken: Arc<AtomicU64>,
    statistics: Arc<Statistics>,
    resource: String,
    offset: i64,
}

type Sender = mpsc::Sender<WriteRequest>;

impl BlobReader {
    /// Sends everything from the offset. The last message leaves when the digest is known to be right.
    fn send(mut self, compress: bool) -> Result<(), (Error, Sender)> {
        self.pieces(compress).map_err(|error| (error, self.sender))
    }

    fn pieces(&mut self, compress: bool) -> Result<(), Error> {
        let blob = self.blob.clone();
        let failed = |error| blob.unreadable(error);
        let mut reader = blob.reader().map_err(failed)?;
        let mut encoder = compress.then(zstd_stream::encoder).transpose().map_err(failed)?;
        let mut skip = u64::try_from(self.offset).unwrap_or(0);
        let mut hasher = Hasher::default();
        let mut waiting = Vec::new();
        while hasher.size() <= blob.digest().size {
            let mut piece = Vec::with_capacity(CHUNK);
            reader.by_ref().take(CHUNK as u64).read_to_end(&mut piece).map_err(failed)?;
            if piece.is_empty() {
                break;
            }
            hasher.update(&piece);
            let known = usize::try_from(skip).unwrap_or(usize::MAX).min(piece.len());
            skip -= known as u64;
            if waiting.len() + (piece.len() - known) > CHUNK
                && !self.message(std::mem::take(&mut waiting), false)
            {
                return Ok(());
            }
            match &mut encoder {
                Some(encoder) => {
                    encoder.write_all(&piece).map_err(failed)?;
                    waiting.append(encoder.get_mut());
                }
                None if waiting.is_empty() && known == 0 => waiting = piece,
                None => waiting.extend_from_slice(&piece[known..]),
            }
        }
        if hasher.finish() != blob.digest() {
            return Err(blob.changed());
        }
        if let Some(encoder) = encoder {
            waiting.append(&mut encoder.finish().map_err(failed)?);
        }
        self.message(waiting, true);
        Ok(())
    }

    /// Whether the other side still listens.
    fn message(&mut self, data: Vec<u8>, last: bool) -> bool {
        let length = data.len();
        let request = WriteRequest {
            // Only the first one needs it.
            resource_name: std::mem::take(&mut self.resource),
            write_offset: self.offset,
            finish_write: last,
            data,
        };
        self.offset = self.offset.saturating_add_unsigned(length as u64);
        let taken = self.sender.blocking_send(request).is_ok();
        if taken {
            self.taken.fetch_add(length as u64, Relaxed);
            self.statistics.sent(length);
        }
        taken
    }
}
