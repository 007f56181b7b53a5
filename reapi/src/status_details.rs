//! Details of a status beyond its message: messages of `google/rpc/error_details.proto`.
//!
//! Two of them are declared here, since `bazel-remote-apis` has none.

use std::time::Duration;

use bazel_remote_apis::google::protobuf::Any;
use bazel_remote_apis::google::rpc;
use prost::Message;
use tonic::{Code, Status};

use crate::digest::Digest;

#[derive(Clone, PartialEq, Message)]
struct PreconditionFailure {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<Violation>,
}

#[derive(Clone, PartialEq, Message)]
struct Violation {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    subject: String,
    #[prost(string, tag = "3")]
    description: String,
}

#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<bazel_remote_apis::google::protobuf::Duration>,
}

/// The blobs that a failed precondition names as missing; `None` if it names something else too.
pub fn missing(status: &Status) -> Option<Vec<Digest>> {
    let mut digests = Vec::new();
    for failure in all::<PreconditionFailure>(status, "google.rpc.PreconditionFailure") {
        for violation in failure.violations {
            // `blobs/HASH/SIZE`; servers put a hash function's or an instance's name around it.
            let mut parts = violation.subject.rsplitn(3, '/');
            let (size, hash) = (parts.next()?, parts.next()?);
            if violation.kind != "MISSING" {
                return None;
            }
            digests.push(format!("{hash}/{size}").parse().ok()?);
        }
    }
    Some(digests)
}

/// How long the server wants to be left alone.
pub fn retry_delay(status: &Status) -> Option<Duration> {
    let info: RetryInfo = all(status, "google.rpc.RetryInfo").next()?;
    let delay = info.retry_delay?;
    Some(Duration::new(u64::try_from(delay.seconds).ok()?, u32::try_from(delay.nanos).ok()?))
}

fn all<M: Message + Default>(status: &Status, kind: &str) -> impl Iterator<Item = M> {
    let details = rpc::Status::decode(status.details()).unwrap_or_default().details;
    let wanted = move |any: Any| {
        let name = any.type_url.rsplit('/').next()?;
        (name == kind).then(|| M::decode(&*any.value).ok())?
    };
    details.into_iter().filter_map(wanted).collect::<Vec<M>>().into_iter()
}

/// A status inside of a message, as if a call had ended with it.
pub fn status(status: rpc::Status) -> Status {
    let details = status.encode_to_vec();
    Status::with_details(Code::from_i32(status.code), status.message, details.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn precondition(violations: &[(&str, &str)]) -> Status {
        let violation = |(kind, subject): &(&str, &str)| Violation {
            kind: (*kind).to_owned(),
            subject: (*subject).to_owned(),
            description: String::new(),
        };
        let failure = PreconditionFailure { violations: violations.iter().map(violation).collect() };
        let type_url = "type.googleapis.com/google.rpc.PreconditionFailure".to_owned();
        let details = vec![Any { type_url, value: failure.encode_to_vec() }];
        status(rpc::Status { code: Code::FailedPrecondition as i32, message: String::new(), details })
    }

    #[test]
    fn missing_blobs_are_found() {
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        let subjects = [format!("blobs/{one}"), format!("blobs/{other}"), "property/ISA".to_owned()];
        let found = |violations: &[(&str, &str)]| missing(&precondition(violations));
        assert_eq!(found(&[("MISSING", &subjects[0]), ("MISSING", &subjects[1])]), Some(vec![one, other]));
        assert_eq!(found(&[]), Some(vec![]));
        assert_eq!(found(&[("MISSING", &subjects[0]), ("PLATFORM", &subjects[2])]), None);
        assert_eq!(missing(&Status::failed_precondition("")), Some(vec![]));
    }

    #[test]
    fn a_delay_is_found() {
        let delay = bazel_remote_apis::google::protobuf::Duration { seconds: 2, nanos: 0 };
        let value = RetryInfo { retry_delay: Some(delay) }.encode_to_vec();
        let details = vec![Any { type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(), value }];
        let asked = status(rpc::Status { code: 14, message: String::new(), details });
        assert_eq!(retry_delay(&asked), Some(Duration::from_secs(2)));
        assert_eq!(retry_delay(&precondition(&[])), None);
    }
}
