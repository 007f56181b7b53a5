//! The state directory of one link: its lock, its key, and sweeping after a killed run.
//!
//! Does not depend on plans.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use distlto_planner::clang::driver::find;
use distlto_planner::digests::Digest;
use distlto_planner::response;
use distlto_planner::state::Place;
use distlto_planner::words::{Word, path_of};
use distlto_prepare::frame::Framed;
use distlto_prepare::io_error::IoError;
use distlto_prepare::leftovers;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_prepare::regular;
use distlto_prepare::warning::warn;
use miette::Diagnostic;
use rustix::fs::statvfs;
use tempfile::TempDir;

use distlto_executor::variables::{self, Reader};

use super::error::LinkError;
use super::lock::StateLock;
use super::options::LinkOptions;
use crate::scratch::scratch;
use crate::store;

/// The digest of a command, the content of its response files, the loader's variables and our own options.
pub type LinkKey = Digest;

/// The key of a link.
pub fn key(expanded: &[Word], options: &LinkOptions) -> LinkKey {
    let mut framed = Framed::new("distlto command of a link 1");
    let mut add = |bytes: &[u8]| framed.add("", bytes);
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
            // Only the reader of a pipe knows its content, so the link's key never matches an earlier one.
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            add(&now.as_nanos().to_le_bytes());
        }
        // `-Wl,@FILE` reaches the linker as a response file of its own.
        for file in word.split(|&byte| byte == b',').filter(|part| part.starts_with(b"@")) {
            // The linker reports an unreadable file.
            let words = response::expand([file.to_vec()]).unwrap_or_default();
            words.iter().for_each(|word| add(word));
        }
    }
    framed.finish()
}

/// How COFF's linker names its output.
const OUT: &[u8] = b"/out:";

/// The output that a command seems to name, by the spellings that drivers and linkers share. Only for finding state
/// early: the linker's own line decides.
pub fn guess_output(expanded: &[Word]) -> Option<String> {
    let mut words = expanded.iter();
    let mut output = None;
    while let Some(word) = words.next() {
        if let Some(value) = word.get(OUT.len()..).filter(|_| word[..OUT.len()].eq_ignore_ascii_case(OUT)) {
            output = Some(value);
            continue;
        }
        let Some(known) = find(word) else { continue };
        let value = if known.takes_next { words.next()?.as_slice() } else { known.value };
        if known.option.canonical == "output" {
            output = Some(value);
        }
    }
    std::str::from_utf8(output?).ok().map(str::to_owned)
}

/// Whether an output is a device or a directory, or in a directory that does not exist. The linker reports errors.
pub fn is_special(output: &Path) -> bool {
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs::metadata(output).is_ok_and(|found| !found.is_file()) || parent.is_some_and(|parent| !parent.is_dir())
}

/// How long the record of a link is kept without a new run of that link.
pub const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time of this file is that of the last pruning.
const PRUNED: &str = "pruned";

