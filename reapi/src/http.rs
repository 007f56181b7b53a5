//! A cache that speaks plain HTTP, in the layout of Bazel's `--remote_cache=http://`: bazel-remote, nginx, any WebDAV server.
//!
//! `GET` and `PUT` of `BASE/ac/HASH` (an `ActionResult` in protobuf) and `BASE/cas/HASH`, by SHA-256. The base may be a
//! folder of an S3 bucket. An instance name is a folder of the base. The methods are those of the API with its messages, so
//! that retries, checks and errors are one. Source of the format: Bazel's documentation, "Remote Caching", "HTTP Caching
//! Protocol".

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Certificate, Client, Identity, Method, RequestBuilder, Response, StatusCode};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::channel::{chain, pem};
use crate::digest::{Digest, DigestMessage};
use crate::error::Error;
use crate::options::Options;
use crate::proto;
use crate::s3::BucketFolder;
use crate::silence::{MESSAGE_LIMIT, silent};
use crate::statistics::Statistics;

/// gRPC's alone.
const METADATA: &str = "build.bazel.remote.execution.v2.requestmetadata-bin";
/// The most characters of a server's own words.
const LONGEST_WORDS: usize = 200;

/// The connections to such a cache.
#[derive(Debug, Clone)]
pub struct HttpCache {
    client: Client,
    base: Base,
    statistics: Arc<Statistics>,
    /// For how long a server may be silent.
    patience: Duration,
}

/// Where the files of a cache are.
#[derive(Debug, Clone)]
enum Base {
    /// Below a URL without a slash at its end.
    Url(Arc<str>),
    /// In a bucket, where each request has a signature of its own.
    Bucket(Arc<BucketFolder>),
}

impl HttpCache {
    /// Prepares connections. None is opened.
    pub fn new(options: &Options, statistics: Arc<Statistics>) -> Result<Self, Error> {
        let wrong = |error: reqwest::Error| Error::Options {
            option: format!("connection to {}", options.endpoint),
            why: chain(&error),
            help: "check the URL, the certificates and the key",
        };
        // Fails only if a provider is installed, which may be any.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .user_agent(format!("{}/{}", options.tool.name, options.tool.version))
            .connect_timeout(crate::channel::CONNECT_TIMEOUT)
            .read_timeout(options.call_timeout);
        if let Some(file) = &options.tls.authorities {
            let bundle = pem(file, "CERTIFICATE")?;
            client = client.tls_certs_only(Certificate::from_pem_bundle(&bundle).map_err(wrong)?);
        }
        if let Some((certificate, key)) = &options.tls.identity {
            let both = [pem(certificate, "CERTIFICATE")?, pem(key, "PRIVATE KEY")?].join(&b'\n');
            client = client.identity(Identity::from_pem(&both).map_err(wrong)?);
        }
        let within = |base: &str| match options.instance.trim_matches('/') {
            "" => base.to_owned(),
            instance => format!("{base}/{instance}"),
        };
        let base = match options.endpoint.bucket() {
            Some(path) => Base::Bucket(BucketFolder::new(options, &within(path))?.into()),
            None => Base::Url(within(options.endpoint.url()).into()),
        };
        let (client, patience) = (client.build().map_err(wrong)?, options.call_timeout);
        Ok(Self { client, base, statistics, patience })
    }

