//! Which configuration files there are, and which of them may name programs, certificates and headers.
//!
//! A file that lies in a checkout was written by whoever wrote the checkout: it may say where work goes, and no more unless
//! the user's own configuration trusts its folder. Knows nothing of what the values are used for.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use distlto_executor::variables::REMOTE_HEADERS;
use distlto_prepare::io_error::IoError;

use super::config::{self, CheckoutFile, ConfigError, RemoteTable, UserFile};

/// The file of a checkout, found upwards from the working directory.
pub const NAME: &str = "distlto.toml";

/// Where configuration is looked for.
#[derive(Clone)]
pub struct ConfigPlaces {
    /// The working directory, absolute.
    pub directory: PathBuf,
    /// The user's own configuration, which need not be there.
    pub user_file: Option<PathBuf>,
    /// What [`REMOTE_HEADERS`] holds: secret.
    pub headers: Option<OsString>,
}

impl ConfigPlaces {
    /// Those of this process.
    pub fn of_process() -> Result<Self, ConfigError> {
        let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        Ok(Self {
            directory: std::env::current_dir().map_err(IoError::on("find", "the working directory"))?,
            user_file: folder.map(|folder| folder.join("distlto/config.toml")),
            headers: std::env::var_os(REMOTE_HEADERS),
        })
    }
}

/// What a file says, and which file that is.
#[derive(Debug)]
pub struct Sourced<T> {
    /// The file, with no symbolic link in its path.
    pub path: PathBuf,
    /// What it says.
    pub file: T,
}

/// The files that there are.
#[derive(Debug, Default)]
pub struct ConfigFiles {
    /// That of the checkout.
    pub checkout: Option<Sourced<RemoteTable>>,
    /// Whether it may do what the user's may.
    pub is_trusted: bool,
    /// The user's own.
    pub user: Option<Sourced<UserFile>>,
    /// What the user is to hear.
    pub notices: Vec<String>,
}

impl ConfigFiles {
    /// Reads them.
    pub fn read(around: &ConfigPlaces) -> Result<Self, ConfigError> {
        let mut files = Self::default();
        if let Some(path) = around.user_file.as_deref().and_then(there) {
            files.user = Some(user(path, &mut files.notices)?);
        }
        if let Some(path) = around.directory.ancestors().find_map(|folder| there(&folder.join(NAME))) {
            let (CheckoutFile { remote }, _) = config::read(&path)?;
            let trusted = files.user.as_ref().map_or(&[][..], |user| &user.file.trusted);
            files.is_trusted = is_below(&path, trusted);
            let checkout = Sourced { path, file: remote };
            if !files.is_trusted {
                refuse(&checkout, around.user_file.as_deref())?;
            }
            files.checkout = Some(checkout);
        }
        Ok(files)
    }

    /// Where trust is declared, for messages.
    pub fn declare(checkout: &Path, user_file: Option<&Path>) -> String {
        let folder = checkout.parent().unwrap_or(checkout).display();
        let file = user_file.map_or_else(|| "~/.config/distlto/config.toml".into(), Path::to_string_lossy);
        format!("trusted = [\"{folder}\"] in {file} trusts that checkout")
    }
}

/// The file of this name with its links followed, if there is anything. What cannot be looked at above a directory is
/// nothing of its checkout's.
fn there(path: &Path) -> Option<PathBuf> {
    match path.symlink_metadata() {
        // A link that leads nowhere is told of when it is read.
        Ok(_) => Some(path.canonicalize().unwrap_or_else(|_| path.to_owned())),
        Err(_) => None,
    }
}

fn user(path: PathBuf, notices: &mut Vec<String>) -> Result<Sourced<UserFile>, ConfigError> {
    let (file, found): (UserFile, _) = config::read(&path)?;
    let own = rustix::process::geteuid().as_raw();
    let others = match found.mode() {
        _ if found.uid() != own && found.uid() != 0 => Some("it belongs to another user"),
        mode if mode & 0o002 != 0 => Some("all users can write it"),
        _ => None,
    };
    if let Some(why) = others {
        return Err(ConfigError::Unsafe { path, why });
    }
    let has_headers = !file.remote.headers.0.is_empty()
        || file.credentials.values().any(|access| !access.headers.0.is_empty());
    if found.mode() & 0o044 != 0 && has_headers {
        notices.push(format!("{} holds headers, and others can read it: chmod 600", path.display()));
    }
    if let Some(relative) = file.trusted.iter().find(|folder| !folder.is_absolute()) {
        let what = format!("`trusted` names {}, which is no absolute path", relative.display());
        return Err(ConfigError::Unfit { path, what });
    }
    Ok(Sourced { path, file })
}

/// Whether one of these folders holds the file.
fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| path.starts_with(folder))
}

/// Refuses what a checkout may not say.
fn refuse(checkout: &Sourced<RemoteTable>, user_file: Option<&Path>) -> Result<(), ConfigError> {
    let keys = checkout.file.access().keys();
    if keys.is_empty() {
        return Ok(());
    }
    let path = checkout.path.clone();
    let help = format!("{}; --no-remote does without it", ConfigFiles::declare(&path, user_file));
    Err(ConfigError::Untrusted { path, keys: keys.join(", "), help })
}
