//! The state directory of one link: its lock, what it is keyed by, and sweeping after a killed run.
//!
//! Knows nothing of plans.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_planner::clang::driver::find;
use distlto_planner::digests::Digest;
use distlto_planner::response;
use distlto_planner::state::Place;
pub use distlto_planner::state::directory;
use distlto_planner::words::Word;
use distlto_prepare::frame;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;

use distlto_executor::staging;
use distlto_executor::variables;

use super::error::LinkError;
use super::lock::{LockError, StateLock};
use super::options::LinkOptions;

/// Stands for a command with its response files' content, its environment and our own options.
pub type LinkKey = Digest;

/// The key of a link.
pub fn key(expanded: &[Word], options: &LinkOptions) -> LinkKey {
    let mut text = Vec::new();
    let mut add = |bytes: &[u8]| frame::push(&mut text, bytes);
    add(env!("CARGO_PKG_VERSION").as_bytes());
    let LinkOptions { compiler, backend_args, flags_from, two_step, stable_names, .. } = options;
    add(format!("{compiler:?} {backend_args:?} {flags_from:?} {two_step} {stable_names}").as_bytes());
    add(std::env::current_dir().unwrap_or_default().as_os_str().as_bytes());
    for (name, value) in variables::all().filter_map(|(name, value)| Some((name, value?))) {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    for word in expanded {
        add(word);
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
    fresh: bool,
    lock: StateLock,
}

impl LinkState {
    /// Takes the directory, and removes the temporaries of a run that was killed.
    pub fn open(directory: &str) -> Result<Self, LinkError> {
        let fresh = !Path::new(directory).exists();
        let lock = StateLock::take(directory)?;
        if lock.after_crash {
            sweep(Path::new(directory))?;
        }
        check_places(Path::new(directory))?;
        Ok(Self { directory: directory.to_owned(), fresh, lock })
    }

    /// Its path.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// Whether the run that had the directory last was killed.
    pub fn is_after_crash(&self) -> bool {
        self.lock.after_crash
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