    /// Asks for the empty blob, to learn whether there is a server that answers this client.
    pub async fn capabilities(&self, headers: &MetadataMap) -> Result<proto::ServerCapabilities, Status> {
        let request = self.request(Method::HEAD, "cas", &Digest::of(b""));
        match send(request, headers, self.patience).await {
            Err(status) if status.code() != Code::NotFound => Err(status),
            _ => Ok(proto::ServerCapabilities {
                cache_capabilities: Some(proto::CacheCapabilities {
                    digest_functions: vec![proto::digest_function::Value::Sha256 as i32],
                    action_cache_update_capabilities: Some(proto::ActionCacheUpdateCapabilities {
                        update_enabled: true,
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            }),
        }
    }

    /// The bytes of a result of the action cache.
    pub async fn action_result(&self, headers: &MetadataMap, action: &Digest) -> Result<Bytes, Status> {
        self.get(headers, "ac", action, MESSAGE_LIMIT).await
    }

    /// Writes the action cache.
    pub async fn update_action_result(
        &self,
        headers: &MetadataMap,
        action: &Digest,
        result: &proto::ActionResult,
    ) -> Result<(), Status> {
        self.put(headers, "ac", action, result.encode_to_vec()).await
    }

    /// Blobs, each with its own status.
    pub async fn read(
        &self,
        headers: &MetadataMap,
        request: &proto::BatchReadBlobsRequest,
    ) -> Result<proto::BatchReadBlobsResponse, Status> {
        let mut responses = Vec::new();
        for digest in &request.digests {
            let known = known(digest)?;
            let size = usize::try_from(known.size).unwrap_or(usize::MAX);
            let (data, status) = match self.get(headers, "cas", &known, size).await {
                Ok(data) => (data.into(), None),
                Err(status) if status.code() == Code::NotFound => (Vec::new(), Some(message(&status))),
                Err(status) => return Err(status),
            };
            let digest = Some(digest.clone());
            responses.push(proto::batch_read_blobs_response::Response {
                digest,
                data,
                status,
                ..Default::default()
            });
        }
        Ok(proto::BatchReadBlobsResponse { responses })
    }

    /// Uploads blobs.
    pub async fn update(
        &self,
        headers: &MetadataMap,
        request: proto::BatchUpdateBlobsRequest,
    ) -> Result<proto::BatchUpdateBlobsResponse, Status> {
        let mut responses = Vec::new();
        for blob in request.requests {
            let digest = known(&blob.digest.clone().unwrap_or_default())?;
            self.put(headers, "cas", &digest, blob.data).await?;
            responses
                .push(proto::batch_update_blobs_response::Response { digest: blob.digest, status: None });
        }
        Ok(proto::BatchUpdateBlobsResponse { responses })
    }

    fn request(&self, method: Method, kind: &str, digest: &Digest) -> RequestBuilder {
        let file = format!("{kind}/{}", digest.hex());
        let url = match &self.base {
            Base::Url(base) => format!("{base}/{file}"),
            Base::Bucket(bucket) => bucket.url(&method, &file),
        };
        self.client.request(method, url)
    }

    /// A file, or its beginning: a longer one than `most` bytes is cut, and so has other content than it should.
    async fn get(
        &self,
        headers: &MetadataMap,
        kind: &str,
        digest: &Digest,
        most: usize,
    ) -> Result<Bytes, Status> {
        let mut response = send(self.request(Method::GET, kind, digest), headers, self.patience).await?;
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(broken(self.patience))? {
            self.statistics.answered();
            bytes.extend_from_slice(&part);
            if bytes.len() > most {
                break;
            }
        }
        Ok(bytes.into())
    }

    async fn put(
        &self,
        headers: &MetadataMap,
        kind: &str,
        digest: &Digest,
        data: Vec<u8>,
    ) -> Result<(), Status> {
        let request =
            self.request(Method::PUT, kind, digest).header(CONTENT_TYPE, "application/octet-stream");
        send(request.body(data), headers, self.patience).await.map(drop)
    }
}

fn known(digest: &proto::Digest) -> Result<Digest, Status> {
    Digest::from_message(digest).ok_or_else(|| Status::internal("no digest"))
}

fn message(status: &Status) -> bazel_remote_apis::google::rpc::Status {
    let (code, message) = (status.code() as i32, status.message().to_owned());
    bazel_remote_apis::google::rpc::Status { code, message, details: Vec::new() }
}

/// Makes a request, and reads why it was refused.
async fn send(
    request: RequestBuilder,
    headers: &MetadataMap,
    patience: Duration,
) -> Result<Response, Status> {
    let mut headers: HeaderMap = headers.clone().into_headers();
    headers.remove(METADATA);
    let response = request.headers(headers).send().await.map_err(broken(patience))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_page = kind.starts_with("text/html");
    // Only the server's words get lost.
    let text = if is_page { String::new() } else { response.text().await.unwrap_or_default() };
    let words: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_WORDS).collect();
    Err(Status::new(
        code(status),
        format!("HTTP {status}{}{words}", if words.is_empty() { "" } else { ": " }),
    ))
}

/// The status of gRPC that means the same.
fn code(status: StatusCode) -> Code {
    match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN | StatusCode::PROXY_AUTHENTICATION_REQUIRED => Code::PermissionDenied,
        StatusCode::NOT_FOUND | StatusCode::GONE => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => Code::Unimplemented,
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        _ if status.is_server_error() => Code::Internal,
        _ => Code::FailedPrecondition,
    }
}

/// A connection that failed, or was silent for too long. The URL is known to those who read the message.
fn broken(patience: Duration) -> impl Fn(reqwest::Error) -> Status {
    move |error| {
        if error.is_timeout() && !error.is_connect() {
            return silent(patience);
        }
        let error = error.without_url();
        let mut status = Status::unavailable(error.to_string());
        match error.source() {
            Some(_) => status.set_source(Arc::new(error)),
            None => status.set_source(Arc::new(std::io::Error::other(error.to_string()))),
        };
        status
    }
}
