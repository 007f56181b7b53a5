//! The errors of the client, in the words of the field, each with a remedy.
//!
//! Errors can be cloned, since one call serves many callers. No message holds a header's value.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use miette::Diagnostic;
use thiserror::Error;
use tonic::Code;

use crate::digest::Digest;
use crate::method::Method;

/// Why something could not be done.
#[derive(Debug, Clone, Error, Diagnostic)]
pub enum Error {
    /// An option cannot be used.
    #[error("{option}: {why}")]
    #[diagnostic(code(reapi::options), help("{help}"))]
    Options {
        /// The option.
        option: String,
        /// The problem.
        why: String,
        /// The remedy.
        help: &'static str,
    },
    /// The credential helper gave no credentials.
    #[error("credential helper {}: {why}", helper.display())]
    #[diagnostic(
        code(reapi::credentials),
        help("run `{} get` by hand with {{\"uri\": \"{endpoint}\"}} on its standard input", helper.display())
    )]
    Credentials {
        /// The program.
        helper: PathBuf,
        /// The server that credentials were asked for.
        endpoint: Arc<str>,
        /// The problem.
        why: String,
    },
    /// The server cannot be reached, or was gone for longer than the retry time.
    #[error("{failed}")]
    #[diagnostic(
        code(reapi::unreachable),
        help(
            "check that the server runs and can be reached, and that the URL's scheme fits: grpcs:// for TLS"
        )
    )]
    Unreachable {
        /// The last attempt.
        failed: Box<Failed>,
    },
    /// One side does not trust the other one's certificate.
    #[error("{failed}")]
    #[diagnostic(
        code(reapi::untrusted),
        help(
            "name the file of the authority that signed the server's certificate, and the client certificate that it wants"
        )
    )]
    Untrusted {
        /// The last attempt.
        failed: Box<Failed>,
    },
    /// The server wants other credentials, or does not permit the call.
    #[error("{failed}")]
    #[diagnostic(
        code(reapi::denied),
        help(
            "check the headers, the credential helper, the client certificate or, for a bucket, the AWS_ variables, and what \
             they permit"
        )
    )]
    Denied {
        /// The attempt.
        failed: Box<Failed>,
    },
    /// The server refused the call, or failed.
    #[error("{failed}")]
    #[diagnostic(code(reapi::failed), help("{}", remedy(failed.code)))]
    Failed {
        /// The last attempt.
        failed: Box<Failed>,
    },
    /// The server lacks something that this client needs.
    #[error("{endpoint}: {what}")]
    #[diagnostic(code(reapi::unsupported), help("ask who runs the server, or use another one"))]
    Unsupported {
        /// The server.
        endpoint: Arc<str>,
        /// The missing capability.
        what: String,
    },
    /// The server lacks blobs that it had, or that the action needs.
    #[error("{endpoint}: {method}: blobs are missing{}: {message}", list(digests))]
    #[diagnostic(code(reapi::lost), help("forget what is known to be there, upload again, and try again"))]
    Lost {
        /// The server.
        endpoint: Arc<str>,
        /// The call.
        method: Method,
        /// The blobs, where the server names them. Else any blob of the action may be missing, or the action was
        /// refused for another reason, which only the message gives. One more try, with everything uploaded, shows
        /// which.
        digests: Vec<Digest>,
        /// The server's message.
        message: String,
    },
    /// A downloaded blob has another digest than the requested one.
    #[error("{endpoint}: blob {digest} has other content: {found}")]
    #[diagnostic(
        code(reapi::corrupt),
        help("the server or something before it damages data; nothing of it was used")
    )]
    Corrupt {
        /// The server.
        endpoint: Arc<str>,
        /// The requested digest.
        digest: Digest,
        /// The digest or the defect of the content that came.
        found: String,
    },
    /// A blob was on its way for too long, though something moved.
    #[error("{endpoint}: blob {digest} is too slow: {moved} bytes in {:.1} s", elapsed.as_secs_f64())]
    #[diagnostic(
        code(reapi::slow),
        help(
            "a server or network this slow costs more than it gives; a longer time for retries waits longer"
        )
    )]
    Slow {
        /// The server.
        endpoint: Arc<str>,
        /// The blob.
        digest: Digest,
        /// How many of its bytes had moved.
        moved: u64,
        /// The time that it took.
        elapsed: Duration,
    },
    /// A result names something larger than any such thing is.
    #[error("{endpoint}: {what} of {size} bytes is not downloaded: the most is {limit}")]
    #[diagnostic(
        code(reapi::too_large),
        help("the result is wrong, or the server is; nothing of it was used")
    )]
    TooLarge {
        /// The server.
        endpoint: Arc<str>,
        /// The kind of thing.
        what: &'static str,
        /// The size that the server names.
        size: u64,
        /// The most that is downloaded.
        limit: u64,
    },
    /// The content to upload does not have its digest.
    #[error("{place} changed while it was used: {digest} was expected")]
    #[diagnostic(code(reapi::changed), help("nothing may write inputs while they are used; run again"))]
    Changed {
        /// The file, or the memory.
        place: String,
        /// The expected digest.
        digest: Digest,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    #[diagnostic(code(reapi::io), help("mend the permissions, or free space"))]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The action ran longer than it or the server permits, and was ended there.
    #[error("{endpoint}: action {action} ran out of time: {message}")]
    #[diagnostic(code(reapi::timeout), help("give the action more time, if the server's limit permits"))]
    TimedOut {
        /// The server.
        endpoint: Arc<str>,
        /// The action.
        action: Digest,
        /// The server's message.
        message: String,
    },
    /// A deadline of this client passed; it asked the server to cancel the action.
    #[error("{endpoint}: action {action} {} after {limit:?}", if *queued { "was still queued" } else { "was still running" })]
    #[diagnostic(
        code(reapi::deadline),
        help(
            "a platform property that no worker has queues for ever; otherwise raise the deadline or add workers"
        )
    )]
    Deadline {
        /// The server.
        endpoint: Arc<str>,
        /// The action.
        action: Digest,
        /// Whether it waited in a queue; else it ran.
        queued: bool,
        /// The deadline.
        limit: Duration,
    },
    /// The server does not keep to the API.
    #[error("{endpoint}: {method}: {what}")]
    #[diagnostic(code(reapi::protocol), help("this is a defect of the server, or of something before it"))]
    Protocol {
        /// The server.
        endpoint: Arc<str>,
        /// The call.
        method: Method,
        /// The violation.
        what: String,
    },
    /// The runtime ended in the middle.
    #[error("the client was shut down")]
    #[diagnostic(code(reapi::interrupted))]
    Shutdown,
}

