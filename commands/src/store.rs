//! The store of a user: objects, records of links, digests of compilers, and notes that are printed once.
//!
//! It lies in the user's own cache folder (XDG Base Directory Specification), unless `--cache`, `DISTLTO_CACHE`
//! or a configuration file names another place. There is none where neither these nor XDG_CACHE_HOME nor HOME name one, or where another user
//! could have prepared it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use distlto_planner::digests::Digest;
use distlto_planner::state;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_prepare::warning::warn;

/// The variable that names the store.
pub const VARIABLE: &str = "DISTLTO_CACHE";

/// The folder of the store that holds the records of links.
pub const LINKS: &str = "links-v1";

/// The folder for the records of links: `state`, if it is given, else that of the store. `cache` is the place of the
/// store, if one is named.
pub fn links(state: Option<&str>, cache: Option<&Path>) -> Option<String> {
    if let Some(state) = state.filter(|state| !state.is_empty()) {
        return Some(state.to_owned());
    }
    let named = cache.filter(|cache| !cache.as_os_str().is_empty());
    let root = if let Some(named) = named { named } else { own_cache()? };
    // Paths of a record's directory stand in the commands of backends.
    std::path::absolute(root.join(LINKS)).ok()?.into_os_string().into_string().ok()
}

/// The directory for the record of an output, which may also be named by the folder of its index.
pub fn record_of(named: &str, folder: &str) -> String {
    let output = named.trim_end_matches('/');
    state::directory(output.strip_suffix(state::SUFFIX).unwrap_or(output), folder)
}

/// The folder with an empty file for each note that was printed.
const SAID: &str = "said-v1";

/// The folder, made if missing.
pub fn own_cache() -> Option<&'static Path> {
    claimed().as_deref().ok()
}

/// Why there is no such folder, in words.
pub fn lack() -> &'static str {
    claimed().as_ref().err().map_or("", String::as_str)
}

fn claimed() -> &'static Result<PathBuf, String> {
    static PLACE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PLACE.get_or_init(|| match named() {
        Some(place) => claim(place),
        None => Err("neither HOME nor XDG_CACHE_HOME names a folder".to_owned()),
    })
}

fn named() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("distlto"))
}

/// The error is the reason against a place. It is a warning too, unless the folder cannot be made: daemons have a home that
/// does not exist.
fn claim(place: PathBuf) -> Result<PathBuf, String> {
    let Err(exposed) = private::claim(&place, Reach::Whole) else { return Ok(place) };
    let why = exposed.of(&place);
    if !matches!(exposed, Exposed::Unknown(_)) {
        warn(format_args!(
            "nothing is kept in {}: {why}; {}, or set XDG_CACHE_HOME to a folder of your own",
            place.display(),
            exposed.remedy()
        ));
    }
    Err(why)
}

/// Whether the user has not seen this note yet, as far as is recorded. It counts as seen from now on.
pub fn is_first(what: &str) -> bool {
    let Some(cache) = own_cache() else { return true };
    let folder = cache.join(SAID);
    let place = folder.join(Digest::of(what.as_bytes()).hex());
    // Of links that run at once, only one makes the file. If no file can be made, the note is printed again.
    let made = fs::create_dir_all(folder).and_then(|()| File::create_new(place));
    !made.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
}
