//! One action of a run as the record has it: why it ran or did not, what it took, what it wrote, how it ended.
//!
//! Plain values that serialise; `docs/run-record.md` describes them. All times are microseconds since the command began,
//! so that two records can be compared. Knows nothing of clocks.

use std::collections::BTreeMap;

use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use serde::{Deserialize, Serialize};

use crate::cause::FailureCause;
use crate::report::Origin;
use crate::why::Change;

/// One action; one that was killed and started again has a record for each start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// Its number in the action graph.
    pub id: usize,
    /// Which pass over the graph it belongs to: a graph that is written again by an action of its own is run again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round: u32,
    /// What it is for.
    #[serde(with = "kind_name")]
    pub kind: ActionKind,
    /// Its module or what a person calls it.
    pub label: String,
    /// Its part of the run's cost, by estimate; the unit is that of the graph.
    #[serde(default)]
    pub cost: u64,
    /// How it ended.
    pub result: Fate,
    /// Why it had to run: what differed from what was known of it. Empty for one that did not have to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Change>,
    /// The key under which the state directory keeps its object, where it keeps objects by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What that key is made of, each part by a short digest: `module`, `shard`, `imports`, `flags`, `compiler`, and files by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// What the cache of results said; absent where none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheAnswer>,
    /// Its command as a line for a shell, once it was started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The thread of the run that saw to it, once it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<usize>,
    /// What executed it elsewhere, as the executor calls it; absent for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// How long its way there and back took; absent for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineTimes>,
    /// When its start was told, which may be a little after it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_us: Option<u64>,
    /// When its end was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_us: Option<u64>,
    /// When it did what.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phases: ActionPhases,
    /// What it took.
    #[serde(default, skip_serializing_if = "is_default")]
    pub took: Took,
    /// The module, of a backend compilation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The index shard, which says what is imported from where, with counts of instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// IR instructions of its module and of what it imports, as far as they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// What it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputRecord>,
    /// What its command printed although it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailedAction>,
    /// Why it was killed and started again, or the action for whose failure it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The run ended first.
    #[default]
    NotStarted,
    /// It runs; in a record that is written, it was interrupted.
    #[serde(rename = "interrupted")]
    Running,
    /// It succeeded.
    Done,
    /// It did not have to run: what is known of it held before the run began.
    Kept,
    /// It did not have to run: what its dependencies wrote is what it read before.
    UpToDate,
    /// It did not have to run: what it compiles is what its object was made of, though shard or imports changed.
    SameImports,
    /// It failed.
    Failed,
    /// It was killed, and started again.
    Again,
    /// It was not started because an action that it needs failed.
    Skipped,
}

/// What the cache of results said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheAnswer {
    /// The key that stands for all that decides the result.
    pub key: String,
    /// Whether it had one.
    pub hit: bool,
}

/// What an action took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Took {
    /// From the start of its command to its end.
    pub wall_us: u64,
    /// Processor time, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Processor time of its import step, if that was performed to see whether it has to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_cpu_us: Option<u64>,
    /// The most memory held at once, in bytes, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Where its outputs are from.
    pub origin: Origin,
}

/// How long an action on an engine was at what, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EngineTimes {
    /// Its inputs were uploaded.
    pub uploading_us: u64,
    /// It waited for a worker.
    pub queued_us: u64,
    /// A worker had it.
    pub running_us: u64,
    /// Its outputs were downloaded.
    pub downloading_us: u64,
}

/// When an action did what, on its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActionPhases {
    /// Its inputs were verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Interval>,
    /// The cache was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<Interval>,
    /// Its command ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Interval>,
    /// Its outputs were checked, stored and put into place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Interval>,
}

/// From one moment to another, in microseconds since the command began; in JSON a list of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "(u64, u64)", into = "(u64, u64)")]
pub struct Interval {
    /// Its beginning.
    pub start: u64,
    /// Its end.
    pub end: u64,
}

/// IR instructions of a backend compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Instructions {
    /// Of the module itself.
    pub own: u64,
    /// Of what it imports.
    pub imported: u64,
}

/// A file that an action writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// Its path.
    pub path: String,
    /// What an earlier run left there, as `SHA-256/size`, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What it holds since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A failed or interrupted action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAction {
    /// Why.
    pub cause: FailureCause,
    /// The command to repeat it, for a POSIX shell.
    pub repeat: String,
    /// What the command printed on standard error, within bounds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

