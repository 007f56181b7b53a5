//! Whether a link has anything to do at all, answered from file states alone: no tool is run, no file is read.
//!
//! A successful link records the state of every file it read and of the program. The next run of the same command
//! with all of them untouched is done. Any doubt (a file changed while the link ran, one that cannot be looked at)
//! means that contents are compared instead.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use distlto_planner::front::{LinkCommand, in_search_path};
use distlto_planner::index::PlannedLink;
use distlto_planner::words::{Word, path_of};
use distlto_prepare::regular;
use distlto_prepare::write::{IoError, remove, write_if_changed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::state::Key;

const VERSION: u32 = 1;

/// Time stamps may stand still for this long while a file changes: Linux ticks at 100 Hz or faster.
const GRAIN: Duration = Duration::from_millis(20);

/// Waits until a change of any file that a command names would show in its time stamps, and returns the time then. A
/// build starts the link right after the last compilation, whose object could not be told from a later one otherwise.
pub fn settle(words: &[Word]) -> SystemTime {
    let age = words
        .par_iter()
        .with_min_len(64)
        .filter(|word| !word.starts_with(b"-"))
        .filter_map(|word| fs::metadata(path_of(word)).ok()?.modified().ok())
        .filter_map(|modified| SystemTime::now().duration_since(modified).ok())
        .min();
    if let Some(left) = age.and_then(|age| (GRAIN + GRAIN / 4).checked_sub(age)) {
        std::thread::sleep(left);
    }
    SystemTime::now()
}

/// The state of a file, by which a change shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    path: PathBuf,
    size: u64,
    modified: i128,
    changed: i128,
    inode: u64,
    device: u64,
}

impl FileState {
    /// Of a path that exists.
    pub fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Some(Self {
            path: path.to_owned(),
            size: found.size(),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
            changed: nanoseconds(found.ctime(), found.ctime_nsec()),
            inode: found.ino(),
            device: found.dev(),
        })
    }

    /// Whether the path still has this state.
    pub fn holds(&self) -> bool {
        Self::of(&self.path).as_ref() == Some(self)
    }

    fn is_older_than(&self, time: SystemTime) -> bool {
        let limit = (time - GRAIN).duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        self.modified < limit && self.changed < limit
    }
}

#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    key: String,
    files: Vec<FileState>,
    absent: Vec<PathBuf>,
}

fn place(directory: &str) -> PathBuf {
    PathBuf::from(format!("{directory}/last-link.json"))
}

/// Whether the last link in this directory was the same and nothing it read or wrote has changed.
pub fn is_unchanged(directory: &str, key: &Key) -> bool {
    let Some(record) =
        regular::read(&place(directory)).ok().and_then(|text| serde_json::from_slice::<Record>(&text).ok())
    else {
        return false;
    };
    record.version == VERSION
        && record.key == key.to_string()
        && record.files.par_iter().with_min_len(64).all(FileState::holds)
        && record.absent.par_iter().with_min_len(64).all(|path| !path.exists())
}

/// Records a successful link. Nothing is recorded if a file that it read is so young that it may have changed
/// after it was read, or if the command also compiles: what a source includes is not known here.
pub fn record(
    directory: &str,
    key: &Key,
    planned: &PlannedLink,
    link: &LinkCommand,
    started: SystemTime,
) -> Result<(), IoError> {
    let own = Path::new(directory);
    let plan = &planned.plan;
    let programs = [path_of(&link.linker[0]), PathBuf::from(&plan.backend[0])];
    let archives = plan.archives.iter().map(|archive| archive.path.as_std_path());
    let extra =
        plan.modules.iter().flat_map(|module| module.extra_inputs.iter().map(|path| path.as_std_path()));
    let named = plan.thin_link.inputs.iter().chain(&plan.link.inputs).map(|path| path.as_std_path());
    let mut paths: Vec<PathBuf> = named
        .chain(archives)
        .chain(extra)
        .filter(|path| !path.starts_with(own) || path.is_symlink())
        .map(Path::to_owned)
        .chain(programs.into_iter().filter_map(|program| match program.components().count() {
            1 => in_search_path(&program),
            _ => Some(program),
        }))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let place = place(directory);
    let states: Option<Vec<FileState>> =
        paths.par_iter().with_min_len(64).map(|path| FileState::of(path)).collect();
    let settled = states.filter(|states| {
        link.compilations.is_empty() && states.iter().all(|state| state.is_older_than(started))
    });
    let (Some(mut files), Some(output)) = (settled, FileState::of(plan.output.as_std_path())) else {
        return remove(&place);
    };
    files.push(output);
    let record = Record { version: VERSION, key: key.to_string(), files, absent: planned.absent.clone() };
    let text = serde_json::to_vec(&record).expect("paths were UTF-8 in the plan, the rest is numbers");
    write_if_changed(&place, &text).map(|_| ())
}
