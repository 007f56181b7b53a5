//! Where a server is and how to talk to it.
//!
//! Secrets (values of headers, keys) are in no `Debug` output. Does not depend on the source of the options.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tonic::codegen::http::Uri;

use crate::error::Error;
use crate::s3::S3Account;

/// How to talk to a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Its instance name; empty for the one without a name.
    pub instance: String,
    /// Headers of every call.
    pub headers: Headers,
    /// Who is trusted, and who this client is.
    pub tls: Tls,
    /// Who knows credentials.
    pub credential_helper: Option<CredentialHelper>,
    /// The account for a bucket of S3.
    pub s3: S3Account,
    /// Who calls, for the server's log.
    pub tool: CallerTool,
    /// For how long a call is made again when the server or the network fails; silence counts as failing. A large blob
    /// may be late by this time beyond the time for its bytes.
    pub retry_time: Duration,
    /// The same for the first call, so that a wrong URL is seen soon.
    pub connect_time: Duration,
    /// For how long a call may be without an answer, or a stream without a message or its acceptance. A large message takes up to
    /// twice as long.
    pub call_timeout: Duration,
    /// After how long a silent Execute stream is replaced by a WaitExecution stream.
    pub stream_patience: Duration,
    /// After how long without data the system asks whether a connection lives (`SO_KEEPALIVE`).
    pub tcp_keepalive: Option<Duration>,
    /// The same by HTTP/2 PING frames. Many servers close a connection that has more than one in five minutes.
    pub http2_keepalive: Option<Duration>,
    /// Whether blobs are compressed on their way.
    pub compression: Compression,
    /// How many calls share a connection before another one is opened; servers often take 100.
    pub streams_per_connection: usize,
    /// How many large blobs are in transfer at once, in each direction.
    pub transfers: usize,
    /// The most bytes that a blob may have to be downloaded.
    pub largest_blob: u64,
}

/// No call is silent for longer, however long it may be made again.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

impl Options {
    /// The defaults for a server by its URL.
    pub fn new(url: &str) -> Result<Self, Error> {
        Endpoint::parse(url).map(Self::of)
    }

    /// The defaults for a server.
    pub fn of(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            instance: String::new(),
            headers: Headers::default(),
            tls: Tls::default(),
            credential_helper: None,
            s3: S3Account::default(),
            tool: CallerTool::default(),
            retry_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(5),
            call_timeout: Duration::from_secs(15),
            stream_patience: Duration::from_secs(120),
            tcp_keepalive: Some(Duration::from_secs(30)),
            http2_keepalive: None,
            compression: Compression::Auto,
            streams_per_connection: 64,
            transfers: 8,
            largest_blob: 2 << 30,
        }
    }

    /// Gives up on a server that fails or is silent for `time`, in every call. Half of it is for a first try, so that a
    /// dead connection is followed by another one. Zero makes each call once, with the silence that a call may have.
    pub fn give_up_after(&mut self, time: Duration) {
        self.retry_time = time;
        if !time.is_zero() {
            self.call_timeout = (time / 2).min(LONGEST_SILENCE);
            self.connect_time = self.connect_time.min(time);
            self.stream_patience = self.stream_patience.min(time * 4);
        }
    }
}

/// Who calls, for the server's log.
#[derive(Debug, Clone)]
pub struct CallerTool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// An identifier that its calls of one run share.
    pub invocation: String,
}

impl Default for CallerTool {
    fn default() -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME").to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { name, version, invocation: String::new() }
    }
}

/// Whether blobs are compressed on their way, where the server can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Never.
    Off,
    /// If the server is on another machine and the blob is not tiny.
    #[default]
    Auto,
    /// Always.
    On,
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    shown: Arc<str>,
    uri: String,
    /// The URL of a cache that speaks plain HTTP, or of a bucket, without a slash at its end.
    http: Option<String>,
    tls: bool,
    local: bool,
}

