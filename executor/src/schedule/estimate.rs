//! Estimates each action's time and memory by a model of instructions that measurements correct.
//!
//! # Without measurements
//!
//! A backend compilation takes `start + cost * each`, in time and in memory, with the cost in IR instructions, own and
//! imported. The constants are those of the 232 modules of libgit2 at -O3 under clang 22. There processor time
//! correlates with the cost by 0.94 and memory by 0.71: 47 microseconds and 1.8 KB for each instruction, beside 9 ms
//! and 86 MiB. Most of the 86 MiB are pages of LLVM's libraries. A module without a known cost gets one from its size.
//!
//! # With measurements
//!
//! A module with a record of the same way of compiling is estimated by that record. The model adjusts it for a change
//! of cost. All other modules follow the model. Its constants are fitted to measurements of the same way of compiling,
//! from history and this run: once there are [`ENOUGH`], and again each time there are a quarter more. Memory is fitted
//! so that nineteen of twenty modules stay below, time to the middle.
//!
//! A *way of compiling* is the part of the command that modules share (compiler and flags).
//!
//! Memory is the system's resident size: pages that several processes share count for each of them, which errs towards
//! fewer processes. Independent of budgets and of running actions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use distlto_planner::digests::Digest;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind, PrefixId};

use crate::schedule::Weight;
use crate::schedule::history::{CompileKind, History, Record};
use distlto_record::report::{Measured, microseconds};

/// From this many measurements on, they decide.
pub const ENOUGH: usize = 8;

/// Bytes of bitcode for an instruction: 11.7 for libgit2's modules at -O3.
const BYTES_PER_INSTRUCTION: u64 = 12;

/// Guessed memory of a step other than a compilation, beside its inputs, in bytes.
const OTHER_STEP: u64 = 64 << 20;

/// Time and memory of a compilation by its cost. Times are microseconds, memory is bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Model {
    time: LinearModel,
    memory: LinearModel,
}

/// `start + cost * each`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LinearModel {
    start: f64,
    each: f64,
}

const MIB: f64 = 1_048_576.0;

const DEFAULT: Model = Model {
    time: LinearModel { start: 9_300.0, each: 47.0 },
    // The largest distance of a module above the fitted line is 9 MiB.
    memory: LinearModel { start: 95.0 * MIB, each: 1_800.0 },
};

/// How far the fitted rise for an instruction may be from [`DEFAULT`]'s: an unoptimised build, sanitizers and
/// debug information lie between.
const RANGE: f64 = 10.0;

impl LinearModel {
    fn at(self, cost: u64) -> u64 {
        // A float that does not fit saturates; not a number is 0.
        (self.start + self.each * cost as f64) as u64
    }

    /// Fits a line to points so that `share` of them do not lie above. Its rise stays near that of `like`, and equals
    /// it if all costs are equal.
    fn fitted(points: &[(u64, f64)], share: f64, like: Self) -> Self {
        let count = points.len() as f64;
        let mean_cost = points.iter().map(|&(cost, _)| cost as f64).sum::<f64>() / count;
        let mean = points.iter().map(|&(_, value)| value).sum::<f64>() / count;
        let spread = points.iter().map(|&(cost, _)| (cost as f64 - mean_cost).powi(2)).sum::<f64>();
        let together =
            points.iter().map(|&(cost, value)| (cost as f64 - mean_cost) * (value - mean)).sum::<f64>();
        let each = if spread > 0.0 { together / spread } else { like.each };
        let each = each.clamp(like.each / RANGE, like.each * RANGE);
        let mut starts: Vec<_> = points.iter().map(|&(cost, value)| value - each * cost as f64).collect();
        starts.sort_unstable_by(f64::total_cmp);
        // Within bounds, since there are points and the share is at most 1.
        let at = ((starts.len() - 1) as f64 * share).ceil() as usize;
        Self { start: starts[at].max(0.0), each }
    }
}

/// Measurements of one way of compiling, and the model that they make.
#[derive(Debug)]
struct Way {
    times: Vec<(u64, f64)>,
    memory: Vec<(u64, f64)>,
    model: Model,
    /// The model is made anew when there are this many measurements.
    next: usize,
}

impl Way {
    fn new<'r>(records: impl Iterator<Item = &'r Record>) -> Self {
        let mut way = Self { times: Vec::new(), memory: Vec::new(), model: DEFAULT, next: ENOUGH };
        for record in records {
            way.push(record.cost, record.cpu, record.memory);
        }
        way.fit();
        way
    }

    fn push(&mut self, cost: u64, time: Duration, memory: Option<u64>) {
        self.times.push((cost, time.as_secs_f64() * 1e6));
        self.memory.extend(memory.map(|memory| (cost, memory as f64)));
    }

    /// Makes the model anew if there are enough measurements; returns whether it did.
    fn fit(&mut self) -> bool {
        if self.times.len() < self.next {
            return false;
        }
        self.next = self.times.len() + self.times.len().div_ceil(4);
        self.model.time = LinearModel::fitted(&self.times, 0.5, DEFAULT.time);
        if self.memory.len() >= ENOUGH {
            self.model.memory = LinearModel::fitted(&self.memory, 0.95, DEFAULT.memory);
        }
        true
    }
}

