//! The two configuration files, `distlto.toml` of a checkout and the user's own: reads them strictly.
//!
//! Keys of options are on top and are checked by their options, in `options`. All else is in tables. An unknown key is an error
//! with its place, as is every other mistake. No error shows the value of a header. Does not decide which file has
//! precedence or is trusted.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::private::Exposed;
use distlto_prepare::regular;
use distlto_reapi::options::Headers;
use miette::Diagnostic;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer as TomlDeserializer};

use crate::remote::values::{
    CacheMode, ChosenServer, Compress, Fallback, Time, ToolchainPlace, endpoint, is_header_name,
};

/// The longest possible configuration, in bytes. A longer file is something else.
const LONGEST: u64 = 1 << 20;

/// Why the configuration cannot be used.
#[derive(Debug, Error, Diagnostic)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// A malformed file.
    #[error("{}:{line}:{column}: {what}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("`distlto config --help` lists the keys; with an empty DISTLTO_CONFIG no such file is read")
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// The mistake.
        what: String,
    },
    /// A file that is no configuration at all.
    #[error("{} is not read: {what}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("remove it or mend it; with an empty DISTLTO_CONFIG it is not read")
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// Credentials that would go nowhere.
    #[error("{}: [remote] has {keys}, which go to the servers that this file names, and it names none", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "name the server by url or cache in [remote], or put them into [credentials.\"HOST:PORT\"] of your own configuration"
        )
    )]
    Nowhere {
        /// The file.
        path: PathBuf,
        /// Its keys for credentials.
        keys: String,
    },
    /// The user's configuration can be changed by others.
    #[error("{} is not used: {}, and it may name programs for you to run", path.display(), exposed.of(path))]
    #[diagnostic(
        code(distlto::bad_input),
        help("{}; sudo -H takes root's own; with an empty DISTLTO_CONFIG it is not read", exposed.remedy())
    )]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// Who can.
        exposed: Exposed,
    },
    /// A checkout sets keys that only the user may set.
    #[error("{}: it sets {keys}, which a checkout may do only if you trust it", path.display())]
    #[diagnostic(code(distlto::bad_input), help("{help}"))]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The keys that it sets.
        keys: String,
        /// The remedy.
        help: String,
    },
    /// A server cannot be used as it is configured.
    #[error("{0}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("{}", .0.help().map_or_else(String::new, |help| help.to_string()))
    )]
    Server(Box<distlto_reapi::Error>),
    /// An option or variable has a wrong value.
    #[error("{option}: {why}")]
    #[diagnostic(code(distlto::usage), help("see docs/remote.md"))]
    Option {
        /// The option or variable.
        option: &'static str,
        /// The reason.
        why: String,
    },
}

/// A key of a file with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The name, with those of its tables: `jobs`, `remote.url`.
    pub name: String,
    /// The place of its value: the line and the character, from 1.
    pub place: (usize, usize),
    /// The value as a command line has it, several of an array; none of a table.
    pub values: Option<Vec<String>>,
}

/// The tables of a kind of file. All other keys are those of options.
pub trait Tables: DeserializeOwned {
    /// Their names.
    const NAMES: &'static [&'static str];
}

impl Tables for CheckoutFile {
    const NAMES: &'static [&'static str] = &["remote"];
}

impl Tables for UserFile {
    const NAMES: &'static [&'static str] = &["remote", "trusted", "credentials"];
}

/// `distlto.toml` of a checkout.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckoutFile {
    /// The table `[remote]`.
    pub remote: RemoteTable,
}

/// The user's own configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UserFile {
    /// The table `[remote]`.
    pub remote: RemoteTable,
    /// Folders with a `distlto.toml` that has the same rights as this file.
    pub trusted: Vec<PathBuf>,
    /// Credentials for one server each, no matter which source names the server.
    pub credentials: BTreeMap<Server, Access>,
}

/// The table `[remote]`. Each key is that of an option, `--remote-KEY`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct RemoteTable {
    /// `--remote`.
    pub url: Option<ChosenServer>,
    /// A server for results alone.
    pub cache: Option<ChosenServer>,
    /// Who fills it.
    pub cache_mode: Option<CacheMode>,
    /// The instance name.
    pub instance: Option<String>,
    /// Jobs at once.
    pub jobs: Option<NonZeroU16>,
    /// The required properties of a worker.
    pub platform: BTreeMap<String, String>,
    /// Where workers have the compiler from.
    pub toolchain: Option<ToolchainPlace>,
    /// The behaviour without the server.
    pub fallback: Option<Fallback>,
    /// Time in the queue.
    pub queue_time: Option<Time>,
    /// Time on a worker.
    pub run_time: Option<Time>,
    /// Time of retries.
    pub retry_time: Option<Time>,
    /// Time for uploads of results.
    pub upload_time: Option<Time>,
    /// Whether blobs are compressed.
    pub compression: Option<Compress>,
    /// A program that knows headers.
    pub credential_helper: Option<PathBuf>,
    /// Headers of every call.
    #[serde(deserialize_with = "headers")]
    pub headers: Headers,
    /// Certificates.
    pub tls: TlsFiles,
}

