//! One call: a connection, headers, a limit of time, and another try when the server or the network failed.
//!
//! Every request goes through [`Calls`]. Does not depend on the method.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::google::rpc;
use prost::Message;
use tokio::time::{Instant, sleep, timeout};
use tonic::metadata::{
    AsciiMetadataKey, AsciiMetadataValue, BinaryMetadataKey, BinaryMetadataValue, MetadataMap,
};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::channel::{Channels, Lease, chain};
use crate::credentials::{Credentials, HelperCredentials};
use crate::digest::Digest;
use crate::error::{Error, Failed};
use crate::http::HttpCache;
use crate::method::Method;
use crate::options::Options;
use crate::proto;
use crate::retry::{Retry, RetryVerdict, untrusted, verdict};
use crate::silence::silent;
use crate::statistics::Statistics;
use crate::stream_slots::StreamSlots;

/// Shorter values of headers would be found in any message.
const SHORTEST_SECRET: usize = 4;

/// A message of this many bytes, the usual limit of gRPC servers, may take twice the time of a small one.
const LARGE: usize = 4 << 20;
/// The fewest bytes in a second that a large blob may come or go by, once the time for retries is over.
const SLOWEST: u64 = 128 << 10;
/// The most characters of a server's message.
const LONGEST_WORDS: usize = 2000;

/// A server whose certificate is one of an authority, in the words of TLS and in plain ones.
const AUTHORITY_AS_SERVER: &str = "Other(OtherError(CaUsedAsEndEntity))";
const AUTHORITY_AS_SERVER_IN_WORDS: &str =
    "it is that of an authority itself (CA:TRUE); the server needs one of its own";

/// The deadline of a large blob over all its tries: a server that gives a byte now and then is never silent.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    begun: Instant,
    slack: Duration,
}

impl Pace {
    /// When more than so many bytes have to have moved.
    pub fn due(&self, moved: u64) -> Instant {
        self.begun + self.slack + Duration::from_secs_f64(moved as f64 / SLOWEST as f64)
    }
}

/// The shared state of all calls to a server.
pub struct Calls {
    pub options: Options,
    pub statistics: Arc<Statistics>,
    /// For executions.
    pub slots: StreamSlots,
    /// In place of gRPC, for a cache that speaks plain HTTP.
    http: Option<HttpCache>,
    channels: Channels,
    headers: MetadataMap,
    credentials: Option<Credentials>,
}

/// Why an attempt failed.
pub enum AttemptFailure {
    /// With a status, which may permit another try.
    Status(Status),
    /// With nothing for so long, and this in the end: the connection may be dead without anybody's knowing.
    Silence(Duration, Status),
    /// For good.
    Final(Error),
}

impl From<Status> for AttemptFailure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Error> for AttemptFailure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// The connection, headers and credentials of one attempt.
pub struct Attempt {
    lease: Lease,
    headers: MetadataMap,
    given: Option<HelperCredentials>,
}

impl Attempt {
    /// A message with the headers of every call.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        *request.metadata_mut() = self.headers.clone();
        request
    }

    /// The headers of every call.
    pub fn headers(&self) -> &MetadataMap {
        &self.headers
    }

    /// The connection.
    pub fn channel(&self) -> Channel {
        self.lease.channel.clone()
    }
}

/// A client stub of an attempt that takes large messages.
macro_rules! stub {
    ($attempt:expr, $service:ident, $client:ident) => {
        $crate::proto::$service::$client::new($attempt.channel())
            .max_decoding_message_size($crate::silence::MESSAGE_LIMIT)
            .max_encoding_message_size(usize::MAX)
    };
}
pub(crate) use stub;

impl Options {
    /// Reads certificates and keys, and looks at headers, as a client would. No server is asked.
    pub fn check(&self) -> Result<(), Error> {
        Calls::new(self.clone()).map(drop)
    }
}

impl Calls {
    pub fn new(options: Options) -> Result<Self, Error> {
        let helper = options.credential_helper.clone();
        let statistics = Arc::<Statistics>::default();
        let http = || HttpCache::new(&options, statistics.clone());
        Ok(Self {
            http: options.endpoint.is_http().then(http).transpose()?,
            channels: Channels::new(&options)?,
            headers: headers(&options)?,
            credentials: helper.map(|helper| Credentials::new(helper, options.endpoint.clone())),
            statistics,
            slots: StreamSlots::default(),
            options,
        })
    }

    /// The cache that speaks plain HTTP, if the server is one.
    pub fn http(&self) -> Option<&HttpCache> {
        self.http.as_ref()
    }

    /// The server, for messages.
    pub fn endpoint(&self) -> Arc<str> {
        self.options.endpoint.shown().clone()
    }

    /// The name of a stream's blob: the instance comes first, where it has a name.
    pub fn resource(&self, rest: &str) -> String {
        let instance = &self.options.instance;
        if instance.is_empty() { rest.to_owned() } else { format!("{instance}/{rest}") }
    }

    /// The tries of a call of the usual patience.
    pub fn retry(&self) -> Retry {
        Retry::new(self.options.retry_time)
    }