impl Endpoint {
    /// Parses a URL: `grpc://HOST:PORT`, `grpcs://` with TLS, `unix:PATH`, or for a cache that speaks plain HTTP
    /// `http://HOST:PORT/PATH`, `https://` and `s3://BUCKET/PATH`.
    pub fn parse(url: &str) -> Result<Self, Error> {
        // The text is not shown: a wrong URL may hold a password.
        let bad = |why: &str| Error::Options {
            option: "URL of the server".to_owned(),
            why: why.to_owned(),
            help: "grpc://HOST:PORT, grpcs://HOST:PORT (with TLS), unix:PATH, or for a cache http://HOST:PORT/PATH, https:// or s3://BUCKET/PATH is expected",
        };
        if let Some(path) = url.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(bad("no path follows unix:"));
            }
            let uri = format!("unix:{path}");
            return Ok(Self { shown: uri.as_str().into(), uri, http: None, tls: false, local: true });
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("no scheme"))?;
        let is_http = scheme.starts_with("http") || scheme == "s3";
        let (tls, scheme, port) = match scheme {
            "grpc" => (false, "http", 80),
            "grpcs" => (true, "https", 443),
            "http" => (false, "http", 80),
            "https" => (true, "https", 443),
            // The account says which host it is.
            "s3" => (true, "s3", 443),
            _ => return Err(bad("an unknown scheme")),
        };
        let uri: Uri = format!("{scheme}://{rest}").parse().map_err(|_| bad("not a URL"))?;
        let authority = uri.authority().ok_or_else(|| bad("no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it names a user; credentials belong in a header or a credential helper"));
        }
        if uri.query().is_some() {
            return Err(bad("a query follows the host"));
        }
        let path = uri.path().trim_end_matches('/');
        if !is_http && !path.is_empty() {
            return Err(bad("a path follows the host; an instance name is an option of its own"));
        }
        let host = authority.host();
        if scheme == "s3" {
            if authority.port().is_some() {
                return Err(bad(
                    "a port follows the bucket; AWS_ENDPOINT_URL names a server that is not AWS's",
                ));
            }
            let (uri, url) = (format!("s3://{host}"), format!("s3://{host}{path}"));
            return Ok(Self { shown: url.as_str().into(), uri, http: Some(url), tls: true, local: false });
        }
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        let port = authority.port_u16().unwrap_or(port);
        let uri = format!("{scheme}://{host}:{port}");
        let http = is_http.then(|| format!("{uri}{path}"));
        let grpc = || format!("{}://{host}:{port}", if tls { "grpcs" } else { "grpc" });
        let shown = http.clone().unwrap_or_else(grpc);
        Ok(Self { shown: shown.into(), uri, http, tls, local })
    }

    /// For messages.
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }

    /// As HTTP has it, and credential helpers.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The path of a bucket, if it is one.
    pub fn bucket(&self) -> Option<&str> {
        self.http.as_deref()?.strip_prefix("s3://")
    }

    /// Whether it is a cache that speaks plain HTTP.
    pub fn is_http(&self) -> bool {
        self.http.is_some()
    }

    /// The URL with its path.
    pub fn url(&self) -> &str {
        self.http.as_deref().unwrap_or(&self.uri)
    }

    /// Whether the connection is encrypted.
    pub fn has_tls(&self) -> bool {
        self.tls
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        self.local
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

/// Headers of every call. The values are secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Who is trusted, and who this client is. Files are in PEM format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of those who are trusted; the system's if `None`.
    pub authorities: Option<PathBuf>,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name in the server's certificate, where it is not the URL's host.
    pub server_name: Option<String>,
}

/// A program that knows credentials, as Bazel's `--credential_helper`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialHelper {
    /// The program.
    pub program: PathBuf,
    /// How long it may take.
    pub timeout: Duration,
    /// For how long credentials are used that do not say when they expire.
    pub lifetime: Duration,
}

impl CredentialHelper {
    /// A program with Bazel's defaults: ten seconds to answer, half an hour of use.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let lifetime = Duration::from_secs(30 * 60);
        Self { program: program.into(), timeout: Duration::from_secs(10), lifetime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let shown = |url: &str| Endpoint::parse(url).map(|endpoint| endpoint.to_string()).ok();
        for (url, expected) in [
            ("grpc://example.org:8980", Some("grpc://example.org:8980")),
            ("grpc://example.org/", Some("grpc://example.org:80")),
            ("http://example.org:8080", Some("http://example.org:8080")),
            ("http://example.org/cache/", Some("http://example.org:80/cache")),
            ("https://user:secret@example.org", None),
            ("https://example.org/a?b", None),
            ("https://example.org", Some("https://example.org:443")),
            ("grpcs://example.org", Some("grpcs://example.org:443")),
            ("s3://bucket", Some("s3://bucket")),
            ("s3://a.bucket/of/mine/", Some("s3://a.bucket/of/mine")),
            ("s3://bucket:80/", None),
            ("s3://user@bucket/", None),
            ("s3:///folder", None),
            ("grpcs://[::1]:1", Some("grpcs://[::1]:1")),
            ("unix:/run/cas", Some("unix:/run/cas")),
            ("unix:///run/cas", Some("unix:/run/cas")),
            ("example.org:8980", None),
            ("ftp://example.org", None),
            ("grpc://user:secret@example.org", None),
            ("grpc://example.org/main", None),
            ("grpc://", None),
            ("unix:", None),
        ] {
            assert_eq!(shown(url).as_deref(), expected, "{url}");
        }
        let local = |url| Endpoint::parse(url).is_ok_and(|endpoint| endpoint.is_local());
        assert!(local("grpc://127.0.0.1:1") && local("grpc://localhost") && local("grpc://[::1]:1"));
        assert!(!local("grpc://10.0.0.1:1"));
    }

    #[test]
    fn no_secret_is_shown() {
        let mut options = Options::new("grpc://example.org").expect("a good URL");
        options.headers.0.push(("authorization".to_owned(), "Bearer secret".to_owned()));
        let shown = format!("{options:?}");
        assert!(shown.contains("authorization") && !shown.contains("secret"), "{shown}");
        let refused = Endpoint::parse("grpc://user:secret@example.org").expect_err("it names a user");
        assert!(!format!("{refused} {refused:?}").contains("secret"));
    }
}
