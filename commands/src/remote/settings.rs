//! The settings that apply: options and environment first, then the checkout's file, the user's, defaults.
//!
//! Credentials of options and environment go to every server that a trusted source names. Those of a file go to the
//! servers that it names, those in `[credentials]` to one server each. A server that only an untrusted checkout names
//! gets at most the last kind. One function of options and surroundings, which reads files and does nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use distlto_executor::execute::remote::engine::{ActionCacheSettings, EngineSettings};
use distlto_executor::variables::REMOTE_HEADERS;
use distlto_reapi as reapi;
use distlto_reapi::options::{CallerTool, CredentialHelper, Endpoint, Headers, Tls};

use super::args::RemoteArgs;
use super::values::{CacheMode, ChosenServer, Fallback, Properties, ToolchainPlace, UrlText, parse_headers};
use crate::configuration::file::{Access, ConfigError, RemoteTable, TlsFiles};
use crate::configuration::trust::{ConfigFiles, ConfigPlaces};

/// Which servers are used, and how.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The servers.
    pub engine: EngineSettings,
    /// Warnings for the user, a sentence each.
    pub notices: Vec<String>,
    /// A sentence for the first link of a checkout that alone names a server.
    pub announcement: Option<String>,
}

impl Settings {
    /// Whether there is any server.
    pub fn is_remote(&self) -> bool {
        self.engine.servers().next().is_some()
    }

    /// Reads certificates and keys, so that errors in them are found before a server is contacted.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.engine
            .servers()
            .try_for_each(|server| server.check().map_err(|error| ConfigError::Server(error.into())))
    }
}

impl RemoteArgs {
    /// Returns the settings by these options, the environment and the files that are found from the working directory.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        if self.no_remote {
            return Ok(Settings::default());
        }
        settings(self, &ConfigPlaces::of_process())
    }
}

/// Returns the settings that apply.
pub fn settings(args: &RemoteArgs, around: &ConfigPlaces) -> Result<Settings, ConfigError> {
    let mut files = ConfigFiles::read(around)?;
    let named = ChosenServers {
        url: place("--remote, DISTLTO_REMOTE", args.remote.as_ref())?,
        cache: place("--remote-cache, DISTLTO_REMOTE_CACHE", args.remote_cache.as_ref())?,
    };
    let caller = caller(args, around)?;
    let notices = std::mem::take(&mut files.notices);
    let sources = Sources { args, named, caller, files: &files, around };
    sources.check()?;
    sources.settings(notices)
}

/// The servers that options and variables name.
struct ChosenServers {
    url: Option<ChosenServer>,
    cache: Option<ChosenServer>,
}

impl ChosenServers {
    fn names(&self, endpoint: &Endpoint) -> bool {
        names(self.url.iter().chain(&self.cache), endpoint)
    }
}

fn names<'a>(mut places: impl Iterator<Item = &'a ChosenServer>, endpoint: &Endpoint) -> bool {
    places.any(|place| matches!(place, ChosenServer::At(named) if named == endpoint))
}

fn place(option: &'static str, text: Option<&UrlText>) -> Result<Option<ChosenServer>, ConfigError> {
    let place = text.cloned().map(ChosenServer::try_from).transpose();
    place.map_err(|why| ConfigError::Option { option, why })
}

/// Returns the credentials in options and variables.
fn caller(args: &RemoteArgs, around: &ConfigPlaces) -> Result<Access, ConfigError> {
    let wrong = |why| ConfigError::Option { option: REMOTE_HEADERS, why };
    let headers = match &around.headers {
        None => Vec::new(),
        Some(text) => {
            let text = text.to_str().ok_or_else(|| wrong("it is not UTF-8".to_owned()))?;
            parse_headers(text).map_err(wrong)?
        }
    };
    let (ca, cert) = (args.remote_tls_ca.clone(), args.remote_tls_cert.clone());
    let tls = TlsFiles { ca, cert, key: args.remote_tls_key.clone() };
    Ok(Access { credential_helper: args.remote_credential_helper.clone(), headers: Headers(headers), tls })
}

/// All sources of settings.
struct Sources<'a> {
    args: &'a RemoteArgs,
    named: ChosenServers,
    caller: Access,
    files: &'a ConfigFiles,
    around: &'a ConfigPlaces,
}

