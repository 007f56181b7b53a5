//! A client of a few lines on the raw stubs: one blob, one action, one answer.
//!
//! It retries nothing and hides nothing, so that a test sees what an engine says, and waits for no answer for ever. Blocks;
//! knows nothing of this crate's server.

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    Action, ActionResult, BatchUpdateBlobsRequest, Command, Directory, ExecuteRequest, ExecuteResponse,
    FileNode, FindMissingBlobsRequest, GetActionResultRequest, Platform,
    action_cache_client::ActionCacheClient, batch_update_blobs_request, command::EnvironmentVariable,
    content_addressable_storage_client::ContentAddressableStorageClient, execution_client::ExecutionClient,
    platform,
};
use bazel_remote_apis::google::bytestream::{ReadRequest, byte_stream_client::ByteStreamClient};
use bazel_remote_apis::google::longrunning::{Operation, operation};
use bazel_remote_apis::google::protobuf::Duration;
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::digest::{Digest, of};

/// Messages of this size are taken.
const LARGEST: usize = 64 << 20;
/// No call takes longer, on whatever machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

/// A connection to an engine.
pub struct Plain {
    runtime: Runtime,
    /// For calls that have no method here.
    pub channel: Channel,
}

/// An action as a test writes it; all its inputs lie in one folder.
#[derive(Clone, Default)]
pub struct Wanted<'a> {
    /// The command.
    pub words: &'a [&'a str],
    /// Names and contents.
    pub inputs: &'a [(&'a str, &'a [u8])],
    /// Its `output_paths`.
    pub outputs: &'a [&'a str],
    /// Its environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// What it asks of a worker, sorted.
    pub platform: &'a [(&'a str, &'a str)],
    /// Its time.
    pub timeout: Option<std::time::Duration>,
    /// Another action with the same words.
    pub salt: &'a [u8],
}

impl Plain {
    /// A client of this engine, which is asked at the first call.
    pub fn new(url: &str) -> Result<Self, Status> {
        let wrong = |error: &dyn std::fmt::Display| Status::invalid_argument(format!("{url}: {error}"));
        let endpoint = endpoint(url).map_err(|error| wrong(&error))?;
        Self::with(|| endpoint.connect_lazy())
    }

