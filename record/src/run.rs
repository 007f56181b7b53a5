//! The record of one run of a command: all that happened, as plain values that serialise.
//!
//! Progress, the summary, the trace and every report are functions of it; `docs/run-record.md` and its JSON Schema
//! describe the file. Times are relative to the command's beginning, so that two records can be compared. Knows nothing of
//! where it is kept (see `file`).

mod file;

pub use file::{FOLDER, KEPT, ReadError, list, read, write};

use std::collections::BTreeMap;
use std::ops::AddAssign;

use distlto_planner::graph::ActionKind;
use distlto_prepare::json_lines;
use serde::{Deserialize, Serialize};

use crate::action::{ActionRecord, ActionStatus, Interval, is_default};
use crate::cause::FailureCause;
use crate::report::Counts;

/// The version of the format; a reader refuses any other.
pub const VERSION: u32 = 1;

/// Samples of memory that a record keeps when it is written.
const SAMPLES: usize = 1000;

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`VERSION`].
    pub version: u32,
    /// When the command began, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The program and its version: `distlto 0.1.0`.
    pub program: String,
    /// Its process.
    pub process: u32,
    /// Its command line. Bytes that are not UTF-8 are replaced.
    pub command_line: Vec<String>,
    /// The name of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Where it ran.
    pub directory: String,
    /// Where the linker ran, if elsewhere: paths of the link are relative to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linker_directory: Option<String>,
    /// The state directory, relative to `directory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The linked file, or else the display name of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The linker and the compiler of the backends, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// The plan or graph that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphFile>,
    /// The most jobs at once; absent if nothing had to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
    /// How long the command took, in microseconds.
    pub wall_us: u64,
    /// Its exit code; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
    /// Why it ended early, besides the actions that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureCause>,
    /// Warnings, besides those that commands printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether promoted locals are named after their sources.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stable_names: bool,
    /// Why they have the linker's default names, where they were to be named after their sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_names: Option<String>,
    /// How many of the actions that were to run ended in which way.
    #[serde(default)]
    pub counts: Counts,
    /// Parts of the command beside the actions, such as the thin link, in the order in which they began.
    #[serde(default)]
    pub phases: Vec<PhaseRecord>,
    /// The traffic with engines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EngineUse>,
    /// The slots that others held while actions waited for them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waited: SlotWaits,
    /// How the estimated use of memory changed.
    #[serde(default)]
    pub memory: Vec<MemorySample>,
    /// Every action.
    #[serde(default)]
    pub actions: Vec<ActionRecord>,
}

/// A program that does the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its role: `linker` or `compiler`.
    pub role: String,
    /// As the command names it.
    pub name: String,
    /// Its identity among tools of its name: its file, the files it loads, the files it reads; a line each.
    #[serde(default)]
    pub identity: Vec<String>,
}

/// The file of the plan or graph that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphFile {
    /// A link plan or an action graph.
    pub file: String,
    /// The digest of its content, as `SHA-256/size`.
    pub digest: String,
}

/// A part of the command beside the actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// Its display name.
    pub name: String,
    /// When it began, in microseconds since the command did.
    pub start_us: u64,
    /// When it ended; absent if the command ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_us: Option<u64>,
}

/// The memory of the running actions, in bytes, by estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// The memory of the running actions.
    pub in_use: u64,
    /// Their limit together, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
}

/// The traffic with an engine, in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EngineUse {
    /// The server, without credentials.
    pub server: String,
    /// Bytes of blobs that were uploaded.
    pub bytes_up: u64,
    /// The same as they were sent: compressed ones count as they were sent, repeated ones each time.
    pub wire_up: u64,
    /// Blobs that were uploaded.
    pub blobs_up: u64,
    /// Bytes of blobs that were downloaded.
    pub bytes_down: u64,
    /// The same as they were received.
    pub wire_down: u64,
    /// Blobs that were downloaded.
    pub blobs_down: u64,
    /// Calls that were made again.
    pub retries: u64,
    /// Connections that were begun.
    pub connections: u64,
    /// Round trips by method, each attempt counted.
    pub calls: BTreeMap<String, u64>,
    /// How its cache served.
    #[serde(default)]
    pub lookups: Lookups,
}