impl<'a> Sources<'a> {
    /// Files in the order in which they count.
    fn files(&self) -> impl Iterator<Item = (&'a Path, &'a RemoteTable)> + use<'a> {
        let checkout = self.files.checkout.iter().map(|found| (&*found.path, &found.file));
        checkout.chain(self.files.user.iter().map(|found| (&*found.path, &found.file.remote)))
    }

    /// Returns the value with the highest precedence.
    fn first<T: Clone>(&self, own: Option<T>, of: impl Fn(&RemoteTable) -> Option<T>) -> Option<T> {
        own.or_else(|| self.files().find_map(|(_, remote)| of(remote)))
    }

    /// That credentials of files go somewhere, and that keys have certificates.
    fn check(&self) -> Result<(), ConfigError> {
        for (path, remote) in self.files() {
            let keys = remote.access().keys();
            if !keys.is_empty() && !remote.places().any(|place| matches!(place, ChosenServer::At(_))) {
                return Err(ConfigError::Nowhere { path: path.to_owned(), keys: keys.join(", ") });
            }
        }
        Ok(())
    }

    fn settings(&self, mut notices: Vec<String>) -> Result<Settings, ConfigError> {
        let at = |place| match place {
            Some(ChosenServer::At(endpoint)) => Some(endpoint),
            _ => None,
        };
        let url = at(self.first(self.named.url.clone(), |remote| remote.url.clone()));
        if let Some(server) = url.as_ref().filter(|server| server.is_http()) {
            let why = format!(
                "{server} speaks plain HTTP, so it is a cache that executes nothing: name it by --remote-cache"
            );
            return Err(ConfigError::Option { option: "--remote, DISTLTO_REMOTE or url in [remote]", why });
        }
        let cache = match self.first(self.named.cache.clone(), |remote| remote.cache.clone()) {
            None => url.clone(),
            place => at(place),
        };
        let execute = url.map(|endpoint| self.options(endpoint, &mut notices)).transpose()?;
        let mode = self.first(self.args.remote_cache_mode, |remote| remote.cache_mode).unwrap_or_default();
        let same = execute.as_ref().filter(|execute| cache.as_ref() == Some(&execute.endpoint));
        let cache = match (same, cache) {
            (Some(execute), _) => Some(execute.clone()),
            (None, Some(endpoint)) => Some(self.options(endpoint, &mut notices)?),
            (None, None) => None,
        };
        if let Some(bucket) = cache.as_ref().filter(|cache| cache.endpoint.bucket().is_some())
            && mode == CacheMode::ReadWrite
            && !self.around.s3.has_key()
        {
            notices.push(format!(
                "requests to {} have no signature, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set; \
                 --remote-cache-mode read-only reads what everybody may read",
                bucket.endpoint
            ));
        }
        let time = |own, of: fn(&RemoteTable) -> Option<super::values::Time>| {
            self.first(own, |remote| of(remote).map(|time| time.0))
        };
        let announcement = self.announcement(execute.as_ref(), cache.as_ref());
        let toolchain = self.first(self.args.remote_toolchain, |remote| remote.toolchain);
        let fallback = self.first(self.args.remote_fallback, |remote| remote.fallback);
        let default = EngineSettings::default();
        let engine = EngineSettings {
            execution: execute,
            cache: cache
                .map(|server| ActionCacheSettings { server, is_written: mode == CacheMode::ReadWrite }),
            slots: self
                .first(self.args.remote_jobs, |remote| remote.jobs)
                .map_or(default.slots, |jobs| jobs.get().into()),
            platform: self.platform(),
            queue_time: time(self.args.remote_queue_time, |remote| remote.queue_time)
                .unwrap_or(default.queue_time),
            run_time: time(self.args.remote_run_time, |remote| remote.run_time),
            upload_time: time(self.args.remote_upload_time, |remote| remote.upload_time)
                .unwrap_or(default.upload_time),
            ledger: None,
            uploads_toolchain: toolchain.unwrap_or_default() == ToolchainPlace::Upload,
            falls_back: fallback.unwrap_or_default() == Fallback::Local,
        };
        Ok(Settings { engine, notices, announcement })
    }

    /// Properties by name, each from the source that counts most.
    fn platform(&self) -> Vec<(String, String)> {
        let mut platform = BTreeMap::new();
        let own = self.args.remote_platform.iter().rev().flat_map(|Properties(pairs)| pairs.iter().rev());
        let own = own.map(|(name, value)| (name, value));
        for (name, value) in own.chain(self.files().flat_map(|(_, remote)| &remote.platform)) {
            platform.entry(name.clone()).or_insert_with(|| value.clone());
        }
        platform.into_iter().collect()
    }

    /// How a server is talked to.
    fn options(&self, endpoint: Endpoint, notices: &mut Vec<String>) -> Result<reapi::Options, ConfigError> {
        let access = self.access(&endpoint, notices);
        let tls = access.tls;
        let mut options = reapi::Options::of(endpoint);
        options.instance = self
            .first(self.args.remote_instance.clone(), |remote| remote.instance.clone())
            .unwrap_or_default();
        let retry = self.first(self.args.remote_retry_time, |remote| remote.retry_time.map(|time| time.0));
        options.give_up_after(retry.unwrap_or(options.retry_time));
        let compression = self.first(self.args.remote_compression, |remote| remote.compression);
        options.compression = compression.unwrap_or_default().into();
        options.headers = access.headers;
        options.credential_helper = access.credential_helper.map(CredentialHelper::new);
        options.s3 = match self.is_stranger(&options.endpoint) {
            true => self.around.s3.clone().without_key(),
            false => self.around.s3.clone(),
        };
        options.tls = Tls { authorities: tls.ca, identity: identity(tls.cert, tls.key)?, server_name: None };
        let (name, version) = ("distlto".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        options.tool = CallerTool { name, version, invocation: String::new() };
        let is_secret = !options.headers.0.is_empty() || options.credential_helper.is_some();
        if is_secret && !options.endpoint.has_tls() && !options.endpoint.is_local() {
            notices.push(format!(
                "headers go to {} without encryption: use grpcs:// if the server has TLS",
                options.endpoint
            ));
        }
        Ok(options)
    }

    /// The credentials for a server, of each kind those that count most.
    fn access(&self, endpoint: &Endpoint, notices: &mut Vec<String>) -> Access {
        let ConfigFiles { checkout, is_trusted, user, .. } = self.files;
        let names_it = |remote: &RemoteTable| names(remote.places(), endpoint);
        let by_user = user.as_ref().filter(|user| names_it(&user.file.remote));
        let by_checkout = checkout.as_ref().filter(|found| *is_trusted && names_it(&found.file));
        let is_stranger = self.is_stranger(endpoint);

        let mut access = Access::default();
        if is_stranger {
            // The user's list of trusted authorities is no secret.
            access.tls.ca.clone_from(&self.caller.tls.ca);
        } else {
            add(&mut access, self.caller.clone());
        }
        if let Some(found) = by_checkout {
            add(&mut access, found.file.access().resolve(&found.path));
        }
        let of_server = user.iter().flat_map(|user| user.file.credentials.iter().map(move |own| (user, own)));
        let mut of_server = of_server.filter(|(_, (server, _))| server.0 == endpoint.uri()).peekable();
        let has_own = of_server.peek().is_some();
        for (user, (_, own)) in of_server {
            add(&mut access, own.clone().resolve(&user.path));
        }
        if let Some(user) = by_user {
            add(&mut access, user.file.remote.access().resolve(&user.path));
        }
        if let Some(found) =
            checkout.as_ref().filter(|_| is_stranger && !has_own && self.has_secrets(endpoint))
        {
            let declared = ConfigFiles::declare(&found.path, self.around.user_file.as_deref());
            notices.push(format!(
                "{endpoint} is named by {} alone and gets none of your credentials: {declared}; \
                 [credentials.\"{endpoint}\"] gives it its own",
                found.path.display(),
            ));
        }
        access
    }

    /// Whether only an untrusted checkout names a server.
    fn is_stranger(&self, endpoint: &Endpoint) -> bool {
        let ConfigFiles { checkout, is_trusted, user, .. } = self.files;
        let user = user.iter().map(|user| &user.file.remote);
        let trusted = checkout.iter().filter(|_| *is_trusted).map(|found| &found.file);
        !self.named.names(endpoint) && !names(user.chain(trusted).flat_map(RemoteTable::places), endpoint)
    }

    fn announcement(
        &self,
        execute: Option<&reapi::Options>,
        cache: Option<&reapi::Options>,
    ) -> Option<String> {
        let stranger = |server: Option<&reapi::Options>| {
            server.map(|server| server.endpoint.clone()).filter(|endpoint| self.is_stranger(endpoint))
        };
        let does = match (stranger(execute), stranger(cache)) {
            (Some(server), _) => format!("has backends run at {server}"),
            (None, Some(server)) => format!("has objects looked up at {server}"),
            (None, None) => return None,
        };
        let checkout = self.files.checkout.as_ref()?.path.display();
        Some(format!("{checkout} {does}; --no-remote and an empty DISTLTO_REMOTE do without"))
    }

    /// Whether there are credentials that a server could be denied.
    fn has_secrets(&self, endpoint: &Endpoint) -> bool {
        let is_secret = |access: &Access| access.keys().iter().any(|key| *key != "tls.ca");
        let user = self.files.user.as_ref();
        let has_key = endpoint.bucket().is_some() && self.around.s3.has_key();
        has_key || is_secret(&self.caller) || user.is_some_and(|user| is_secret(&user.file.remote.access()))
    }
}

/// Adds the credentials that are missing.
fn add(access: &mut Access, other: Access) {
    let known = |headers: &Headers, name: &str| headers.0.iter().any(|(known, _)| known == name);
    let new: Vec<_> = other.headers.0.into_iter().filter(|(name, _)| !known(&access.headers, name)).collect();
    access.headers.0.extend(new);
    access.credential_helper = access.credential_helper.take().or(other.credential_helper);
    access.tls.ca = access.tls.ca.take().or(other.tls.ca);
    // A certificate goes with its own key.
    if access.tls.cert.is_none() && access.tls.key.is_none() {
        (access.tls.cert, access.tls.key) = (other.tls.cert, other.tls.key);
    }
}

/// A certificate and its key, which may be in one file.
fn identity(cert: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<(PathBuf, PathBuf)>, ConfigError> {
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (Some(cert), None) => Ok(Some((cert.clone(), cert))),
        (None, None) => Ok(None),
        (None, Some(_)) => {
            let (option, why) = ("--remote-tls-key", "there is a key, and no certificate with it".to_owned());
            Err(ConfigError::Option { option, why })
        }
    }
}

#[cfg(test)]
mod tests;
