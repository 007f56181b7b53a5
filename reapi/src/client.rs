//! The client: what a program calls.

use std::path::Path;
use std::sync::Arc;

use prost::bytes::Bytes;
use tokio::time::timeout;

use crate::action_cache;
use crate::blob::Blob;
use crate::call::{Attempt, Calls, stub};
use crate::capabilities::Capabilities;
use crate::digest::Digest;
use crate::download::Downloads;
use crate::error::Error;
use crate::execute::{ExecuteOptions, ExecutedAction, Execution, Stage};
use crate::method::Method;
use crate::options::Options;
use crate::proto;
use crate::retry::Retry;
use crate::statistics::Statistics;
use crate::upload::Uploads;

/// The most bytes that an action's standard output or error may have.
const LONGEST_OUTPUT: u64 = 1 << 20;

/// A client of one server. Cheap to clone; every method needs tokio's runtime.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    calls: Arc<Calls>,
    capabilities: Capabilities,
    uploads: Arc<Uploads>,
    downloads: Downloads,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("options", &self.inner.calls.options).finish_non_exhaustive()
    }
}

impl Client {
    /// Asks a server what it can do.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let mut retry = Retry::new(options.connect_time);
        let calls = Arc::new(Calls::new(options)?);
        let ask = |attempt: Arc<Attempt>| {
            let instance_name = calls.options.instance.clone();
            let mut stub = stub!(attempt, capabilities, CapabilitiesClient);
            let request = attempt.request(proto::GetCapabilitiesRequest { instance_name });
            async move { Ok(stub.get_capabilities(request).await?.into_inner()) }
        };
        let limit = calls.options.connect_time * 3;
        let asked = calls.call(Method::GetCapabilities, &mut retry, ask);
        let answer = timeout(limit, asked).await.unwrap_or_else(|_| Err(calls.unanswered(limit)))?;
        let capabilities = Capabilities::from_message(&answer, calls.options.endpoint.shown())?;
        let uploads = Uploads::new(&calls, &capabilities);
        let downloads = Downloads::new(&calls, &capabilities);
        Ok(Self { inner: Arc::new(Inner { calls, capabilities, uploads, downloads }) })
    }

    /// What the server can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    /// How the server is talked to.
    pub fn options(&self) -> &Options {
        &self.inner.calls.options
    }

    /// What was done.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.inner.calls.statistics
    }

    /// Which blobs the server lacks. Those that are known to be there are not asked for.
    pub async fn missing(&self, digests: impl IntoIterator<Item = Digest>) -> Result<Vec<Digest>, Error> {
        self.inner.uploads.missing(digests.into_iter().collect()).await
    }

    /// Forgets that blobs are there, after the server lost one.
    pub fn forget(&self, digests: impl IntoIterator<Item = Digest>) {
        self.inner.uploads.forget(digests);
    }

    /// Sees to it that the server has blobs: uploads those that it lacks, each once.
    pub async fn upload(&self, blobs: impl IntoIterator<Item = Blob>) -> Result<(), Error> {
        self.inner.uploads.upload(blobs.into_iter().collect()).await
    }

    /// A blob in memory, checked. [`Error::Lost`] if the server lacks it.
    pub async fn download(&self, digest: Digest) -> Result<Bytes, Error> {
        self.inner.downloads.bytes(digest).await
    }

    /// A blob as a file, which has its name only when it is complete and checked. What had the name is replaced.
    pub async fn download_to(&self, digest: Digest, path: &Path, executable: bool) -> Result<(), Error> {
        self.inner.downloads.path(digest, path, executable).await
    }

    /// A blob in place of what an open file holds, which is of use only if this succeeds. `path` is for messages.
    pub async fn download_into(&self, digest: Digest, file: std::fs::File, path: &Path) -> Result<(), Error> {
        self.inner.downloads.file(digest, file, path).await
    }

    /// The cached result of an action. Its blobs may be gone. `inline` names outputs whose content may come with it.
    pub async fn action_result(
        &self,
        action: Digest,
        inline: &[String],
    ) -> Result<Option<proto::ActionResult>, Error> {
        action_cache::get(&self.inner.calls, action, inline).await
    }

    /// Writes the action cache.
    pub async fn update_action_result(
        &self,
        action: Digest,
        result: proto::ActionResult,
    ) -> Result<(), Error> {
        action_cache::update(&self.inner.calls, action, result).await
    }

    /// Executes an action whose blobs are there. `observer` hears of each stage that it reaches.
    ///
    /// An action that ran and failed is no error: the result has its exit code.
    pub async fn execute(
        &self,
        action: Digest,
        options: &ExecuteOptions,
        observer: impl FnMut(Stage) + Send,
    ) -> Result<ExecutedAction, Error> {
        Execution::new(&self.inner.calls, action, options, observer).run().await
    }

    /// What the action wrote to standard output, which is no more than a MiB.
    pub async fn stdout(&self, result: &proto::ActionResult) -> Result<Bytes, Error> {
        self.text(&result.stdout_raw, result.stdout_digest.as_ref()).await
    }

    /// What the action wrote to standard error, which is no more than a MiB.
    pub async fn stderr(&self, result: &proto::ActionResult) -> Result<Bytes, Error> {
        self.text(&result.stderr_raw, result.stderr_digest.as_ref()).await
    }

    async fn text(&self, raw: &[u8], digest: Option<&proto::Digest>) -> Result<Bytes, Error> {
        let within = |size: u64| match size {
            0..=LONGEST_OUTPUT => Ok(()),
            _ => Err(Error::TooLarge {
                endpoint: self.inner.calls.endpoint(),
                what: "standard output or error",
                size,
                limit: LONGEST_OUTPUT,
            }),
        };
        let Some(message) = digest.filter(|digest| raw.is_empty() && digest.size_bytes != 0) else {
            within(raw.len() as u64)?;
            return Ok(Bytes::copy_from_slice(raw));
        };
        let digest = Digest::from_message(message).ok_or_else(|| {
            self.inner.calls.protocol(Method::GetActionResult, "the result names its output by no digest")
        })?;
        within(digest.size)?;
        self.download(digest).await
    }
}
