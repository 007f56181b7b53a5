//! Blobs from the server: small ones in batches, large ones as streams; into memory or into a file.
//!
//! Nothing is handed over, and no file gets its name, before its digest was checked.

use std::fs::Permissions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use prost::bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::batches::BatchReads;
use crate::batching::Batcher;
use crate::call::Calls;
use crate::capabilities::Capabilities;
use crate::digest::Digest;
use crate::error::Error;
use crate::stream_read::{Sink, read};

/// Downloads of a client.
pub struct Downloads {
    calls: Arc<Calls>,
    capabilities: Capabilities,
    reads: Arc<Batcher<BatchReads>>,
    streams: Semaphore,
}

impl Downloads {
    pub fn new(calls: &Arc<Calls>, capabilities: &Capabilities) -> Self {
        let reads = BatchReads { calls: calls.clone(), capabilities: capabilities.clone() };
        Self {
            calls: calls.clone(),
            capabilities: capabilities.clone(),
            reads: Batcher::new(reads, BatchReads::limits(capabilities)),
            streams: Semaphore::new(calls.options.transfers.max(1)),
        }
    }

    /// A blob in memory.
    pub async fn bytes(&self, digest: Digest) -> Result<Bytes, Error> {
        if let Some(bytes) = self.small(digest).await? {
            return Ok(bytes);
        }
        match self.large(digest, Sink::Memory(Vec::new())).await? {
            Sink::Memory(bytes) => Ok(bytes.into()),
            Sink::File(..) => Err(Error::Shutdown),
        }
    }

    /// A blob as a file that has its name only when it is complete. `inline` holds its bytes if they are here.
    pub async fn path(
        &self,
        digest: Digest,
        inline: &[u8],
        path: &Path,
        executable: bool,
    ) -> Result<(), Error> {
        let failed = |source| Error::Io { path: path.to_owned(), source: Arc::new(source) };
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".reapi-");
        #[cfg(unix)]
        let mode = <Permissions as std::os::unix::fs::PermissionsExt>::from_mode(if executable {
            0o777
        } else {
            0o666
        });
        #[cfg(unix)]
        builder.permissions(mode);
        let temporary = builder.tempfile_in(directory).map_err(failed)?;
        let mut file = temporary.as_file().try_clone().map_err(failed)?;
        let bytes = match inline {
            [] => self.small(digest).await?,
            inline => Some(self.checked(digest, inline)?),
        };
        if let Some(bytes) = bytes {
            let write = move || file.write_all(&bytes);
            spawn_blocking(write).await.map_err(|_| Error::Shutdown)?.map_err(failed)?;
        } else {
            let sink = Sink::File(tokio::fs::File::from_std(file), path.to_owned());
            self.large(digest, sink).await?;
        }
        temporary.persist(path).map_err(|error| failed(error.error)).map(drop)
    }

    /// The bytes of a blob that are here.
    pub fn checked(&self, digest: Digest, inline: &[u8]) -> Result<Bytes, Error> {
        let found = Digest::of(inline);
        if found != digest {
            let (endpoint, found) = (self.calls.endpoint(), found.to_string());
            return Err(Error::Corrupt { endpoint, digest, found });
        }
        self.calls.statistics.downloaded(digest.size);
        Ok(Bytes::copy_from_slice(inline))
    }

    /// A blob that comes in a batch; `None` for a larger one. An error for one that is larger than any may be.
    async fn small(&self, digest: Digest) -> Result<Option<Bytes>, Error> {
        let limit = self.calls.options.largest_blob;
        if digest.size > limit {
            let endpoint = self.calls.endpoint();
            return Err(Error::TooLarge { endpoint, what: "a blob", size: digest.size, limit });
        }
        // The API holds that every server has it.
        if digest == Digest::of(b"") {
            return Ok(Some(Bytes::new()));
        }
        if !self.capabilities.batches(digest.size) {
            return Ok(None);
        }
        let answer = self.reads.ask(vec![digest]).pop().ok_or(Error::Shutdown)?;
        match answer.await.map_err(|_| Error::Shutdown)? {
            Err(error) if error.is_too_large() => Ok(None),
            answer => answer.map(Some),
        }
    }

    async fn large(&self, digest: Digest, mut sink: Sink) -> Result<Sink, Error> {
        let _permit = self.streams.acquire().await.map_err(|_| Error::Shutdown)?;
        read(&self.calls, &self.capabilities, digest, &mut sink).await?;
        Ok(sink)
    }
}