    /// A client by a channel that is made in the client's own runtime.
    pub fn with(channel: impl FnOnce() -> Channel) -> Result<Self, Status> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let channel = {
            let _inside = runtime.enter();
            channel()
        };
        Ok(Self { runtime, channel })
    }

    /// Waits for a call, but not for ever.
    pub fn wait<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let silent = |_| Status::deadline_exceeded(format!("no answer in {} s", PATIENCE.as_secs()));
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, call).await.map_err(silent)? })
    }

    /// Uploads blobs in one batch; fails with the first that was refused.
    pub fn upload(&self, blobs: &[Vec<u8>]) -> Result<(), Status> {
        let requests = blobs.iter().map(|blob| batch_update_blobs_request::Request {
            digest: Some(of(blob)),
            data: blob.clone(),
            compressor: 0,
        });
        let request = BatchUpdateBlobsRequest { requests: requests.collect(), ..Default::default() };
        let mut client = ContentAddressableStorageClient::new(self.channel.clone());
        let responses = self.wait(client.batch_update_blobs(request))?.into_inner().responses;
        let refused = responses.into_iter().filter_map(|one| one.status).find(|status| status.code != 0);
        refused.map_or(Ok(()), |status| Err(Status::new(Code::from_i32(status.code), status.message)))
    }

    /// Which of these the engine lacks.
    pub fn missing(&self, digests: &[Digest]) -> Result<Vec<Digest>, Status> {
        let request = FindMissingBlobsRequest { blob_digests: digests.to_vec(), ..Default::default() };
        let mut client = ContentAddressableStorageClient::new(self.channel.clone());
        Ok(self.wait(client.find_missing_blobs(request))?.into_inner().missing_blob_digests)
    }

    /// A blob by the byte stream.
    pub fn download(&self, digest: &Digest) -> Result<Vec<u8>, Status> {
        let resource_name = format!("blobs/{}/{}", digest.hash, digest.size_bytes);
        self.wait(async {
            let mut client = ByteStreamClient::new(self.channel.clone());
            let mut stream =
                client.read(ReadRequest { resource_name, ..Default::default() }).await?.into_inner();
            let mut bytes = Vec::new();
            while let Some(message) = stream.message().await? {
                bytes.extend(message.data);
            }
            Ok(bytes)
        })
    }

    /// Uploads an action and what it needs, and gives its digest.
    pub fn describe(&self, wanted: &Wanted) -> Result<Digest, Status> {
        let (action, mut blobs) = blobs(wanted);
        let digest = of(&action);
        blobs.push(action);
        self.upload(&blobs)?;
        Ok(digest)
    }

    /// What the action cache has.
    pub fn cached(&self, action: &Digest) -> Result<ActionResult, Status> {
        let request = GetActionResultRequest { action_digest: Some(action.clone()), ..Default::default() };
        let mut client = ActionCacheClient::new(self.channel.clone());
        Ok(self.wait(client.get_action_result(request))?.into_inner())
    }

    /// Asks for an action to be run.
    pub fn begin(&self, action: &Digest) -> Result<Streaming<Operation>, Status> {
        let request = ExecuteRequest { action_digest: Some(action.clone()), ..Default::default() };
        let mut client = ExecutionClient::new(self.channel.clone()).max_decoding_message_size(LARGEST);
        Ok(self.wait(client.execute(request))?.into_inner())
    }

    /// The next message of an operation's stream.
    pub fn next(&self, stream: &mut Streaming<Operation>) -> Result<Option<Operation>, Status> {
        self.wait(stream.message())
    }

    /// Follows an operation to its end.
    pub fn end(&self, mut stream: Streaming<Operation>) -> Result<ExecuteResponse, Status> {
        while let Some(operation) = self.next(&mut stream)? {
            match operation.result {
                Some(operation::Result::Response(response)) => {
                    let wrong = |error| Status::internal(format!("no ExecuteResponse: {error}"));
                    return ExecuteResponse::decode(response.value.as_slice()).map_err(wrong);
                }
                Some(operation::Result::Error(error)) => {
                    return Err(Status::new(Code::from_i32(error.code), error.message));
                }
                None => {}
            }
        }
        Err(Status::aborted("the stream ended before the operation"))
    }

    /// Uploads, runs and waits.
    pub fn run(&self, wanted: &Wanted) -> Result<ExecuteResponse, Status> {
        self.end(self.begin(&self.describe(wanted)?)?)
    }

    /// Standard output and error of a result.
    pub fn said(&self, result: &ActionResult) -> Result<(String, String), Status> {
        let text = |raw: &[u8], digest: Option<&Digest>| {
            let bytes = match digest {
                Some(digest) if raw.is_empty() && digest.size_bytes > 0 => self.download(digest)?,
                _ => raw.to_vec(),
            };
            Ok::<_, Status>(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok((
            text(&result.stdout_raw, result.stdout_digest.as_ref())?,
            text(&result.stderr_raw, result.stderr_digest.as_ref())?,
        ))
    }
}

/// The action, and the blobs that it needs.
fn blobs(wanted: &Wanted) -> (Vec<u8>, Vec<Vec<u8>>) {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let property =
        |&(name, value): &(&str, &str)| platform::Property { name: name.to_owned(), value: value.to_owned() };
    let platform = Platform { properties: wanted.platform.iter().map(property).collect() };
    let variable = |&(name, value): &(&str, &str)| EnvironmentVariable {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    #[expect(deprecated, reason = "engines of before version 2.2 of the API look here for the platform")]
    let command = Command {
        platform: (!wanted.platform.is_empty()).then(|| platform.clone()),
        arguments: owned(wanted.words),
        environment_variables: wanted.environment.iter().map(variable).collect(),
        output_paths: owned(wanted.outputs),
        ..Default::default()
    };
    let file = |&(name, content): &(&str, &[u8])| FileNode {
        name: name.to_owned(),
        digest: Some(of(content)),
        ..Default::default()
    };
    let mut files: Vec<FileNode> = wanted.inputs.iter().map(file).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let (command, root) =
        (command.encode_to_vec(), Directory { files, ..Default::default() }.encode_to_vec());
    let timeout = wanted
        .timeout
        .map(|timeout| Duration { seconds: timeout.as_secs() as i64, nanos: timeout.subsec_nanos() as i32 });
    let action = Action {
        command_digest: Some(of(&command)),
        input_root_digest: Some(of(&root)),
        timeout,
        salt: wanted.salt.to_vec(),
        platform: (!wanted.platform.is_empty()).then_some(platform),
        ..Default::default()
    };
    let mut blobs: Vec<Vec<u8>> = wanted.inputs.iter().map(|(_, content)| content.to_vec()).collect();
    blobs.extend([command, root]);
    (action.encode_to_vec(), blobs)
}

/// What is at a URL of an engine, `grpc://` or `grpcs://`, as HTTP names it.
pub(crate) fn endpoint(url: &str) -> Result<Endpoint, tonic::transport::Error> {
    Endpoint::from_shared(url.replacen("grpc", "http", 1))
}