/// A call that failed.
#[derive(Debug, Clone, Error)]
#[error("{endpoint}: {}{message}{}", call(endpoint, *method, *code), again(*tries, *elapsed))]
pub struct Failed {
    /// The server.
    pub endpoint: Arc<str>,
    /// The call.
    pub method: Method,
    /// The status.
    pub code: Code,
    /// The message of the server, or of a proxy between.
    pub message: String,
    /// How often the call was tried.
    pub tries: u32,
    /// For how long.
    pub elapsed: Duration,
}

impl Error {
    /// Returns the status of a failed call; `None` for other errors.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Unreachable { failed }
            | Self::Untrusted { failed }
            | Self::Denied { failed }
            | Self::Failed { failed } => Some(failed.code),
            _ => None,
        }
    }

    /// The server that it is about.
    pub fn endpoint(&self) -> Option<&Arc<str>> {
        match self {
            Self::Unreachable { failed }
            | Self::Untrusted { failed }
            | Self::Denied { failed }
            | Self::Failed { failed } => Some(&failed.endpoint),
            Self::Credentials { endpoint, .. }
            | Self::Unsupported { endpoint, .. }
            | Self::Lost { endpoint, .. }
            | Self::Corrupt { endpoint, .. }
            | Self::Slow { endpoint, .. }
            | Self::TooLarge { endpoint, .. }
            | Self::TimedOut { endpoint, .. }
            | Self::Deadline { endpoint, .. }
            | Self::Protocol { endpoint, .. } => Some(endpoint),
            Self::Options { .. } | Self::Changed { .. } | Self::Io { .. } | Self::Shutdown => None,
        }
    }

    /// Whether the server did not answer, or as good as not: the next call would go the same way.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Slow { .. })
    }

    /// Whether a message may have been too large for the server or something before it.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Failed { failed } if too_large(failed.code, &failed.message))
    }
}

/// Returns whether a status may mean that a message, or a batch of blobs, is too large. The API has INVALID_ARGUMENT
/// for batches; the others are of gRPC's implementations. Busy servers say RESOURCE_EXHAUSTED as well, so its words
/// count: those in C++, Go and Java.
pub(crate) fn too_large(code: Code, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let words = ["larger than max", "message length too large", "exceeds maximum size", "message too large"];
    match code {
        Code::InvalidArgument | Code::OutOfRange => true,
        Code::ResourceExhausted => words.iter().any(|words| message.contains(words)),
        _ => false,
    }
}

/// The name of a status as gRPC's documents spell it.
pub fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

fn remedy(code: Code) -> &'static str {
    match code {
        Code::Unimplemented => "check the URL: this server, or this instance of it, lacks the service",
        Code::InvalidArgument | Code::NotFound => "check the instance name",
        Code::ResourceExhausted => "the server is full or limits the number of calls",
        _ => "look into the server's log",
    }
}

/// Method and code of a failed call. A cache that speaks plain HTTP has its own words.
fn call(endpoint: &str, method: Method, code: Code) -> String {
    match ["http://", "https://", "s3://"].iter().any(|scheme| endpoint.starts_with(scheme)) {
        true => String::new(),
        false => format!("{method}: {}: ", name(code)),
    }
}

fn again(tries: u32, elapsed: Duration) -> String {
    if tries > 1 {
        format!(" (tried {tries} times in {:.1} s)", elapsed.as_secs_f64())
    } else {
        String::new()
    }
}

fn list(digests: &[Digest]) -> String {
    let more = if digests.len() > 3 { format!(" and {} more", digests.len() - 3) } else { String::new() };
    let first: Vec<_> = digests.iter().take(3).map(Digest::to_string).collect();
    if first.is_empty() { String::new() } else { format!(" ({}{more})", first.join(", ")) }
}