/// The credentials of the client, and the certificates that it trusts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct Access {
    /// A program that knows headers.
    pub credential_helper: Option<PathBuf>,
    /// Headers of every call.
    #[serde(deserialize_with = "headers")]
    pub headers: Headers,
    /// Certificates.
    pub tls: TlsFiles,
}

/// Files in PEM.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsFiles {
    /// Certificates of those who are trusted.
    pub ca: Option<PathBuf>,
    /// The client's certificate.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
}

/// Reads a table of headers.
fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Headers, D::Error> {
    // serde's message for a wrong type quotes the value.
    let wrong = || D::Error::custom("headers are strings by name, such as authorization = \"Bearer ...\"");
    let toml::Value::Table(table) = toml::Value::deserialize(deserializer)? else { return Err(wrong()) };
    let header = |(name, value): (String, toml::Value)| match value {
        toml::Value::String(value) if is_header_name(&name) => Ok((name.to_ascii_lowercase(), value)),
        _ => Err(wrong()),
    };
    table.into_iter().map(header).collect::<Result<_, _>>().map(Headers)
}

/// A server of `[credentials]`, as HTTP names it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Server(pub String);

impl TryFrom<String> for Server {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // Without a scheme it has TLS: nothing goes unencrypted unless the user asks for it.
        let has_scheme = text.contains("://") || text.starts_with("unix:");
        let url = if has_scheme { text } else { format!("grpcs://{text}") };
        endpoint(&url).map(|endpoint| Self(endpoint.uri().to_owned()))
    }
}

impl RemoteTable {
    /// Returns its credentials.
    pub fn access(&self) -> Access {
        let Self { credential_helper, headers, tls, .. } = self;
        Access { credential_helper: credential_helper.clone(), headers: headers.clone(), tls: tls.clone() }
    }

    /// The servers that it names.
    pub fn places(&self) -> impl Iterator<Item = &ChosenServer> {
        self.url.iter().chain(&self.cache)
    }
}

impl Access {
    /// The keys that it has.
    pub fn keys(&self) -> Vec<&'static str> {
        let Self { credential_helper, headers, tls: TlsFiles { ca, cert, key } } = self;
        let keys = [
            ("credential-helper", credential_helper.is_some()),
            ("headers", !headers.0.is_empty()),
            ("tls.ca", ca.is_some()),
            ("tls.cert", cert.is_some()),
            ("tls.key", key.is_some()),
        ];
        keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect()
    }

    /// Names files from where the configuration lies. A program without a slash is looked up as a shell does.
    pub fn resolve(mut self, file: &Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new(""));
        let TlsFiles { ca, cert, key } = &mut self.tls;
        let is_path = |program: &&mut PathBuf| program.components().count() > 1;
        let program = self.credential_helper.as_mut().filter(is_path);
        for path in [ca, cert, key].into_iter().flatten().chain(program) {
            *path = folder.join(&*path);
        }
        self
    }
}

/// The content of a file.
#[derive(Debug)]
pub struct Read<T> {
    /// Its tables.
    pub tables: T,
    /// All its keys, in the order of their names.
    pub keys: Vec<Key>,
    /// The file's metadata.
    pub metadata: Metadata,
}

/// Reads a file.
pub fn read<T: Tables>(path: &Path) -> Result<Read<T>, ConfigError> {
    let io = |source: io::Error| IoError::on("read", path)(source);
    let (file, metadata) = regular::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > LONGEST {
        let what = format!("it has more than {LONGEST} bytes, as no configuration has");
        return Err(ConfigError::Unfit { path: path.to_owned(), what });
    }
    let (tables, keys) = parse(path, &bytes)?;
    Ok(Read { tables, keys, metadata })
}

fn parse<T: Tables>(path: &Path, bytes: &[u8]) -> Result<(T, Vec<Key>), ConfigError> {
    let malformed = |at: usize, what: String| {
        let (line, column) = place(bytes, at);
        ConfigError::Malformed { path: path.to_owned(), line, column, what }
    };
    // The error's own rendering shows the line, which may hold a secret.
    let wrong = |error: toml::de::Error| {
        malformed(error.span().map_or(0, |span| span.start), error.message().replace('\n', "; "))
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| malformed(error.valid_up_to(), "it is not UTF-8".to_owned()))?;
    let whole = DeTable::parse(text).map_err(wrong)?;
    let mut keys = Vec::new();
    collect("", whole.get_ref(), bytes, &mut keys);
    let span = whole.span();
    let mut tables = DeTable::new();
    for (key, value) in whole.into_inner() {
        if T::NAMES.contains(&key.get_ref().as_ref()) {
            tables.insert(key, value);
        }
    }
    let tables = TomlDeserializer::from(Spanned::new(span, tables));
    Ok((T::deserialize(tables).map_err(wrong)?, keys))
}

