//! The meaning of an execution's status: blobs that are gone, an action that ran out of time, or neither.
//!
//! Servers differ. A missing input is FAILED_PRECONDITION with the blobs in its details (the API), without details
//! (NativeLink), or INTERNAL (BuildGrid, buildbox-casd); a missing Action is FAILED_PRECONDITION or NOT_FOUND.

use tonic::{Code, Status};
use tonic_types::{PreconditionViolation, StatusExt};

use crate::call::{Attempt, Calls};
use crate::digest::Digest;
use crate::error::Error;
use crate::method::Method;

/// The error that the status of an execution stands for, or the status if it is handled as that of any call. It is the
/// operation's where the call went well.
pub fn meaning(
    calls: &Calls,
    attempt: &Attempt,
    method: Method,
    action: Digest,
    status: Status,
    is_operations: bool,
) -> Result<Status, Error> {
    let lost = |digests| calls.lost(attempt, method, digests, &status);
    match status.code() {
        Code::FailedPrecondition => match missing(&status) {
            Some(digests) => Err(lost(digests)),
            None => Ok(status),
        },
        // The Action, mostly; buildbox-casd says the same of a Command.
        Code::NotFound => Err(lost(Vec::new())),
        // The server tried more than once before it ended the operation.
        Code::Internal if is_operations => Err(lost(Vec::new())),
        Code::DeadlineExceeded if is_operations => {
            let message = calls.server_message(attempt, &status);
            Err(Error::TimedOut { endpoint: calls.endpoint(), action, message })
        }
        _ => Ok(status),
    }
}

/// The blobs that a failed precondition names as missing; `None` if it names something else too.
fn missing(status: &Status) -> Option<Vec<Digest>> {
    let Some(failure) = status.get_details_precondition_failure() else { return Some(Vec::new()) };
    let digest = |violation: PreconditionViolation| {
        // `blobs/HASH/SIZE`; servers put a hash function's or an instance's name around it.
        let mut parts = violation.subject.rsplitn(3, '/');
        let (size, hash) = (parts.next()?, parts.next()?);
        Digest::parse(&format!("{hash}/{size}")).filter(|_| violation.r#type == "MISSING")
    };
    failure.violations.into_iter().map(digest).collect()
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
