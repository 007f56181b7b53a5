//! Which configuration files there are, and which of them may name programs, certificates and headers.
//!
//! The author of a checkout also wrote the file in it. So the file may say where work goes, and no more unless the
//! user's own configuration trusts its folder. It does not count at all where another user can have written it. Does
//! not depend on the use of the values.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use distlto_executor::variables::REMOTE_HEADERS;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_reapi::s3::S3Account;

use super::file::{self, CheckoutFile, ConfigError, Key, Read, RemoteTable, UserFile};

/// Options that a checkout may set although nobody trusts it: none names a file or a program, none relies on other people.
const HARMLESS: [&str; 12] = [
    "cache-age",
    "cache-size",
    "exact-names",
    "jobs",
    "json",
    "keep-going",
    "memory",
    "plain",
    "plain-shards",
    "quiet",
    "require",
    "verbose",
];

/// Names the user's file, in place of the one in the home folder. Empty: no file is read, that of a checkout neither.
pub const VARIABLE: &str = "DISTLTO_CONFIG";

/// The file of a checkout, found upwards from the working directory.
pub const NAME: &str = "distlto.toml";

/// Marks of a repository's folder or of the root of a build's workspace: Git, Mercurial and Jujutsu, Bazel, Buck2.
const MARKS: [&str; 8] =
    [".git", ".hg", ".jj", "MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel", ".buckconfig"];

/// The places of configuration.
#[derive(Clone)]
pub struct ConfigPlaces {
    /// The working directory, absolute; none if the files of checkouts are not read.
    pub directory: Option<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The user's own configuration, which need not be there.
    pub user_file: Option<PathBuf>,
    /// The value of [`REMOTE_HEADERS`]: secret.
    pub headers: Option<OsString>,
    /// The account that AWS's variables describe: secret.
    pub s3: S3Account,
}

impl ConfigPlaces {
    /// Those of this process.
    pub fn of_process() -> Self {
        let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = set("HOME");
        let named = std::env::var_os(VARIABLE);
        let headers = std::env::var_os(REMOTE_HEADERS);
        let s3 = S3Account::of_variables(|name| std::env::var(name).ok());
        if named.as_ref().is_some_and(|named| named.is_empty()) {
            return Self { directory: None, home, user_file: None, headers, s3 };
        }
        let folder = set("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let user_file =
            named.map(PathBuf::from).or_else(|| folder.map(|folder| folder.join("distlto/config.toml")));
        // A directory that is gone holds no file.
        Self { directory: std::env::current_dir().ok(), home, user_file, headers, s3 }
    }
}

/// The content of a file, with its path.
#[derive(Debug)]
pub struct Sourced<T> {
    /// The file, with no symbolic link in its path.
    pub path: PathBuf,
    /// Its tables.
    pub file: T,
    /// All its keys.
    pub keys: Vec<Key>,
}

/// The files that there are.
#[derive(Debug, Default)]
pub struct ConfigFiles {
    /// That of the checkout.
    pub checkout: Option<Sourced<RemoteTable>>,
    /// Whether it has the same rights as the user's.
    pub is_trusted: bool,
    /// The user's own.
    pub user: Option<Sourced<UserFile>>,
    /// Warnings for the user.
    pub notices: Vec<String>,
}

impl ConfigFiles {
    /// Reads them.
    pub fn read(around: &ConfigPlaces) -> Result<Self, ConfigError> {
        let mut files = Self::default();
        if let Some(path) = around.user_file.as_deref().filter(|path| is_there(path)) {
            files.user = Some(user(path, &mut files.notices)?);
        }
        let trusted = files.user.as_ref().map_or(&[][..], |user| &user.file.trusted);
        for path in around.checkout_files() {
            let real = real(&path);
            files.is_trusted = is_below(&real, trusted);
            if !files.is_trusted
                && let Err(exposed) = check(&path)
            {
                let declared = Self::declare(&real, around.user_file.as_deref());
                let remedy = exposed.remedy();
                files.notices.push(format!(
                    "{} is passed over: {}; {remedy}, or {declared}",
                    path.display(),
                    exposed.of(&path)
                ));
                continue;
            }
            let Read { tables: CheckoutFile { remote }, keys, metadata } = file::read(&real)?;
            // Another user may have replaced it meanwhile.
            if !files.is_trusted {
                private::check_open(&real, &metadata).map_err(|exposed| unsafe_file(&real, exposed))?;
            }
            let checkout = Sourced { path: real, file: remote, keys };
            if !files.is_trusted {
                refuse(&checkout, around.user_file.as_deref())?;
            }
            files.checkout = Some(checkout);
            break;
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

impl ConfigPlaces {
    /// Existing files of checkouts, from the nearest one to that of the repository, or of the home folder.
    fn checkout_files(&self) -> impl Iterator<Item = PathBuf> + use<'_> {
        let home = self.home.as_deref().and_then(|home| home.canonicalize().ok());
        let mut is_done = false;
        let folders =
            self.directory.iter().flat_map(|directory| directory.ancestors()).take_while(move |folder| {
                let is_last =
                    home.as_deref() == Some(*folder) || MARKS.iter().any(|mark| is_there(&folder.join(mark)));
                !std::mem::replace(&mut is_done, is_last)
            });
        folders.map(|folder| folder.join(NAME)).filter(|path| is_there(path))
    }
}

/// Whether there is anything by this name, be it a dangling link. A file that cannot be examined, above a directory, is
/// not of its checkout.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns the file with its links followed. A dangling link is reported when it is read.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Checks that no other user can have written the file of a checkout, or have put it into its folder.
fn check(path: &Path) -> Result<(), Exposed> {
    private::check(path.parent().unwrap_or(path), Reach::Last)?;
    private::check(path, Reach::Last)
}

fn unsafe_file(path: &Path, exposed: Exposed) -> ConfigError {
    ConfigError::Unsafe { path: path.to_owned(), exposed }
}

fn user(place: &Path, notices: &mut Vec<String>) -> Result<Sourced<UserFile>, ConfigError> {
    let path = real(place);
    private::check(place, Reach::Whole).map_err(|exposed| unsafe_file(&path, exposed))?;
    let Read { tables: file, keys, metadata }: Read<UserFile> = file::read(&path)?;
    let has_headers = !file.remote.headers.0.is_empty()
        || file.credentials.values().any(|access| !access.headers.0.is_empty());
    if metadata.mode() & 0o044 != 0 && has_headers {
        notices.push(format!("{} holds headers, and others can read it: chmod 600", path.display()));
    }
    if let Some(relative) = file.trusted.iter().find(|folder| !folder.is_absolute()) {
        let what = format!("`trusted` names {}, which is no absolute path", relative.display());
        return Err(ConfigError::Unfit { path, what });
    }
    Ok(Sourced { path, file, keys })
}

/// Whether one of these folders holds the file.
fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| path.starts_with(folder))
}

/// Whether a checkout may set an option although nobody trusts it.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// Refuses a checkout's programs, headers and certificates.
fn refuse(checkout: &Sourced<RemoteTable>, user_file: Option<&Path>) -> Result<(), ConfigError> {
    let keys = checkout.file.access().keys();
    if keys.is_empty() {
        return Ok(());
    }
    let path = checkout.path.clone();
    let help = format!("{}; with an empty {VARIABLE} it is not read", ConfigFiles::declare(&path, user_file));
    Err(ConfigError::Untrusted { path, keys: keys.join(", "), help })
}