/// The fixed data of an action.
#[derive(Debug)]
struct ActionFacts {
    kind: CompileKind,
    cost: u64,
    /// Its name in history.
    name: String,
    /// Inputs of a step other than a compilation; their size gives a guess of its memory.
    reads: Option<Vec<PathBuf>>,
}

/// The estimates of one run.
#[derive(Debug)]
pub struct Estimates<'a> {
    history: History,
    kinds: BTreeMap<(ActionKind, Option<PrefixId>), CompileKind>,
    ways: BTreeMap<CompileKind, Way>,
    /// The wanted ones.
    actions: BTreeMap<ActionId, ActionFacts>,
    directory: Option<&'a Path>,
}

impl<'a> Estimates<'a> {
    /// Estimates these actions. Paths of the graph are relative to `directory`. `name`, if there is one, removes
    /// from labels the parts that differ between equal links.
    pub fn new(
        graph: &ActionGraph,
        wanted: &[ActionId],
        history: History,
        directory: Option<&'a Path>,
        name: Option<&dyn Fn(&str) -> String>,
    ) -> Self {
        let (kinds, ways, actions) = Default::default();
        let mut estimates = Self { history, kinds, ways, actions, directory };
        wanted.iter().for_each(|&id| estimates.add(graph, id, name));
        estimates
    }

    /// Adds one more action; `name` as for [`Estimates::new`].
    pub fn add(&mut self, graph: &ActionGraph, id: ActionId, name: Option<&dyn Fn(&str) -> String>) {
        let action = graph.action(id);
        let kind = self.kinds.entry((action.kind(), action.prefix));
        let kind = *kind.or_insert_with(|| kind_of(graph, id));
        self.ways.entry(kind).or_insert_with(|| Way::new(self.history.of_kind(kind)));
        let place = |file| self.directory.unwrap_or(Path::new("")).join(graph.path(file));
        let cost = match (action.cost, action.backend()) {
            (0, Some(files)) => sizes(&[place(files.module)]) / BYTES_PER_INSTRUCTION,
            (cost, _) => cost,
        };
        let reads = (action.kind() != ActionKind::Opt).then(|| action.inputs().map(place).collect());
        let name = name.map_or_else(|| action.label.clone(), |name| name(&action.label));
        self.actions.insert(id, ActionFacts { kind, cost, name, reads });
    }

    /// Returns an action's estimate: microseconds and bytes.
    pub fn weight(&self, id: ActionId) -> Weight {
        let Some(&ActionFacts { kind, cost, ref name, ref reads }) = self.actions.get(&id) else {
            return Weight::default();
        };
        let record = self.history.get(kind, name);
        if let Some(reads) = reads {
            let time = record.map_or(1, |record| microseconds(record.cpu));
            let memory = record.and_then(|record| record.memory);
            let guess = || OTHER_STEP.saturating_add(sizes(reads));
            return Weight { time, memory: memory.unwrap_or_else(guess) };
        }
        let model = self.ways.get(&kind).map_or(DEFAULT, |way| way.model);
        let changed = |known: u64, line: LinearModel, then: u64| {
            (known.saturating_add(line.at(cost))).saturating_sub(line.at(then)).max(known / 4)
        };
        Weight {
            time: record.map_or_else(
                || model.time.at(cost),
                |record| changed(microseconds(record.cpu), model.time, record.cost),
            ),
            memory: record
                .and_then(|record| Some(changed(record.memory?, model.memory, record.cost)))
                .unwrap_or_else(|| model.memory.at(cost)),
        }
    }

    /// Takes in the measurement of an action; returns whether estimates of others have changed.
    pub fn measured(&mut self, id: ActionId, measured: Measured) -> bool {
        let Some(&ActionFacts { kind, cost, ref name, ref reads }) = self.actions.get(&id) else {
            return false;
        };
        self.history.add(kind, name, cost, measured);
        match self.ways.get_mut(&kind).filter(|_| reads.is_none()) {
            Some(way) => {
                way.push(cost, measured.cpu.unwrap_or(measured.wall), measured.peak_memory);
                way.fit()
            }
            None => false,
        }
    }

    /// Returns the history with the additions of this run.
    pub fn history(&self) -> &History {
        &self.history
    }
}

/// Names a way of compiling: the first eight bytes of the digest of its parts.
fn kind_of(graph: &ActionGraph, id: ActionId) -> CompileKind {
    let action = graph.action(id);
    let mut text = format!("{}\0", action.kind().name());
    let words: &[String] = match action.prefix {
        Some(prefix) => graph.prefix_words(prefix),
        None => action.args.get(..1).unwrap_or_default(),
    };
    for word in words {
        text.push_str(word);
        text.push('\0');
    }
    let digest = Digest::of(text.as_bytes()).to_string();
    digest.get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
}

/// Returns the total bytes of the existing files.
fn sizes(files: &[PathBuf]) -> u64 {
    let size = |file| std::fs::metadata(file).map_or(0, |found| found.len());
    files.iter().map(size).fold(0, u64::saturating_add)
}