/// Lookups in the cache of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lookups {
    /// Objects that were asked for.
    pub asked: u64,
    /// Those of them that it had.
    pub found: u64,
    /// The time in which at least one action waited for it, in microseconds.
    pub waited_us: u64,
    /// How long the backends of the found objects took when they ran, in microseconds.
    pub spared_us: u64,
}

impl AddAssign for Lookups {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.found += other.found;
        self.waited_us += other.waited_us;
        self.spared_us += other.spared_us;
    }
}

impl EngineUse {
    /// Round trips of every kind.
    pub fn round_trips(&self) -> u64 {
        self.calls.values().sum()
    }
}

/// How long slots were idle because others held what ready actions needed, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlotWaits {
    /// Beside running actions, for other runs on this machine; the sum over the slots.
    #[serde(default)]
    pub others_us: u64,
    /// The same for the tokens of make's jobserver.
    #[serde(default)]
    pub make_us: u64,
    /// With no action running.
    #[serde(default)]
    pub idle_us: u64,
}

/// The memory of the running actions at one moment, by estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySample {
    /// When, in microseconds since the command began.
    pub at_us: u64,
    /// In bytes.
    #[serde(flatten)]
    pub memory: MemoryUse,
}

impl RunRecord {
    /// A sentence that says why promoted locals have the linker's default names, if they could have others.
    pub fn default_names_note(&self) -> Option<String> {
        self.default_names.as_ref().map(|why| format!("locals have the linker's default names: {why}"))
    }

    /// The actions that were started.
    pub fn started(&self) -> impl Iterator<Item = &ActionRecord> {
        self.actions.iter().filter(|action| action.start_us.is_some())
    }

    /// The backend compilations that were started.
    pub fn backends(&self) -> impl Iterator<Item = &ActionRecord> {
        self.started().filter(|action| action.kind == ActionKind::Opt)
    }

    /// Those of them that ended with an object, made or found.
    pub fn done_backends(&self) -> impl Iterator<Item = &ActionRecord> {
        self.backends().filter(|action| action.result == ActionStatus::Done)
    }

    /// Returns how long at least one backend was on its worker, in microseconds.
    pub fn backends_us(&self) -> u64 {
        let mut intervals: Vec<Interval> =
            self.backends().filter_map(|action| action.interval(self.wall_us)).collect();
        intervals.sort_unstable_by_key(|interval| interval.start);
        let (mut all, mut until) = (0, 0);
        for Interval { start, end } in intervals {
            all = u64::saturating_add(all, end.saturating_sub(start.max(until)));
            until = until.max(end);
        }
        all
    }

    /// How many backends did not have to run when it showed that they import the same.
    pub fn same_imports(&self) -> usize {
        self.backends().filter(|action| action.result == ActionStatus::SameImports).count()
    }

    /// How many actions of the last pass over the graph turned out to be up to date.
    pub fn up_to_date(&self) -> usize {
        let last = self.actions.last().map(|action| action.round);
        let found = self.actions.iter().filter(|action| Some(action.round) == last);
        found.filter(|action| action.result == ActionStatus::UpToDate).count()
    }

    /// As bytes for a file, in one line.
    pub fn to_bytes(&self) -> Vec<u8> {
        json_lines::line(self).into_bytes()
    }

    /// Leaves no more samples of memory than a reader needs; the highest of each stretch stays.
    pub fn bound_samples(&mut self) {
        let stretch = self.memory.len().div_ceil(SAMPLES).max(1);
        let highest = self
            .memory
            .chunks(stretch)
            .filter_map(|samples| samples.iter().copied().max_by_key(|sample| sample.memory.in_use));
        self.memory = highest.collect();
    }
}
