//! Downloads of large blobs: ByteStream.Read, which goes on where it was cut.
//!
//! The offset of a read counts uncompressed bytes, so a stream that was compressed goes on uncompressed. Received bytes
//! go to a [`Sink`]; its owner uses them only after the digest was checked.

use std::future::Future;
use std::sync::Arc;

use bazel_remote_apis::google::bytestream::ReadRequest;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use tonic::Code;

use crate::call::{AttemptFailure, Calls, Pace, stub};
use crate::capabilities::{Capabilities, compresses};
use crate::digest::{Digest, Hasher};
use crate::error::Error;
use crate::method::Method;
use crate::silence::cut;
use crate::zstd_stream::Decompressor;

const METHOD: Method = Method::Read;
/// An answer may lie about its size; memory is taken as bytes come.
const RESERVED: u64 = 64 << 20;

/// Where bytes go.
pub enum Sink {
    /// Memory.
    Memory(Vec<u8>),
    /// A file, from its beginning, and its name for messages.
    File(tokio::fs::File, std::path::PathBuf),
}

impl Sink {
    fn reserve(&mut self, size: u64) {
        if let Self::Memory(bytes) = self {
            bytes.reserve(usize::try_from(size.min(RESERVED)).unwrap_or(0));
        }
    }

    async fn put(&mut self, piece: &[u8]) -> Result<(), Error> {
        match self {
            Self::Memory(bytes) => {
                bytes.extend_from_slice(piece);
                Ok(())
            }
            Self::File(file, path) => file.write_all(piece).await.map_err(io(path)),
        }
    }

    /// Forgets everything.
    pub async fn clear(&mut self) -> Result<(), Error> {
        match self {
            Self::Memory(bytes) => {
                bytes.clear();
                Ok(())
            }
            Self::File(file, path) => {
                file.rewind().await.map_err(io(path))?;
                file.set_len(0).await.map_err(io(path))
            }
        }
    }

    pub async fn flush(&mut self) -> Result<(), Error> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::File(file, path) => file.flush().await.map_err(io(path)),
        }
    }
}

fn io(path: &std::path::Path) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Io { path: path.to_owned(), source: Arc::new(source) }
}

/// A blob on its way.
struct Transfer<'a> {
    calls: &'a Calls,
    digest: Digest,
    sink: &'a mut Sink,
    hasher: Hasher,
    moved: bool,
    pace: Pace,
}

/// Downloads a blob into a sink.
pub async fn read(
    calls: &Calls,
    capabilities: &Capabilities,
    digest: Digest,
    sink: &mut Sink,
) -> Result<(), Error> {
    let mut zstd = capabilities.zstd_streams && compresses(&calls.options, digest.size);
    let mut retry = calls.retry();
    sink.reserve(digest.size);
    let pace = calls.pace();
    let mut transfer = Transfer { calls, digest, sink, hasher: Hasher::default(), moved: false, pace };
    let mut damaged = false;
    loop {
        let attempt = calls.attempt(METHOD).await?;
        transfer.moved = false;
        let failure = match transfer.stream(&attempt, zstd).await {
            Ok(()) => match transfer.check() {
                Ok(()) => {
                    transfer.sink.flush().await?;
                    calls.statistics.downloaded(digest.size);
                    return Ok(());
                }
                Err(error) => error.into(),
            },
            Err(failure) => failure,
        };
        zstd = false;
        if transfer.moved {
            retry.progress();
        }
        let failure = match failure {
            // Bytes that are wrong once may have been damaged on their way.
            AttemptFailure::Final(error @ Error::Corrupt { .. }) if !damaged => {
                damaged = true;
                transfer.hasher = Hasher::default();
                transfer.sink.clear().await?;
                cut(&error.to_string()).into()
            }
            AttemptFailure::Status(status) if status.code() == Code::NotFound => {
                return Err(calls.lost(&attempt, METHOD, vec![digest], &status));
            }
            failure => failure,
        };
        transfer.in_time()?;
        calls.recover(METHOD, &mut retry, &attempt, failure).await?;
    }
}

impl Transfer<'_> {
    async fn stream(&mut self, attempt: &crate::call::Attempt, zstd: bool) -> Result<(), AttemptFailure> {
        let kind = if zstd { "compressed-blobs/zstd" } else { "blobs" };
        let request = ReadRequest {
            resource_name: self.calls.resource(&format!("{kind}/{}", self.digest)),
            read_offset: i64::try_from(self.hasher.size()).unwrap_or(i64::MAX),
            read_limit: 0,
        };
        let mut stub = stub!(attempt, bytestream, ByteStreamClient);
        let opened = async { Ok(stub.read(attempt.request(request)).await?.into_inner()) };
        let mut stream = self.before_due(opened).await?;
        let left = self.digest.size - self.hasher.size();
        let mut decompressor = match zstd {
            true => Some(Decompressor::new(left).map_err(|error| self.corrupt(error.to_string()))?),
            false => None,
        };
        loop {
            let message = match self.before_due(async { Ok(stream.message().await?) }).await {
                // A failure after the last byte takes nothing away.
                Err(_) if self.hasher.size() == self.digest.size => None,
                message => message?,
            };
            let Some(message) = message else { break };
            self.calls.statistics.received(message.data.len());
            match &mut decompressor {
                None => self.take(&message.data).await?,
                Some(decompressor) => {
                    // One message of a hostile server may become very large: its pieces are taken one by one.
                    let mut data = &message.data[..];
                    loop {
                        let mut piece = Vec::new();
                        let more = decompressor
                            .step(&mut data, |bytes| piece.extend_from_slice(bytes))
                            .map_err(|error| self.corrupt(error.to_string()))?;
                        self.take(&piece).await?;
                        if !more {
                            break;
                        }
                    }
                }
            }
        }
        if self.hasher.size() < self.digest.size {
            Err(cut("the stream ended too early").into())
        } else {
            Ok(())
        }
    }

    /// Waits as long as a stream may be silent, and as this one has time.
    async fn before_due<T>(
        &self,
        future: impl Future<Output = Result<T, AttemptFailure>>,
    ) -> Result<T, AttemptFailure> {
        let due = self.pace.due(self.hasher.size());
        match timeout_at(due, self.calls.within(0, future)).await {
            Ok(done) => done,
            Err(_late) => Err(self.calls.slow(self.digest, self.hasher.size(), &self.pace).into()),
        }
    }

    /// That there is time left for another try.
    fn in_time(&self) -> Result<(), Error> {
        let moved = self.hasher.size();
        let is_late = Instant::now() >= self.pace.due(moved);
        if is_late { Err(self.calls.slow(self.digest, moved, &self.pace)) } else { Ok(()) }
    }

    async fn take(&mut self, piece: &[u8]) -> Result<(), Error> {
        if self.hasher.size() + piece.len() as u64 > self.digest.size {
            return Err(self.corrupt("it is longer".to_owned()));
        }
        self.moved |= !piece.is_empty();
        self.hasher.update(piece);
        self.sink.put(piece).await
    }

    fn check(&self) -> Result<(), Error> {
        let found = self.hasher.clone().finish();
        if found == self.digest { Ok(()) } else { Err(self.corrupt(found.to_string())) }
    }

    fn corrupt(&self, found: String) -> Error {
        Error::Corrupt { endpoint: self.calls.endpoint(), digest: self.digest, found }
    }
}
