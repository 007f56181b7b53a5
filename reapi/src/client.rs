//! The client: the methods for a program.

use std::path::Path;
use std::sync::Arc;

use prost::bytes::Bytes;
use tokio::time::timeout;

use crate::action_cache;
use crate::blob::Blob;
use crate::call::{Attempt, Calls, stub};
use crate::capabilities::Capabilities;
use crate::digest::{Digest, DigestMessage};
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
    /// Connects to a server and reads its capabilities.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let mut retry = Retry::first(options.connect_time);
        let calls = Arc::new(Calls::new(options)?);
        let ask = |attempt: Arc<Attempt>| {
            let instance_name = calls.options.instance.clone();
            let http = calls.http().cloned();
            async move {
                if let Some(http) = http {
                    return Ok(http.capabilities(attempt.headers()).await?);
                }
                let mut stub = stub!(attempt, capabilities, CapabilitiesClient);
                let request = attempt.request(proto::GetCapabilitiesRequest { instance_name });
                Ok(stub.get_capabilities(request).await?.into_inner())
            }
        };
        let limit = calls.options.connect_time * 3;
        let asked = calls.call(Method::GetCapabilities, &mut retry, ask);
        let answer = timeout(limit, asked).await.unwrap_or_else(|_| Err(calls.unanswered(limit)))?;
        let mut capabilities = Capabilities::from_message(&answer, calls.options.endpoint.shown())?;
        if calls.http().is_some() {
            // A request holds one blob, no matter how large it is.
            (capabilities.batch, capabilities.count) = (usize::MAX, 1);
        }
        let uploads = Uploads::new(&calls, &capabilities);
        let downloads = Downloads::new(&calls, &capabilities);
        Ok(Self { inner: Arc::new(Inner { calls, capabilities, uploads, downloads }) })
    }

    /// Returns the server's capabilities.
    pub fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    /// How the server is talked to.
    pub fn options(&self) -> &Options {
        &self.inner.calls.options
    }

    /// Returns the counters of this client.
    pub fn statistics(&self) -> &Arc<Statistics> {
        &self.inner.calls.statistics
    }

    /// Returns the blobs that the server lacks. Does not ask for those that it is known to have.
    pub async fn missing(&self, digests: impl IntoIterator<Item = Digest>) -> Result<Vec<Digest>, Error> {
        self.inner.uploads.missing(digests.into_iter().collect()).await
    }

    /// Forgets that blobs are there, after the server lost one.
    pub fn forget(&self, digests: impl IntoIterator<Item = Digest>) {
        self.inner.uploads.forget(digests);
    }

    /// Uploads the blobs that the server lacks, each once.
    pub async fn upload(&self, blobs: impl IntoIterator<Item = Blob>) -> Result<(), Error> {
        self.inner.uploads.upload(blobs.into_iter().collect()).await
    }

    /// A blob in memory, checked. [`Error::Lost`] if the server lacks it.
    pub async fn download(&self, digest: Digest) -> Result<Bytes, Error> {
        self.inner.downloads.bytes(digest).await
    }

    /// Downloads an output of an action to a file, which has its name only when it is complete and checked. Replaces an
    /// existing file. Nothing is asked if the result holds the content.
    pub async fn download_output(&self, output: &proto::OutputFile, path: &Path) -> Result<(), Error> {
        let digest = self.digest_of(output)?;
        self.inner.downloads.path(digest, &output.contents, path, output.is_executable).await
    }

    /// The same in memory.
    pub async fn output(&self, output: &proto::OutputFile) -> Result<Bytes, Error> {
        let digest = self.digest_of(output)?;
        match output.contents.as_slice() {
            [] => self.download(digest).await,
            inline => self.inner.downloads.checked(digest, inline),
        }
    }

    fn digest_of(&self, output: &proto::OutputFile) -> Result<Digest, Error> {
        output.digest.as_ref().and_then(Digest::from_message).ok_or_else(|| {
            self.inner.calls.protocol(Method::GetActionResult, "the result names an output by no digest")
        })
    }

    /// Whether results may hold the contents of their outputs, which are then no blobs: so it is in caches that speak plain
    /// HTTP, where each blob is a request of its own.
    pub fn inlines_outputs(&self) -> bool {
        self.inner.calls.http().is_some()
    }

    /// Returns the cached result of an action; `None` on a miss. Its blobs may be gone. It may hold the contents of these
    /// `outputs`.
    pub async fn action_result(
        &self,
        action: Digest,
        outputs: Vec<String>,
    ) -> Result<Option<proto::ActionResult>, Error> {
        action_cache::get(&self.inner.calls, action, outputs).await
    }

    /// Writes the action cache.
    pub async fn update_action_result(
        &self,
        action: Digest,
        result: proto::ActionResult,
    ) -> Result<(), Error> {
        action_cache::update(&self.inner.calls, action, result).await
    }

    /// Executes an action, with its blobs on the server. `observer` gets each stage that the action reaches.
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

    /// Returns the action's standard output. More than a MiB is an error.
    pub async fn stdout(&self, result: &proto::ActionResult) -> Result<Bytes, Error> {
        self.text(&result.stdout_raw, result.stdout_digest.as_ref()).await
    }

    /// Returns the action's standard error. More than a MiB is an error.
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
