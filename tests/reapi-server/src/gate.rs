//! What every call passes before its service: counters, delays, credentials and refusals.

use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    action_cache_server::ActionCacheServer, capabilities_server::CapabilitiesServer,
    content_addressable_storage_server::ContentAddressableStorageServer, execution_server::ExecutionServer,
};
use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStreamServer;
use bazel_remote_apis::google::longrunning::operations_server::OperationsServer;
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::{Service as _, http};
use tonic::service::Routes;
use tonic::{Code, Status};

use crate::bytestream::Streams;
use crate::cas::Cache;
use crate::execution::Executions;
use crate::state::State;

/// How often a call looks whether it is to be answered.
const LOOK: Duration = Duration::from_millis(20);

/// The services, with the limits of this moment.
pub fn routes(state: &Arc<State>) -> Routes {
    let limit = state.faults().message_limit;
    let (cache, executions) = (Cache(state.clone()), Executions(state.clone()));
    Routes::new(CapabilitiesServer::new(cache.clone()))
        .add_service(
            ContentAddressableStorageServer::new(cache.clone())
                .max_decoding_message_size(limit)
                .max_encoding_message_size(usize::MAX),
        )
        .add_service(ActionCacheServer::new(cache).max_decoding_message_size(limit))
        .add_service(ByteStreamServer::new(Streams(state.clone())).max_decoding_message_size(limit))
        .add_service(ExecutionServer::new(executions.clone()).max_decoding_message_size(limit))
        .add_service(OperationsServer::new(executions))
        .prepare()
}

/// One call.
pub async fn call(
    state: &State,
    mut routes: Routes,
    request: http::Request<Incoming>,
) -> http::Response<Body> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    state.count(|counts| *counts.calls.entry(method.clone()).or_default() += 1);
    let latency = state.faults().latency;
    tokio::time::sleep(latency).await;
    while state.faults().stall.contains(&method) {
        tokio::time::sleep(LOOK).await;
    }
    if let Err(status) = admitted(state, &method, &request) {
        state.count(|counts| counts.refused += 1);
        return status.into_http();
    }
    match routes.call(request).await {
        Ok(response) => as_others_say(response),
        Err(never) => match never {},
    }
}

fn admitted(state: &State, method: &str, request: &http::Request<Incoming>) -> Result<(), Status> {
    let mut faults = state.faults();
    if let Some(code) = faults.refusal(method) {
        return Err(Status::new(code, "refused by a switch"));
    }
    let Some((name, value)) = faults.authenticate.as_ref().and_then(|header| header.split_once(':')) else {
        return Ok(());
    };
    let shown = request.headers().get(name.trim()).map(http::HeaderValue::as_bytes);
    if shown == Some(value.trim().as_bytes()) {
        return Ok(());
    }
    Err(Status::unauthenticated(format!("a header {} is wanted", name.trim())))
}

/// A message over the limit is OUT_OF_RANGE to tonic, and RESOURCE_EXHAUSTED to every other implementation of gRPC.
fn as_others_say(mut response: http::Response<Body>) -> http::Response<Body> {
    let text = |name| response.headers().get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let too_large = text("grpc-status") == Some("11")
        && text("grpc-message").is_some_and(|message| message.contains("message%20length%20too%20large"));
    if too_large {
        let code = http::HeaderValue::from(i32::from(Code::ResourceExhausted));
        response.headers_mut().insert("grpc-status", code);
    }
    response
}
