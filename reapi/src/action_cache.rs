//! The action cache: results by the digests of their actions. Knows nothing of blobs.

use std::sync::Arc;

use prost::Message;
use tonic::Code;

use crate::call::{Attempt, Calls, stub};
use crate::digest::{Digest, DigestMessage};
use crate::error::Error;
use crate::method::Method;
use crate::proto;

/// The cached result of an action, with the contents of these `outputs` where the server has them small enough.
pub async fn get(
    calls: &Calls,
    action: Digest,
    outputs: Vec<String>,
) -> Result<Option<proto::ActionResult>, Error> {
    let message = proto::GetActionResultRequest {
        instance_name: calls.options.instance.clone(),
        action_digest: Some(action.message()),
        inline_stdout: true,
        inline_stderr: true,
        inline_output_files: outputs,
        ..Default::default()
    };
    let get = |attempt: Arc<Attempt>| {
        let request = attempt.request(message.clone());
        async move {
            if let Some(http) = calls.http() {
                let bytes = http.action_result(attempt.headers(), &action).await?;
                // It was cut, or is another program's.
                return Ok(proto::ActionResult::decode(bytes).map_err(|error| Error::Corrupt {
                    endpoint: calls.endpoint(),
                    digest: action,
                    found: format!("no ActionResult: {error}"),
                })?);
            }
            let mut stub = stub!(attempt, action_cache, ActionCacheClient);
            Ok(stub.get_action_result(request).await?.into_inner())
        }
    };
    let result = match calls.unary(Method::GetActionResult, get).await {
        Ok(result) => Some(result),
        Err(error) if error.code() == Some(Code::NotFound) => None,
        Err(error) => return Err(error),
    };
    calls.statistics.answered();
    Ok(result)
}

/// Writes a result.
pub async fn update(calls: &Calls, action: Digest, result: proto::ActionResult) -> Result<(), Error> {
    let inline: Vec<u64> = result.output_files.iter().map(|file| file.contents.len() as u64).collect();
    let message = proto::UpdateActionResultRequest {
        instance_name: calls.options.instance.clone(),
        action_digest: Some(action.message()),
        action_result: Some(result),
        results_cache_policy: None,
        digest_function: 0,
    };
    let update = |attempt: Arc<Attempt>| {
        let request = attempt.request(message.clone());
        async move {
            if let Some(http) = calls.http() {
                let result = request.get_ref().action_result.as_ref();
                let result = result.cloned().unwrap_or_default();
                return Ok(http
                    .update_action_result(attempt.headers(), &action, &result)
                    .await
                    .map(|()| result)?);
            }
            let mut stub = stub!(attempt, action_cache, ActionCacheClient);
            Ok(stub.update_action_result(request).await?.into_inner())
        }
    };
    calls.unary(Method::UpdateActionResult, update).await?;
    inline.into_iter().filter(|size| *size > 0).for_each(|size| calls.statistics.uploaded(size));
    Ok(())
}
