//! One action in the record of a run: why it ran or not, its times, its outputs, its result.
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
    /// Its kind.
    #[serde(with = "kind_name")]
    pub kind: ActionKind,
    /// The module's label, or the action's display name.
    pub label: String,
    /// Its part of the run's cost, by estimate; the unit is that of the graph.
    #[serde(default)]
    pub cost: u64,
    /// How it ended.
    pub result: ActionStatus,
    /// Why it had to run: the differences from its last known state. Empty if it did not have to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Change>,
    /// The key under which the state directory keeps its object, where it keeps objects by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The parts of that key, each as a short digest: `module`, `shard`, `imports`, `flags`, `compiler`, and files by
    /// name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// The answer of the result cache; absent without a lookup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheAnswer>,
    /// Its command as a line for a shell, once it was started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The thread of the run that saw to it, once it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<usize>,
    /// The remote worker that executed it, as the executor names it; absent for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// How long its way there and back took; absent for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineTimes>,
    /// When its start was reported, which may be a little after it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_us: Option<u64>,
    /// When its end was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_us: Option<u64>,
    /// When each of its phases ran.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phases: ActionPhases,
    /// Its times, its memory and the origin of its outputs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub took: ActionCost,
    /// The module, of a backend compilation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The index shard. It lists the imports by source module, with counts of instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// IR instructions of its module and of its imports, as far as they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// Its outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputRecord>,
    /// Warnings of its command: the standard error of a command that succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailedAction>,
    /// Why it was killed and started again, or the failed action for which it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionStatus {
    /// The run ended first.
    #[default]
    NotStarted,
    /// It runs; in a record that is written, it was interrupted.
    #[serde(rename = "interrupted")]
    Running,
    /// It succeeded.
    Done,
    /// It did not have to run: its recorded state was valid before the run began.
    Kept,
    /// It did not have to run: its dependencies wrote the same inputs that it read before.
    UpToDate,
    /// It did not have to run: its object was made from the same code, though shard or imports changed.
    SameImports,
    /// It failed.
    Failed,
    /// It was killed, and started again.
    Again,
    /// It was not started because an action that it needs failed.
    Skipped,
}

/// The answer of the result cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheAnswer {
    /// The key that stands for all that decides the result.
    pub key: String,
    /// Whether it had one.
    pub hit: bool,
}

/// The cost of an action: times, memory, and the origin of its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ActionCost {
    /// From the start of its command to its end.
    pub wall_us: u64,
    /// Processor time, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// Processor time of its import step, if that was performed to see whether it has to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import_cpu_us: Option<u64>,
    /// How long its command took when it made the outputs that were found, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared_us: Option<u64>,
    /// The most memory held at once, in bytes, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Where its outputs are from.
    pub origin: Origin,
}

/// How long an action on an engine spent in each stage, in microseconds.
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

/// The interval of each phase of an action, on its worker.
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
    /// Of its imports.
    pub imported: u64,
}

/// A file that an action writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// Its path.
    pub path: String,
    /// The digest of the file that an earlier run left, as `SHA-256/size`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The digest of the file since then, in the same form.
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
    /// The command's standard error, cut to a limit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

impl ActionRecord {
    /// Returns the record of an action that has not been started.
    pub fn new(id: usize, kind: ActionKind, label: &str, cost: u64) -> Self {
        Self {
            id,
            round: 0,
            kind,
            label: label.to_owned(),
            cost,
            result: ActionStatus::NotStarted,
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
            took: ActionCost::default(),
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

    /// Takes from another record the fields that are known before an action starts.
    pub(crate) fn complete(&mut self, known: Self) {
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

    /// Returns its interval on its worker until `now`; `None` if it was not started. The phases that the worker
    /// measured decide, or else the reported start and end.
    pub fn interval(&self, now: u64) -> Option<Interval> {
        let start = self.start_us?;
        let mut phases = self.phases.named().map(|(_, phase)| phase);
        Some(match phases.next() {
            None => Interval { start, end: self.end_us.unwrap_or(now) },
            Some(first) => Interval { start: first.start, end: phases.last().unwrap_or(first).end },
        })
    }

    /// Returns the microseconds of work on it until `now`. Leaves out the wait for a worker of an engine, and the gap
    /// between its phases if it came back from there.
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

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
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
        // The action came back from an engine and ran here later.
        let here = ActionPhases { command: interval(60, 80), ..action.phases };
        let action = ActionRecord { engine: None, phases: here, ..action };
        assert_eq!(action.worked_us(100), 22);
    }
}
