//! The meaning of an execution's status: blobs that are gone, an action that ran out of time, or neither.
//!
//! Servers differ. A missing input is FAILED_PRECONDITION with the blobs in its details (the API), without details
//! (NativeLink), or INTERNAL (BuildGrid, buildbox-casd); a missing Action is FAILED_PRECONDITION or NOT_FOUND.

use bazel_remote_apis::google::rpc;
use tonic::{Code, Status};

use crate::call::{Attempt, Calls};
use crate::digest::Digest;
use crate::error::Error;
use crate::method::Method;
use crate::status_details;

/// How an execution failed.
pub enum ExecutionFailure {
    /// The call did.
    Call(Status),
    /// The call went well: the operation ended with a status.
    Operation(Status),
}

/// The status with which an operation ended.
pub fn operation(status: rpc::Status) -> ExecutionFailure {
    ExecutionFailure::Operation(status_details::status(status))
}

/// The error that the end of an execution stands for, or a status that is handled as that of any call.
pub fn meaning(
    calls: &Calls,
    attempt: &Attempt,
    method: Method,
    action: Digest,
    ended: ExecutionFailure,
) -> Result<Status, Error> {
    let (status, operation) = match ended {
        ExecutionFailure::Call(status) => (status, false),
        ExecutionFailure::Operation(status) => (status, true),
    };
    let message = calls.server_message(attempt, &status);
    let lost =
        |digests| Error::Lost { endpoint: calls.endpoint(), method, digests, message: message.clone() };
    match status.code() {
        Code::FailedPrecondition => match status_details::missing(&status) {
            Some(digests) => Err(lost(digests)),
            None => Ok(status),
        },
        // The Action, mostly; buildbox-casd says the same of a Command.
        Code::NotFound => Err(lost(Vec::new())),
        // The server tried more than once before it ended the operation.
        Code::Internal if operation => Err(lost(Vec::new())),
        Code::DeadlineExceeded if operation => {
            Err(Error::TimedOut { endpoint: calls.endpoint(), action, message: message.clone() })
        }
        _ => Ok(status),
    }
}

/// The error of a call that was tried to the end.
pub fn after_last_try(error: Error) -> Error {
    match error {
        Error::Failed { failed } if failed.code == Code::Internal => Error::Lost {
            endpoint: failed.endpoint,
            method: failed.method,
            digests: Vec::new(),
            message: failed.message,
        },
        error => error,
    }
}
