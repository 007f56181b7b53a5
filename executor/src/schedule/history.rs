//! The last measurements of compilations: a small file that makes the next run's estimates better.
//!
//! Lines of JSON ([`distlto_prepare::json_lines`]), one for a module: `[run, kind, cost, cpu, wall, memory, label]` with times
//! in microseconds and memory in bytes, null where it is not known. Lines with implausible values are ignored. An unusable
//! file counts as none: history never fails a run. Independent of the way estimates are made.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{self, JsonLines};
use distlto_prepare::lock::{Lock, Locked, Patience};
use distlto_prepare::regular::Links;
use serde::{Deserialize, Serialize};

use distlto_record::report::{Measured, microseconds};

const HEADER: &str = "distlto history 2\n";

/// More modules than this are not kept; those that ran longest ago go first.
pub const MODULES: usize = 50_000;
/// Times and sizes beyond these are a damaged file's: a month, and 16 TiB.
const MOST_MICROSECONDS: u64 = 31 * 24 * 3600 * 1_000_000;
const MOST_BYTES: u64 = 1 << 44;
/// Time limit for another run that writes the same file.
const PATIENCE: Duration = Duration::from_secs(1);

/// The last measurement of one module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Number of the run that measured it; later runs have greater numbers.
    pub run: u64,
    /// The action's cost at the time, in instructions.
    pub cost: u64,
    /// Processor time; the time on the clock where the system does not report it.
    pub cpu: Duration,
    /// Time on the clock, from start to end.
    pub wall: Duration,
    /// The most memory held at once, in bytes.
    pub memory: Option<u64>,
}

/// Identifies a way of compiling: see [`crate::schedule::estimate`].
pub type CompileKind = u64;

/// A module compiled in one way.
type Key = (CompileKind, String);

/// The records of one file, and those that this run adds.
#[derive(Debug, Default)]
pub struct History {
    path: Option<PathBuf>,
    known: BTreeMap<Key, Record>,
    added: BTreeMap<Key, Record>,
    run: u64,
}

/// One line.
#[derive(Serialize, Deserialize)]
struct HistoryLine<'a>(u64, u64, u64, u64, u64, Option<u64>, std::borrow::Cow<'a, str>);

impl History {
    /// Reads a file, as far as it can be used; empty without a file.
    pub fn load(path: Option<&Path>) -> Self {
        let known = path.map(read).unwrap_or_default();
        let run = next_run(&known);
        Self { path: path.map(Path::to_owned), known, added: BTreeMap::new(), run }
    }

    /// Returns the record of a module that is compiled in this way.
    pub fn get(&self, kind: CompileKind, label: &str) -> Option<&Record> {
        // One key type for both maps; labels are short.
        self.known.get(&(kind, label.to_owned()))
    }

    /// All records of one way of compiling.
    pub fn of_kind(&self, kind: CompileKind) -> impl Iterator<Item = &Record> {
        self.known
            .range((kind, String::new())..)
            .take_while(move |((k, _), _)| *k == kind)
            .map(|(_, record)| record)
    }

    /// Adds a module's measurement. A known greater memory falls only halfway to the measured one: other processes
    /// change a compilation's memory, and too little is the worse estimate.
    pub fn add(&mut self, kind: CompileKind, label: &str, cost: u64, measured: Measured) {
        let key = (kind, label.to_owned());
        let before =
            self.known.get(&key).filter(|before| before.cost == cost).and_then(|before| before.memory);
        let memory = measured.peak_memory.map(|memory| match before {
            Some(before) if before > memory => memory + (before - memory) / 2,
            _ => memory,
        });
        let cpu = measured.cpu.unwrap_or(measured.wall);
        self.added.insert(key, Record { run: self.run, cost, cpu, wall: measured.wall, memory });
    }

    /// Adds the new records to the current contents of the file, atomically. Does nothing without a file or new
    /// records. Of two runs that save at the same moment, both are kept.
    pub fn save(&self) -> Result<(), IoError> {
        let Some(path) = self.path.as_deref().filter(|_| !self.added.is_empty()) else { return Ok(()) };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
        let _lock = alone(parent);
        let mut records = read(path);
        let run = next_run(&records);
        records.extend(self.added.iter().map(|(key, record)| (key.clone(), Record { run, ..*record })));
        JsonLines::new(path, HEADER).replace(&lines(records))
    }
}

/// Waits a little for another run's write. Without a lock one of two runs' records may be lost, no more.
fn alone(directory: &Path) -> Option<File> {
    let patience = Patience::AtMost(PATIENCE);
    let lock = Lock { guards: "writing a history in", place: directory, links: Links::Follow, patience };
    lock.hold().ok().filter(|(_, locked)| *locked == Locked::Held).map(|(directory, _)| directory)
}

fn next_run(records: &BTreeMap<Key, Record>) -> u64 {
    records.values().map(|record| record.run).max().map_or(0, |run| run.saturating_add(1))
}

fn read(path: &Path) -> BTreeMap<Key, Record> {
    JsonLines::new(path, HEADER).read().into_iter().filter_map(plausible).collect()
}

/// The record of a line, unless a damaged file has it.
fn plausible(line: HistoryLine<'static>) -> Option<(Key, Record)> {
    let HistoryLine(run, kind, cost, cpu, wall, memory, label) = line;
    let is_plausible = run < u64::MAX / 2
        && cpu.max(wall) <= MOST_MICROSECONDS
        && memory.is_none_or(|memory| (1..=MOST_BYTES).contains(&memory));
    let (cpu, wall) = (Duration::from_micros(cpu), Duration::from_micros(wall));
    is_plausible.then(|| ((kind, label.into_owned()), Record { run, cost, cpu, wall, memory }))
}

fn lines(mut records: BTreeMap<Key, Record>) -> Vec<String> {
    if records.len() > MODULES {
        let mut runs: Vec<_> = records.values().map(|record| record.run).collect();
        runs.sort_unstable();
        let oldest_kept = runs[runs.len() - MODULES];
        let mut surplus = records.len() - MODULES;
        records.retain(|_, record| {
            let drop = surplus > 0 && record.run <= oldest_kept;
            surplus -= usize::from(drop);
            !drop
        });
    }
    let line = |((kind, label), record): (&Key, &Record)| {
        let &Record { run, cost, cpu, wall, memory } = record;
        json_lines::line(&HistoryLine(
            run,
            *kind,
            cost,
            microseconds(cpu),
            microseconds(wall),
            memory,
            label.as_str().into(),
        ))
    };
    records.iter().map(line).collect()
}