/// So many bytes a link takes at least while it runs.
const ROOM: u64 = 32 << 20;

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
    /// Takes the directory, and removes the temporaries of a run that was killed. One that others could have prepared
    /// is an error, as far as `reach` says.
    pub fn open(directory: &str, reach: Reach) -> Result<Self, LinkError> {
        let fresh = !Path::new(directory).exists();
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

    /// The same for a run that needs no earlier state: where the directory cannot be used, it warns and takes a
    /// temporary one, as it does where there is none.
    pub fn open_or_scratch(directory: Option<&str>) -> Result<Self, LinkError> {
        let Some(directory) = directory else { return Self::scratch("") };
        let error = match Self::with_room(directory) {
            Err(error) if error.is_of_place() => error,
            opened => return opened,
        };
        let remedy = error.help().map_or_else(String::new, |help| format!("; {help}"));
        warn(format_args!("{error}{remedy}; nothing of this link is kept for the next one"));
        Self::scratch(directory)
    }

    /// Removes the records in a folder that no link has used for this long; returns how many.
    pub fn prune(folder: &Path, age: Duration) -> Result<usize, IoError> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            entries => entries.map_err(IoError::on("list", folder))?,
        };
        let mut removed = 0;
        for entry in entries {
            let directory = entry.map_err(IoError::on("list", folder))?.path();
            // The lock is written when a link begins and when it ends. A distributor has none.
            let used = fs::metadata(Place::Lock.path(&directory)).or_else(|_| fs::metadata(&directory));
            let used = used.ok().filter(|_| directory.is_dir()).and_then(|found| found.modified().ok());
            let is_old = used.is_some_and(|used| used.elapsed().is_ok_and(|passed| passed >= age));
            // One that is held is in use.
            if is_old && let Some(Ok(state)) = directory.to_str().map(|it| Self::open(it, Reach::Last)) {
                fs::remove_dir_all(&directory).map_err(IoError::on("remove", &directory))?;
                drop(state);
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// How many records of links a folder holds, and their bytes.
    pub fn held(folder: &Path) -> (usize, u64) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let records: Vec<_> = entries.filter(|place| place.is_dir()).collect();
        (records.len(), records.iter().map(|record| bytes_below(record)).sum())
    }

    /// The same with the usual age, once a day, for a folder of the store.
    fn prune_daily(folder: &Path) {
        let mark = folder.join(PRUNED);
        let is_recent = |mark: &Path| {
            let passed = fs::metadata(mark).and_then(|found| found.modified()).ok().map(|at| at.elapsed());
            passed.is_some_and(|passed| passed.is_ok_and(|passed| passed < DAY))
        };
        if folder.file_name().is_some_and(|name| name == store::LINKS) && !is_recent(&mark) {
            // A failure is for the next day, or for distlto cache prune.
            let _ = fs::write(&mark, "").map(|()| Self::prune(folder, KEPT));
        }
    }

    /// Takes a directory if its disk has room for a link.
    fn with_room(directory: &str) -> Result<Self, LinkError> {
        let state = Self::open(directory, Reach::Whole)?;
        let room = statvfs(directory).map_or(u64::MAX, |found| found.f_bavail.saturating_mul(found.f_frsize));
        if room < ROOM {
            return Err(IoError::on("write to", directory)(ErrorKind::StorageFull.into()).into());
        }
        if let Some(folder) = Path::new(directory).parent().filter(|_| state.fresh) {
            Self::prune_daily(folder);
        }
        Ok(state)
    }

    /// A temporary one in the place of this directory.
    fn scratch(directory: &str) -> Result<Self, LinkError> {
        let scratch = scratch("state")?;
        let own = Self::open(&scratch.path().to_string_lossy(), Reach::Last)?;
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

/// The files of a link. Others are folders, or only made for other commands.
const FILES: [Place; 9] = [
    Place::ActionLog,
    Place::Digests,
    Place::History,
    Place::LastLink,
    Place::LastOutputs,
    Place::LinkGraph,
    Place::Lock,
    Place::Modules,
    Place::Toolchain,
];

/// Refuses a directory that holds pipes, sockets or devices, or a directory in the place of a file, before anything is
/// done: none of its files is one, and no rename should replace somebody's.
fn check_places(directory: &Path) -> Result<(), IoError> {
    for entry in fs::read_dir(directory).map_err(IoError::on("list", directory))? {
        let entry = entry.map_err(IoError::on("list", directory))?;
        let known = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_dir() || kind.is_symlink());
        if !known {
            regular::check_place(&entry.path()).map_err(IoError::on("use", entry.path()))?;
        }
    }
    for place in FILES.map(|place| place.path(directory)) {
        regular::check_place(&place).map_err(IoError::on("use", &place))?;
    }
    Ok(())
}

/// The bytes of the files below a directory.
fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// Removes every temporary below a directory.
fn sweep(directory: &Path) -> Result<(), IoError> {
    leftovers::sweep(directory)?;
    for entry in fs::read_dir(directory).map_err(IoError::on("read", directory))? {
        let entry = entry.map_err(IoError::on("read", directory))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep(&entry.path())?;
        }
    }
    Ok(())
}
