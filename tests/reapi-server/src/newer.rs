//! An engine of version 2.1 of the API as clients of version 2.0 see it: its versions, and actions in its own form.
//!
//! Rules: `Command.output_paths` and `ServerCapabilities` of `remote_execution.proto`. Listens to nobody.

use std::pin::Pin;

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    Action, ActionResult, BatchReadBlobsRequest, BatchUpdateBlobsRequest, Command, ExecuteRequest,
    ExecuteResponse, GetCapabilitiesRequest, ServerCapabilities, UpdateActionResultRequest,
    WaitExecutionRequest, action_cache_client::ActionCacheClient, batch_update_blobs_request,
    capabilities_client::CapabilitiesClient, capabilities_server::Capabilities,
    content_addressable_storage_client::ContentAddressableStorageClient, execution_client::ExecutionClient,
    execution_server::Execution,
};
use bazel_remote_apis::build::bazel::semver::SemVer;
use bazel_remote_apis::google::longrunning::{Operation, operation};
use prost::Message;
use tokio_stream::{Stream, StreamExt};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming, async_trait};

use crate::digest::{Digest, checked, of};

/// A connection to the engine.
#[derive(Clone)]
pub struct Newer(pub Channel);

/// What the messages of one request have to be of: an instance, and a way to write digests.
#[derive(Clone)]
struct Common {
    instance_name: String,
    digest_function: i32,
}

#[async_trait]
impl Capabilities for Newer {
    async fn get_capabilities(
        &self,
        request: Request<GetCapabilitiesRequest>,
    ) -> Result<Response<ServerCapabilities>, Status> {
        let mut client = CapabilitiesClient::new(self.0.clone());
        let mut answer = client.get_capabilities(request.into_inner()).await?;
        answer.get_mut().low_api_version = Some(SemVer { major: 2, ..SemVer::default() });
        Ok(answer)
    }
}

#[async_trait]
impl Execution for Newer {
    type ExecuteStream = Pin<Box<dyn Stream<Item = Result<Operation, Status>> + Send>>;
    type WaitExecutionStream = Streaming<Operation>;

    async fn execute(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        let mut request = request.into_inner();
        let asked = checked(request.action_digest.as_ref())?;
        let common =
            Common { instance_name: request.instance_name.clone(), digest_function: request.digest_function };
        let (own, kept) = self.translated(&common, &asked).await?;
        request.action_digest = Some(own);
        let stream = ExecutionClient::new(self.0.clone()).execute(request).await?.into_inner();
        let newer = self.clone();
        let stream = stream.then(move |message| {
            let (newer, common, asked) = (newer.clone(), common.clone(), asked.clone());
            async move {
                let message = message?;
                if kept && let Some(result) = succeeded(&message)? {
                    newer.keep(&common, asked, result).await?;
                }
                Ok(message)
            }
        });
        Ok(Response::new(Box::pin(stream)))
    }

    async fn wait_execution(
        &self,
        request: Request<WaitExecutionRequest>,
    ) -> Result<Response<Streaming<Operation>>, Status> {
        ExecutionClient::new(self.0.clone()).wait_execution(request.into_inner()).await
    }
}

impl Newer {
    /// The digest of the action that the engine is asked to run, and whether results of it are to be kept.
    async fn translated(&self, common: &Common, asked: &Digest) -> Result<(Digest, bool), Status> {
        let mut action: Action = self.read(common, asked).await?;
        let command: Command = self.read(common, &checked(action.command_digest.as_ref())?).await?;
        let command = with_paths(command).encode_to_vec();
        action.command_digest = Some(of(&command));
        let kept = !action.do_not_cache;
        let action = action.encode_to_vec();
        let digest = of(&action);
        self.write(common, [command, action]).await?;
        Ok((digest, kept))
    }

    async fn read<T: Message + Default>(&self, common: &Common, digest: &Digest) -> Result<T, Status> {
        let request = BatchReadBlobsRequest {
            instance_name: common.instance_name.clone(),
            digest_function: common.digest_function,
            digests: vec![digest.clone()],
            ..BatchReadBlobsRequest::default()
        };
        let mut client = ContentAddressableStorageClient::new(self.0.clone());
        let answer = client.batch_read_blobs(request).await?.into_inner().responses.into_iter().next();
        let answer = answer.ok_or_else(|| Status::internal("the engine says nothing of a blob"))?;
        // As the engine itself says it of an action whose parts it lacks.
        refused(answer.status.map(|status| (status.code, status.message)))?;
        T::decode(answer.data.as_slice()).map_err(|error| Status::invalid_argument(error.to_string()))
    }

    async fn write(&self, common: &Common, blobs: [Vec<u8>; 2]) -> Result<(), Status> {
        let requests = blobs.map(|data| batch_update_blobs_request::Request {
            digest: Some(of(&data)),
            data,
            compressor: 0,
        });
        let request = BatchUpdateBlobsRequest {
            instance_name: common.instance_name.clone(),
            digest_function: common.digest_function,
            requests: requests.into(),
        };
        let mut client = ContentAddressableStorageClient::new(self.0.clone());
        for answer in client.batch_update_blobs(request).await?.into_inner().responses {
            refused(answer.status.map(|status| (status.code, status.message)))?;
        }
        Ok(())
    }

    /// Has the engine know the result by the client's digest, too.
    async fn keep(&self, common: &Common, action: Digest, result: ActionResult) -> Result<(), Status> {
        let request = UpdateActionResultRequest {
            instance_name: common.instance_name.clone(),
            digest_function: common.digest_function,
            action_digest: Some(action),
            action_result: Some(result),
            ..UpdateActionResultRequest::default()
        };
        ActionCacheClient::new(self.0.clone()).update_action_result(request).await.map(drop)
    }
}

/// The command with its outputs in the form of version 2.1.
#[expect(deprecated, reason = "the form of version 2.0")]
fn with_paths(mut command: Command) -> Command {
    if command.output_paths.is_empty() {
        command.output_paths = std::mem::take(&mut command.output_files);
        command.output_paths.append(&mut command.output_directories);
        command.output_paths.sort();
        command.output_paths.dedup();
    }
    command
}

/// The result where an operation has ended well.
fn succeeded(operation: &Operation) -> Result<Option<ActionResult>, Status> {
    let Some(operation::Result::Response(response)) = &operation.result else { return Ok(None) };
    let wrong = |error| Status::internal(format!("no ExecuteResponse: {error}"));
    let response = ExecuteResponse::decode(response.value.as_slice()).map_err(wrong)?;
    let well = response.status.is_none_or(|status| status.code == 0);
    Ok(response.result.filter(|result| well && result.exit_code == 0))
}

fn refused(status: Option<(i32, String)>) -> Result<(), Status> {
    match status {
        Some((code, message)) if code != 0 => Err(Status::new(code.into(), message)),
        _ => Ok(()),
    }
}
