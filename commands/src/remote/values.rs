//! Values of options and configuration files, as text: choices, times, properties, headers, places of servers.
//!
//! One spelling for both. Does not depend on the source of a value; no error shows a value that may be secret.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use distlto_executor::cache::store::limits::parse_age;
use distlto_reapi as reapi;
use distlto_reapi::options::{Compression, Endpoint};
use serde::Deserialize;

/// Who fills the remote cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// Results are taken from it and put into it
    #[default]
    ReadWrite,
    /// Results are taken from it
    ReadOnly,
}

/// Where workers have the compiler from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolchainPlace {
    /// They have it, under the path that it has here
    #[default]
    Worker,
    /// It is uploaded, with the libraries that it loads
    Upload,
}

/// What becomes of actions when the server is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// They run on this machine
    #[default]
    Local,
    /// They fail
    Never,
}

/// Whether blobs are compressed on their way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compress {
    /// If the server can, and is on another machine
    #[default]
    Auto,
    /// If the server can
    On,
    /// Never
    Off,
}

impl From<Compress> for Compression {
    fn from(compress: Compress) -> Self {
        match compress {
            Compress::Auto => Self::Auto,
            Compress::On => Self::On,
            Compress::Off => Self::Off,
        }
    }
}

/// A server, or that there is none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "UrlText")]
pub enum ChosenServer {
    /// None, no matter which server a source of lower precedence names.
    Nowhere,
    /// This one.
    At(Endpoint),
}

/// The text of a URL, which may hold a password by mistake, so that it is never shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct UrlText(String);

impl fmt::Debug for UrlText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("URL")
    }
}

impl FromStr for UrlText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<UrlText> for ChosenServer {
    type Error = String;

    fn try_from(UrlText(text): UrlText) -> Result<Self, String> {
        if text.is_empty() { Ok(Self::Nowhere) } else { endpoint(&text).map(Self::At) }
    }
}

/// A server by its URL, or why it is none.
pub fn endpoint(text: &str) -> Result<Endpoint, String> {
    Endpoint::parse(text).map_err(|error| match error {
        reapi::Error::Options { why, help, .. } => format!("{why}; {help}"),
        other => other.to_string(),
    })
}

/// A time with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_time(&text).map(Self)
    }
}

/// A time: `10s`, `90m`, `12h`. A number alone is refused: people would mean seconds by it, or days as for an age.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; a number with s, m, h or d is expected, such as 30s");
    if text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err(wrong());
    }
    parse_age(text).map_err(|_| wrong())
}

/// Platform properties, one a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(pub Vec<(String, String)>);

impl FromStr for Properties {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let property = |line: &str| match line.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err("NAME=VALUE is expected".to_owned()),
        };
        lines.map(property).collect::<Result<_, _>>().map(Self)
    }
}

/// Parses headers in lines of `name: value`. An error names the line, and does not show its content.
pub fn parse_headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let header = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
        let (name, value) = header
            .filter(|(name, _)| is_header_name(name))
            .ok_or_else(|| format!("line {} is no header; lines of `name: value` are expected", at + 1))?;
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    Ok(headers)
}

/// Whether this is a valid name of an HTTP header.
pub fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_time("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "30", "s", "-1s", "1.5m", "10 m", "soon"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn properties_and_headers_are_lines() {
        let properties = "OSFamily=linux\n\n image=a=b".parse::<Properties>().expect("properties");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(properties.0, [pair("OSFamily", "linux"), pair("image", "a=b")]);
        assert!("OSFamily".parse::<Properties>().is_err() && "=x".parse::<Properties>().is_err());
        let headers = parse_headers("Authorization: Bearer a:b\n\nx-key:v\n").expect("headers");
        assert_eq!(headers, [pair("authorization", "Bearer a:b"), pair("x-key", "v")]);
        for wrong in ["a: b\nBearer secret", ": secret", "a b: secret"] {
            let error = parse_headers(wrong).expect_err(wrong);
            assert!(error.starts_with("line ") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_url_is_not_shown() {
        let text: UrlText = "grpc://user:secret@example.org".parse().expect("any text");
        assert!(!format!("{text:?}").contains("secret"));
        let error = ChosenServer::try_from(text).expect_err("it names a user");
        assert!(error.contains("credential helper") && !error.contains("secret"), "{error}");
        assert_eq!("".parse::<UrlText>().map(ChosenServer::try_from), Ok(Ok(ChosenServer::Nowhere)));
    }
}
