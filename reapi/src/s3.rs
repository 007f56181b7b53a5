//! The files of an S3 bucket, as URLs that a signature makes valid for a while.
//!
//! AWS's "Authenticating Requests: Using Query Parameters" is the source of the format. The servers of others take it too.

use std::time::Duration;

use reqwest::Method;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};

use crate::error::Error;
use crate::options::Options;

/// AWS's default.
const REGION: &str = "us-east-1";
/// How long a URL is valid. A request is made at once, and each try has a URL of its own.
const VALID: Duration = Duration::from_secs(15 * 60);

/// Where buckets are, and the key that opens them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Account {
    /// The URL of a server that is not AWS's.
    endpoint: Option<String>,
    region: Option<String>,
    /// Its `Debug` output has no secret.
    key: Option<Credentials>,
}

impl S3Account {
    /// The account that AWS's variables describe: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`,
    /// `AWS_REGION` or `AWS_DEFAULT_REGION`, and `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` for servers of others.
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let key = set("AWS_ACCESS_KEY_ID").zip(set("AWS_SECRET_ACCESS_KEY"));
        Self {
            endpoint: set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL")),
            region: set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")),
            key: key.map(|(id, secret)| match set("AWS_SESSION_TOKEN") {
                Some(token) => Credentials::new_with_token(id, secret, token),
                None => Credentials::new(id, secret),
            }),
        }
    }

    /// Whether requests are signed.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// The account without its key: requests have no signature, and read public buckets.
    #[must_use]
    pub fn without_key(self) -> Self {
        Self { key: None, ..self }
    }
}

/// A folder of a bucket.
#[derive(Debug, Clone)]
pub struct BucketFolder {
    bucket: Bucket,
    key: Option<Credentials>,
    /// Empty, or with a slash at its end.
    folder: String,
}

impl BucketFolder {
    /// Of `BUCKET` or `BUCKET/FOLDER`.
    pub fn new(options: &Options, path: &str) -> Result<Self, Error> {
        let wrong = |why: String| Error::Options {
            option: format!("connection to {}", options.endpoint),
            why,
            help: "check the name of the bucket, AWS_ENDPOINT_URL and AWS_REGION",
        };
        let (name, folder) = path.split_once('/').unwrap_or((path, ""));
        let S3Account { endpoint, region, key } = options.s3.clone();
        let region = region.unwrap_or_else(|| REGION.to_owned());
        // No certificate is for a name with dots, and the servers of others seldom have a host for each bucket.
        let is_host = endpoint.is_none() && !name.contains('.');
        let style = if is_host { UrlStyle::VirtualHost } else { UrlStyle::Path };
        let url = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let url = url.parse().map_err(|error| wrong(format!("{url} is not a URL: {error}")))?;
        let bucket =
            Bucket::new(url, style, name.to_owned(), region).map_err(|error| wrong(error.to_string()))?;
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Ok(Self { bucket, key, folder })
    }

    /// The URL of a file for a request.
    pub fn url(&self, method: &Method, file: &str) -> String {
        let (key, path) = (self.key.as_ref(), format!("{}{file}", self.folder));
        let url = match *method {
            Method::PUT => self.bucket.put_object(key, &path).sign(VALID),
            Method::HEAD => self.bucket.head_object(key, &path).sign(VALID),
            _ => self.bucket.get_object(key, &path).sign(VALID),
        };
        url.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(endpoint: &str, account: &[(&str, &str)]) -> Result<String, String> {
        let mut options = Options::new(endpoint).map_err(|error| error.to_string())?;
        options.s3 = S3Account::of_variables(|name| {
            account.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let folder = BucketFolder::new(&options, options.endpoint.bucket().unwrap_or_default());
        folder.map(|folder| folder.url(&Method::GET, "ac/1234")).map_err(|error| error.to_string())
    }

    #[test]
    fn urls() {
        let region = ("AWS_REGION", "eu-west-1");
        let key = [("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "hidden"), region];
        for (endpoint, account, expected) in [
            ("s3://bucket", &[][..], "https://bucket.s3.us-east-1.amazonaws.com/ac/1234"),
            ("s3://bucket/of/all/", &[region], "https://bucket.s3.eu-west-1.amazonaws.com/of/all/ac/1234"),
            ("s3://a.bucket", &[region], "https://s3.eu-west-1.amazonaws.com/a.bucket/ac/1234"),
            (
                "s3://bucket",
                &[("AWS_ENDPOINT_URL", "http://minio:9000/")],
                "http://minio:9000/bucket/ac/1234",
            ),
        ] {
            assert_eq!(url(endpoint, account).as_deref(), Ok(expected), "{endpoint}");
        }
        let signed = url("s3://bucket", &key).expect("a URL");
        assert!(signed.contains("AKID") && signed.contains("X-Amz-Signature=") && !signed.contains("hidden"));
        for endpoint in ["minio:9000", "ftp://minio", "http://"] {
            let refused = url("s3://bucket", &[("AWS_ENDPOINT_URL", endpoint)]);
            assert!(refused.is_err(), "{endpoint}: {refused:?}");
        }
    }
}
