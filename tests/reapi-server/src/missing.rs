//! How a server says that blobs of an action are missing, in the ways that real ones do.
//!
//! The specification's way is FAILED_PRECONDITION with a `google.rpc.PreconditionFailure` that names each blob.

use bazel_remote_apis::build::bazel::remote::execution::v2::ExecuteResponse;
use bazel_remote_apis::google::longrunning::{Operation, operation};
use bazel_remote_apis::google::rpc;
use prost::Message;
use tonic::{Code, Status};

use crate::digest::{Digest, wrapped};
use crate::faults::Missing;
use crate::state::State;

/// `google.rpc.PreconditionFailure` of `error_details.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct PreconditionFailure {
    /// What was not so.
    #[prost(message, repeated, tag = "1")]
    pub violations: Vec<Violation>,
}

/// `google.rpc.PreconditionFailure.Violation`.
#[derive(Clone, PartialEq, Message)]
pub struct Violation {
    /// `MISSING`.
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// `blobs/HASH/SIZE`.
    #[prost(string, tag = "2")]
    pub subject: String,
    /// For people.
    #[prost(string, tag = "3")]
    pub description: String,
}

/// The status for these blobs.
pub fn status(how: Missing, blobs: &[Digest]) -> rpc::Status {
    let code = match how {
        Missing::Details | Missing::Precondition => Code::FailedPrecondition,
        Missing::Internal => Code::Internal,
        Missing::NotFound => Code::NotFound,
    };
    let violation = |blob: &Digest| Violation {
        r#type: "MISSING".to_owned(),
        subject: format!("blobs/{}/{}", blob.hash, blob.size_bytes),
        description: "not in the CAS".to_owned(),
    };
    let failure = PreconditionFailure { violations: blobs.iter().map(violation).collect() };
    let named = how == Missing::Details;
    rpc::Status {
        code: code.into(),
        message: "blobs of the action are missing".to_owned(),
        details: named.then(|| wrapped("google.rpc.PreconditionFailure", &failure)).into_iter().collect(),
    }
}

/// It as the status of a call, with its details.
pub fn error(status: &rpc::Status) -> Status {
    let code = Code::from_i32(status.code);
    Status::with_details(code, status.message.clone(), status.encode_to_vec().into())
}

/// An operation, or in its place the error of an operation that ended for want of blobs, where a switch asks for that.
pub fn as_error(state: &State, operation: Operation) -> Result<Operation, Status> {
    let Some(operation::Result::Response(response)) = &operation.result else { return Ok(operation) };
    let response = ExecuteResponse::decode(response.value.as_slice()).ok();
    let status = response.and_then(|response| response.status).filter(|status| status.code != 0);
    match status {
        Some(status) if state.faults().missing_as_error => Err(error(&status)),
        _ => Ok(operation),
    }
}