/// Lists the keys of a table and of those in it.
fn collect(above: &str, table: &DeTable<'_>, bytes: &[u8], keys: &mut Vec<Key>) {
    for (key, value) in table {
        let name = format!("{above}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(below) => {
                keys.push(Key { name: name.clone(), place: place(bytes, key.span().start), values: None });
                collect(&format!("{name}."), below, bytes, keys);
            }
            _ => {
                keys.push(Key { name, place: place(bytes, value.span().start), values: Some(values(value)) })
            }
        }
    }
}

fn values(value: &Spanned<DeValue<'_>>) -> Vec<String> {
    match value.get_ref() {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Integer(number) => vec![number.as_str().to_owned()],
        DeValue::Float(number) => vec![number.as_str().to_owned()],
        DeValue::Boolean(is_so) => vec![is_so.to_string()],
        DeValue::Datetime(time) => vec![time.to_string()],
        DeValue::Array(array) => array.iter().flat_map(values).collect(),
        DeValue::Table(_) => Vec::new(),
    }
}

/// The line and the character of a byte, from 1.
fn place(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = String::from_utf8_lossy(&bytes[..at.min(bytes.len())]);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match parse::<UserFile>(Path::new("config.toml"), text.as_bytes()) {
            Ok((file, _)) => panic!("{text:?} is taken for {file:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_wrong_has_a_place_and_no_secret() {
        for (text, place, words) in [
            ("[remote]\n url = 5", "2:8", "expected a string"),
            ("[remote]\nurl = \"grpc://a:secret@b\"", "2:7", "it names a user"),
            ("[remote]\nfetch = 1", "2:1", "unknown field `fetch`, expected one of `url`, `cache`"),
            ("[remote]\ncache-mode = \"rw\"", "2:14", "`read-write` or `read-only`"),
            ("[remote]\njobs = 0", "2:8", "nonzero"),
            ("[remote]\nqueue-time = \"10\"", "2:14", "`10` is no time"),
            ("[remote]\nqueue-time = 10", "2:14", "expected a string"),
            ("[remote.headers]\nx = 5432167", "1:1", "strings by name"),
            ("[remote]\nheaders = \"x: secret\"", "2:11", "strings by name"),
            ("[remote.headers]\nauthorization = Bearer secret", "2:17", ""),
            ("[remote.tls]\nca = 1", "2:6", "expected"),
            ("[credentials.\"a b\"]\n", "1:14", "not a URL"),
            ("[credentials.a]\nfoo = 1", "2:1", "unknown field `foo`"),
            ("[remote]\n\u{fc} = 1\n[remote]", "2:1", ""),
        ] {
            let error = refused(text);
            assert!(error.starts_with(&format!("config.toml:{place}: ")), "{text:?}: {error}");
            assert!(error.contains(words), "{text:?}: {error}");
            assert!(!error.contains("secret") && !error.contains("5432167"), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let error = parse::<UserFile>(Path::new("c"), b"[remote]\nurl = \"\xff").expect_err("not UTF-8");
        assert_eq!(error.to_string(), "c:2:8: it is not UTF-8");
    }

    #[test]
    fn odd_files_are_refused_or_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("distlto.toml");
        std::fs::write(&path, "").expect("written");
        assert!(read::<CheckoutFile>(&path).is_ok_and(|file| file.tables.remote.places().count() == 0));
        std::fs::write(&path, "#".repeat(LONGEST as usize + 1)).expect("written");
        let said = |path: &Path| read::<CheckoutFile>(path).map(drop).expect_err("odd").to_string();
        assert!(said(&path).contains("more than 1048576 bytes"), "{}", said(&path));
        assert!(said(folder.path()).contains("a directory"), "{}", said(folder.path()));
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("made");
        assert!(said(&pipe).contains("a named pipe"), "{}", said(&pipe));
    }

    #[test]
    fn headers_are_in_no_debug_output() {
        let (file, _): (UserFile, _) = parse(
            Path::new("c"),
            b"[remote.headers]\nX-Key = \"secret\"\n[credentials.h.headers]\nb = \"secret\"",
        )
        .expect("well-formed");
        assert_eq!(file.remote.headers.0, [("x-key".to_owned(), "secret".to_owned())]);
        let shown = format!("{file:?}");
        assert!(
            shown.contains("x-key") && shown.contains("https://h:443") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