    /// Returns the connection, headers and credentials for one attempt; an error if the credential helper fails.
    pub async fn attempt(&self, method: Method) -> Result<Attempt, Error> {
        let mut headers = self.headers.clone();
        let given = match &self.credentials {
            Some(credentials) => Some(credentials.get(&self.statistics).await?),
            None => None,
        };
        for (name, values) in given.iter().flat_map(|given| &*given.headers) {
            headers.remove(name.to_ascii_lowercase());
            values.iter().try_for_each(|value| append(&mut headers, name, value))?;
        }
        self.statistics.called(method);
        Ok(Attempt { lease: self.channels.lease(&self.statistics), headers, given })
    }

    /// Makes a call, again and again until it succeeds, fails for good or the time is over. The limit is that of one attempt.
    pub async fn call<T, F>(
        &self,
        method: Method,
        retry: &mut Retry,
        mut call: impl FnMut(Arc<Attempt>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, AttemptFailure>>,
    {
        loop {
            let attempt = Arc::new(self.attempt(method).await?);
            match self.within(0, call(attempt.clone())).await {
                Ok(value) => return Ok(value),
                Err(failure) => self.recover(method, retry, &attempt, failure).await?,
            }
        }
    }

    /// [`Calls::call`] of a method with one answer.
    pub async fn unary<T, F>(&self, method: Method, call: impl FnMut(Arc<Attempt>) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, AttemptFailure>>,
    {
        self.call(method, &mut self.retry(), call).await
    }

    /// Waits for the end of `future`, which moves a message of so many bytes, as long as a call may be silent.
    pub async fn within<T>(
        &self,
        bytes: usize,
        future: impl Future<Output = Result<T, AttemptFailure>>,
    ) -> Result<T, AttemptFailure> {
        let limit = match &self.http {
            // One request holds a whole blob; silence has a limit of its own.
            Some(_) => self.options.call_timeout + Duration::from_secs_f64(bytes as f64 / SLOWEST as f64),
            None => self.options.call_timeout.mul_f64(1.0 + bytes.min(LARGE) as f64 / LARGE as f64),
        };
        let begun = Instant::now();
        match timeout(limit, future).await {
            Ok(Err(AttemptFailure::Status(status))) if verdict(&status) == RetryVerdict::Transport => {
                // Of a body that came by HTTP it is not known when it stopped.
                let silence = begun.elapsed().min(self.options.call_timeout);
                Err(AttemptFailure::Silence(silence, status))
            }
            Ok(done) => done,
            Err(_late) => Err(AttemptFailure::Silence(limit, silent(limit))),
        }
    }

    /// The time that a large blob has from now on.
    pub fn pace(&self) -> Pace {
        // A single try has to be possible.
        Pace { begun: Instant::now(), slack: self.options.retry_time.max(self.options.call_timeout) }
    }

    /// Returns the error of a blob that was too slow: `moved` bytes when its time was over.
    pub fn slow(&self, digest: Digest, moved: u64, pace: &Pace) -> Error {
        Error::Slow { endpoint: self.endpoint(), digest, moved, elapsed: pace.begun.elapsed() }
    }

    /// After a failed attempt: waits until the next one is due, or gives the error that ends the call.
    pub async fn recover(
        &self,
        method: Method,
        retry: &mut Retry,
        attempt: &Attempt,
        failure: AttemptFailure,
    ) -> Result<(), Error> {
        let (status, silence) = match failure {
            AttemptFailure::Final(error) => return Err(error),
            AttemptFailure::Status(status) => (status, Duration::ZERO),
            AttemptFailure::Silence(silence, status) => (status, silence),
        };
        let verdict = verdict(&status);
        if matches!(verdict, RetryVerdict::Transport | RetryVerdict::Refused) {
            self.channels.discard(&attempt.lease);
        }
        let pause = retry.again(verdict, &status, silence);
        if let (RetryVerdict::Unauthenticated, Some(credentials), Some(given), false) =
            (verdict, &self.credentials, &attempt.given, retry.renewed)
        {
            retry.renewed = true;
            credentials.refuse(given.number).await;
            self.statistics.called_again();
            return Ok(());
        }
        let Some(pause) = pause else { return Err(self.failed(method, retry, attempt, &status)) };
        self.statistics.called_again();
        sleep(pause).await;
        Ok(())
    }

    /// The error of a call that ended with `status`.
    pub fn failed(&self, method: Method, retry: &Retry, attempt: &Attempt, status: &Status) -> Error {
        let (tries, elapsed) = retry.spent();
        let failed = Box::new(Failed {
            endpoint: self.endpoint(),
            method,
            code: status.code(),
            message: self.server_message(attempt, status),
            tries,
            elapsed,
        });
        match (verdict(status), status.code()) {
            _ if untrusted(status) => Error::Untrusted { failed },
            (RetryVerdict::Transport | RetryVerdict::Refused, _) | (_, Code::Unavailable) => {
                Error::Unreachable { failed }
            }
            (_, Code::Unauthenticated | Code::PermissionDenied) => Error::Denied { failed },
            _ => Error::Failed { failed },
        }
    }

    /// The error of a server that lacks blobs.
    pub fn lost(&self, attempt: &Attempt, method: Method, digests: Vec<Digest>, status: &Status) -> Error {
        let message = self.server_message(attempt, status);
        Error::Lost { endpoint: self.endpoint(), method, digests, message }
    }

    /// The error of a server that takes connections and answers nothing.
    pub fn unanswered(&self, elapsed: Duration) -> Error {
        let failed = Box::new(Failed {
            endpoint: self.endpoint(),
            method: Method::GetCapabilities,
            code: Code::DeadlineExceeded,
            message: format!("no answer in {elapsed:?}"),
            tries: 1,
            elapsed,
        });
        Error::Unreachable { failed }
    }

    /// Returns a status's message for one line of a terminal, without secrets: a server may repeat a request's headers.
    pub fn server_message(&self, attempt: &Attempt, status: &Status) -> String {
        let said = match std::error::Error::source(status) {
            // rustls's word for what other clients may take.
            Some(source) => chain(source).replace(AUTHORITY_AS_SERVER, AUTHORITY_AS_SERVER_IN_WORDS),
            None => status.message().to_owned(),
        };
        let secrets = self.secrets(attempt.given.as_ref()).filter(|value| value.len() >= SHORTEST_SECRET);
        printable(&secrets.fold(said, |said, value| said.replace(value, "***")))
    }

    fn secrets<'a>(&'a self, given: Option<&'a HelperCredentials>) -> impl Iterator<Item = &'a str> {
        let given = given.into_iter().flat_map(|given| given.headers.values().flatten());
        let all = self.options.headers.0.iter().map(|(_, value)| value).chain(given);
        // `Bearer TOKEN`: the token alone is as secret.
        all.flat_map(|value| [value.as_str(), value.rsplit(' ').next().unwrap_or_default()])
    }

    /// The error of a server that does not keep to the API.
    pub fn protocol(&self, method: Method, what: impl Into<String>) -> Error {
        Error::Protocol { endpoint: self.endpoint(), method, what: what.into() }
    }
}

/// Words of a server in one line: a terminal would obey some characters, and others turn the direction of the rest.
fn printable(words: &str) -> String {
    let odd = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    words.chars().take(LONGEST_WORDS).map(|c| if odd(c) { '\u{fffd}' } else { c }).collect()
}

/// A status inside of a message, as if a call had ended with it.
pub fn status(status: rpc::Status) -> Status {
    let details = status.encode_to_vec();
    Status::with_details(Code::from_i32(status.code), status.message, details.into())
}

/// The headers of every call.
fn headers(options: &Options) -> Result<MetadataMap, Error> {
    let mut headers = MetadataMap::new();
    let tool = &options.tool;
    let details = proto::ToolDetails { tool_name: tool.name.clone(), tool_version: tool.version.clone() };
    let who = proto::RequestMetadata {
        tool_details: Some(details),
        tool_invocation_id: tool.invocation.clone(),
        ..Default::default()
    };
    let who = BinaryMetadataValue::from_bytes(&who.encode_to_vec());
    headers.insert_bin("build.bazel.remote.execution.v2.requestmetadata-bin", who);
    for (name, value) in &options.headers.0 {
        append(&mut headers, name, value)?;
    }
    Ok(headers)
}

fn append(headers: &mut MetadataMap, name: &str, value: &str) -> Result<(), Error> {
    let wrong = |why: &str| Error::Options {
        option: format!("header `{name}`"),
        why: why.to_owned(),
        help: "a name of letters, digits and dashes, and a value of printable ASCII characters are expected",
    };
    let lower = name.to_ascii_lowercase();
    if lower.ends_with("-bin") {
        let key =
            BinaryMetadataKey::from_bytes(lower.as_bytes()).map_err(|_| wrong("not a header's name"))?;
        headers.append_bin(key, BinaryMetadataValue::from_bytes(value.as_bytes()));
    } else {
        let key = AsciiMetadataKey::from_bytes(lower.as_bytes()).map_err(|_| wrong("not a header's name"))?;
        let mut value = AsciiMetadataValue::try_from(value).map_err(|_| wrong("not a header's value"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_repeats_is_no_secret_told() -> Result<(), Error> {
        let mut options = Options::new("grpc://example.org")?;
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        options.headers.0 = vec![header("authorization", "Bearer t0ken"), header("x-retries", "1")];
        let calls = Calls::new(options)?;
        let attempt = calls.attempt(Method::Execute).await?;
        let status = Status::internal("Bearer t0ken, or t0ken: 1 is wrong");
        assert_eq!(calls.server_message(&attempt, &status), "***, or ***: 1 is wrong");
        let status = Status::internal(format!("\u{1b}[2J\r\n\u{202e}{}", "x".repeat(1 << 20)));
        let said = calls.server_message(&attempt, &status);
        assert!(said.starts_with("\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}xxx"), "{said}");
        assert_eq!(said.chars().count(), LONGEST_WORDS);
        Ok(())
    }
}
