//! The state directory of one link: its lock, what it is keyed by, and sweeping after a killed run.
//!
//! Knows nothing of plans.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use distlto_planner::clang::driver::find;
use distlto_planner::digests::Digest;
use distlto_planner::response;
use distlto_planner::state::Place;
pub use distlto_planner::state::directory;
use distlto_planner::words::{Word, path_of};
use distlto_prepare::frame;
use distlto_prepare::io_error::IoError;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_prepare::regular;
use distlto_prepare::warning::warn;
use miette::Diagnostic;
use tempfile::TempDir;

use distlto_executor::staging;
use distlto_executor::variables::{self, Reader};

use super::error::LinkError;
use super::lock::{LockError, StateLock};
use super::options::LinkOptions;
use crate::scratch::scratch;

/// The digest of a command, the content of its response files, the loader's variables and our own options.
pub type LinkKey = Digest;

/// The key of a link.
pub fn key(expanded: &[Word], options: &LinkOptions) -> LinkKey {
    let mut text = Vec::new();
    let mut add = |bytes: &[u8]| frame::push(&mut text, bytes);
    add(env!("CARGO_PKG_VERSION").as_bytes());
    let LinkOptions { compiler, backend_args, flags_from, plain_shards, stable_names, .. } = options;
    add(format!("{compiler:?} {backend_args:?} {flags_from:?} {plain_shards} {stable_names}").as_bytes());
    add(std::env::current_dir().unwrap_or_default().as_os_str().as_bytes());
    // The hook sees the programs' own variables.
    for (name, value) in
        variables::read_by(&[Reader::Loader]).filter_map(|(name, value)| Some((name, value?)))
    {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    for word in expanded {
        add(word);
        if word.strip_prefix(b"@").is_some_and(|file| response::is_pipe(&path_of(file))) {
            // Nobody knows what it holds but who reads it.
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            add(&now.as_nanos().to_le_bytes());
        }
        // `-Wl,@FILE` reaches the linker as a response file of its own.
        for file in word.split(|&byte| byte == b',').filter(|part| part.starts_with(b"@")) {
            // One that cannot be read is what the linker will tell of.
            let words = response::expand([file.to_vec()]).unwrap_or_default();
            words.iter().for_each(|word| add(word));
        }
    }
    Digest::of(&text)
}

/// The output that a command seems to name, by the spellings that drivers and linkers share. Only for finding state
/// early: the linker's own line decides.
pub fn guess_output(expanded: &[Word]) -> Option<String> {
    let mut words = expanded.iter();
    let mut output = None;
    while let Some(word) = words.next() {
        let Some(known) = find(word) else { continue };
        let value = if known.takes_next { words.next()?.as_slice() } else { known.value };
        if known.option.canonical == "output" {
            output = Some(value);
        }
    }
    std::str::from_utf8(output?).ok().map(str::to_owned)
}

/// What modules took when they last ran.
pub fn history(directory: impl AsRef<Path>) -> PathBuf {
    Place::History.path(directory)
}

/// Whether an output is a device or a directory, or in a directory that does not exist: what to say of it is the linker's.
pub fn is_special(output: &Path) -> bool {
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs::metadata(output).is_ok_and(|found| !found.is_file()) || parent.is_some_and(|parent| !parent.is_dir())
}

impl From<LockError> for LinkError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Io(error) => Self::Io(error),
            LockError::Busy(error) => Self::Busy(error),
        }
    }
}

/// A state directory that is held; released when dropped.
#[derive(Debug)]
pub struct LinkState {
    directory: String,
    /// The directory that was asked for.
    place: String,
    fresh: bool,
    _lock: StateLock,
    /// Where it lies if it goes with the run.
    _scratch: Option<TempDir>,
}

impl LinkState {
    /// Takes the directory, and removes the temporaries of a run that was killed. One that others could have prepared is an
    /// error; `folder` is the one that holds the state of many links, if this directory lies there.
    pub fn open(directory: &str, folder: Option<&str>) -> Result<Self, LinkError> {
        let fresh = !Path::new(directory).exists();
        let reach = if folder.is_some_and(|folder| !folder.is_empty()) { Reach::Whole } else { Reach::Last };
        private::claim(Path::new(directory), reach).map_err(|exposed| match exposed {
            Exposed::Unknown(error) => LinkError::Io(error),
            exposed => LinkError::Exposed { directory: directory.into(), exposed },
        })?;
        let lock = StateLock::take(directory)?;
        if lock.after_crash {
            sweep(Path::new(directory))?;
        }
        check_places(Path::new(directory))?;
        let (directory, place) = (directory.to_owned(), directory.to_owned());
        Ok(Self { directory, place, fresh, _lock: lock, _scratch: None })
    }

    /// The same for a run that needs no earlier state: where the directory cannot be used, it warns and takes a temporary one.
    pub fn open_or_scratch(directory: &str, folder: Option<&str>) -> Result<Self, LinkError> {
        let error = match Self::open(directory, folder) {
            Err(error) if error.is_of_others(Path::new(directory)) => error,
            opened => return opened,
        };
        let remedy = error.help().map_or_else(String::new, |help| format!("; {help}"));
        warn(format_args!("{error}{remedy}; nothing of this link is kept for the next one"));
        let scratch = scratch("state")?;
        let own = Self::open(&scratch.path().to_string_lossy(), None)?;
        Ok(Self { place: directory.to_owned(), _scratch: Some(scratch), fresh: true, ..own })
    }

    /// Whether it is that of the link with this directory.
    pub fn is_for(&self, directory: &str) -> bool {
        let real = |place: &str| fs::canonicalize(place).ok();
        self.place == directory || real(&self.place).is_some_and(|place| real(directory) == Some(place))
    }

    /// Its path.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Releases the directory of a link that needs none, and removes it if it was made for this run.
    pub fn discard(self) -> Result<(), LinkError> {
        if self.fresh { self.remove() } else { Ok(()) }
    }

    /// Releases the directory and removes it.
    pub fn remove(self) -> Result<(), LinkError> {
        Ok(fs::remove_dir_all(&self.directory).map_err(IoError::on("remove", &self.directory))?)
    }
}

/// Refuses a directory that holds pipes, sockets or devices, before anything is done: none of its files is one, and no
/// rename should replace somebody's.
fn check_places(directory: &Path) -> Result<(), IoError> {
    for entry in fs::read_dir(directory).map_err(IoError::on("list", directory))? {
        let entry = entry.map_err(IoError::on("list", directory))?;
        let known = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir() || kind.is_symlink());
        if !known {
            regular::check_place(&entry.path()).map_err(IoError::on("use", entry.path()))?;
        }
    }
    Ok(())
}

/// Removes every temporary below a directory.
fn sweep(directory: &Path) -> Result<(), IoError> {
    staging::sweep(directory)?;
    for entry in fs::read_dir(directory).map_err(IoError::on("read", directory))? {
        let entry = entry.map_err(IoError::on("read", directory))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_guessed_from_the_usual_spellings() {
        let guess = |line: &str| {
            guess_output(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(guess("clang a.o -o x"), Some("x".to_owned()));
        assert_eq!(guess("clang -ox a.o"), Some("x".to_owned()));
        assert_eq!(guess("ld.lld --output=x a.o"), Some("x".to_owned()));
        assert_eq!(guess("clang a.o"), None);
        assert_eq!(guess("clang a.o -o"), None);
    }
}