impl ActionRecord {
    /// An action that has not been started, of which this is known.
    pub fn new(id: usize, kind: ActionKind, label: &str, cost: u64) -> Self {
        Self {
            id,
            round: 0,
            kind,
            label: label.to_owned(),
            cost,
            result: Fate::NotStarted,
            why: Vec::new(),
            key: None,
            parts: BTreeMap::new(),
            cache: None,
            command: String::new(),
            lane: None,
            worker: None,
            engine: None,
            start_us: None,
            end_us: None,
            phases: ActionPhases::default(),
            took: Took::default(),
            module: None,
            shard: None,
            instructions: None,
            outputs: Vec::new(),
            warnings: String::new(),
            failure: None,
            because: None,
        }
    }

    /// An action of a graph, which has not been started.
    pub fn of(graph: &ActionGraph, id: ActionId) -> Self {
        let action = graph.action(id);
        let mut record = Self::new(id.index(), action.kind(), &action.label, action.cost);
        if let Some(backend) = action.backend() {
            record.module = Some(graph.path(backend.module).to_string());
            record.shard = Some(graph.path(backend.shard).to_string());
        }
        let output =
            |output| OutputRecord { path: graph.path(output).to_string(), before: None, after: None };
        record.outputs = action.outputs().map(output).collect();
        record
    }

    /// Takes in what another record says that is known before an action starts.
    pub(crate) fn learn(&mut self, known: Self) {
        self.why = known.why;
        self.key = known.key;
        self.parts = known.parts;
        self.module = known.module;
        self.shard = known.shard;
        self.instructions = known.instructions;
        self.outputs = known.outputs;
    }

    /// As it was before it was started.
    pub(crate) fn unstarted(&self) -> Self {
        Self {
            round: self.round,
            why: self.why.clone(),
            key: self.key.clone(),
            module: self.module.clone(),
            shard: self.shard.clone(),
            instructions: self.instructions,
            outputs: self.outputs.clone(),
            ..Self::new(self.id, self.kind, &self.label, self.cost)
        }
    }

    /// When it was on its worker until `now`: by its phases, which the worker has measured, or else as it was told;
    /// `None` for one that was not started.
    pub fn interval(&self, now: u64) -> Option<Interval> {
        let start = self.start_us?;
        let mut phases = self.phases.named().map(|(_, phase)| phase);
        Some(match phases.next() {
            None => Interval { start, end: self.end_us.unwrap_or(now) },
            Some(first) => Interval { start: first.start, end: phases.last().unwrap_or(first).end },
        })
    }

    /// Microseconds of work on it until `now`: what it waited for a worker of an engine, and what passed between its phases
    /// where it came back from there, is left out.
    pub fn worked_us(&self, now: u64) -> u64 {
        let all = self.interval(now).map_or(0, Interval::length);
        let phases = self.phases.named().map(|(_, phase)| phase.length()).reduce(|sum, one| sum + one);
        phases.unwrap_or(all).min(all).saturating_sub(self.engine.map_or(0, |times| times.queued_us))
    }
}

impl ActionPhases {
    /// The phases that there were, in order, each with its name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, Interval)> + use<> {
        let all = [
            ("verify", self.verify),
            ("cache lookup", self.lookup),
            ("command", self.command),
            ("commit", self.commit),
        ];
        all.into_iter().filter_map(|(name, phase)| Some((name, phase?)))
    }
}

impl Interval {
    /// How long it is, in microseconds.
    pub fn length(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

impl From<(u64, u64)> for Interval {
    fn from((start, end): (u64, u64)) -> Self {
        Self { start, end }
    }
}

impl From<Interval> for (u64, u64) {
    fn from(interval: Interval) -> Self {
        (interval.start, interval.end)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Kinds of actions by the names that they have in the graph.
mod kind_name {
    use distlto_planner::graph::ActionKind;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(kind: &ActionKind, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(kind.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ActionKind, D::Error> {
        let name = String::deserialize(from)?;
        ActionKind::from_name(&name).ok_or_else(|| D::Error::custom(format!("no kind of action: {name:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_an_engine_is_no_work() {
        let mut action = ActionRecord::new(0, ActionKind::Opt, "a.o", 1);
        assert_eq!(action.worked_us(100), 0, "not started");
        action.start_us = Some(10);
        assert_eq!(action.worked_us(100), 90, "under way");
        let interval = |start, end| Some(Interval { start, end });
        action.phases = ActionPhases { verify: interval(10, 12), command: interval(12, 80), ..action.phases };
        assert_eq!(action.worked_us(100), 70);
        action.engine = Some(EngineTimes { queued_us: 50, ..EngineTimes::default() });
        assert_eq!(action.worked_us(100), 20, "in a queue there");
        // What came back from an engine ran here later.
        let here = ActionPhases { command: interval(60, 80), ..action.phases };
        let action = ActionRecord { engine: None, phases: here, ..action };
        assert_eq!(action.worked_us(100), 22);
    }
}
