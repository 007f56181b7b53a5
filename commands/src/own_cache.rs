//! The user's own cache folder (XDG Base Directory Specification): digests of compilers without `--cache`, and notes that are
//! printed once.
//!
//! There is none where neither XDG_CACHE_HOME nor HOME names one, or where another user could have prepared it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use distlto_planner::digests::Digest;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_prepare::warning::warn;

/// Where an empty file stands for each thing that was said.
const SAID: &str = "said-v1";

/// The folder, made if missing.
pub fn own_cache() -> Option<&'static Path> {
    static PLACE: OnceLock<Option<PathBuf>> = OnceLock::new();
    PLACE.get_or_init(|| claimed(named()?)).as_deref()
}

fn named() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("distlto"))
}

fn claimed(place: PathBuf) -> Option<PathBuf> {
    match private::claim(&place, Reach::Whole) {
        Ok(()) => Some(place),
        // Daemons have a home that is not there.
        Err(Exposed::Unknown(_)) => None,
        Err(exposed) => {
            warn(format_args!(
                "nothing is remembered in {}: {}; {}, or set XDG_CACHE_HOME to a folder of your own",
                place.display(),
                exposed.of(&place),
                exposed.remedy()
            ));
            None
        }
    }
}

/// Whether this was not said to this user yet, as far as that is remembered. It counts as said from now on.
pub fn is_first(what: &str) -> bool {
    own_cache().is_none_or(|cache| is_first_in(cache, what))
}

fn is_first_in(cache: &Path, what: &str) -> bool {
    let folder = cache.join(SAID);
    let place = folder.join(Digest::of(what.as_bytes()).hex());
    // Of links that run at once one makes the file. What cannot be remembered is said again.
    let made = fs::create_dir_all(folder).and_then(|()| File::create_new(place));
    !made.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_said_once() {
        let cache = tempfile::tempdir().expect("a folder");
        let said = |what| is_first_in(cache.path(), what);
        assert_eq!(["a", "b", "a", "b"].map(said), [true, true, false, false]);
        assert!(is_first_in(Path::new("/dev/null"), "a"));
    }
}
