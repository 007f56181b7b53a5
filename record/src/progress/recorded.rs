//! What has been told of a command so far: the one record that the bar, the lines, the summary and the trace are made
//! from.
//!
//! Pure: is told each event with its moment. Knows nothing of how it is shown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use distlto_planner::graph::ActionKind;
use miette::Diagnostic;

use super::{Memory, Phase, Plan, Step};
use crate::report::{Failure, Measured, Origin, Span};

/// A record that several listeners read.
pub type Shared = Arc<Mutex<Recorded>>;

/// Everything that was told.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// When the command began.
    pub begun: Instant,
    /// The run's plan, and when it began.
    pub plan: Option<(Plan, Instant)>,
    /// Whether the run that was planned last has ended.
    pub ended: bool,
    /// Actions in the order in which they were started.
    pub actions: Vec<Recording>,
    /// The places in `actions` of those that run.
    pub running: Vec<usize>,
    /// Parts of the command beside the run.
    pub phases: Vec<Phase>,
    /// How the estimated use of memory changed.
    pub memory: Vec<(Instant, Memory)>,
    /// Of the run.
    pub tally: Tally,
}

/// Numbers of a run, as they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ended, in whatever way.
    pub ended: usize,
    /// Of these, those whose outputs a cache had.
    pub hits: usize,
    /// Of these, those that turned out to be up to date.
    pub up_to_date: usize,
    /// Of these, those that failed.
    pub failed: usize,
    /// The costs of all that ended.
    pub cost: u64,
    /// How long workers were busy with all that ended.
    pub busy: Duration,
    /// The costs of those whose command ran, and how long they took, for the relation of both.
    pub measured_cost: u64,
    /// See `measured_cost`.
    pub measured_wall: Duration,
}

/// One action that was started.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its number in the graph.
    pub id: usize,
    /// What it is for.
    pub kind: ActionKind,
    /// Its module or what a person calls it.
    pub label: String,
    /// Its part of [`Plan::cost`].
    pub cost: u64,
    /// Its worker.
    pub lane: usize,
    /// When its start was told, which may be a little after it started.
    pub start: Instant,
    /// When its end was told.
    pub end: Option<Instant>,
    /// How it went; that of a running or interrupted action until it ends.
    pub fate: Fate,
    /// What it cost.
    pub measured: Measured,
}

/// How an action went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It runs, or was interrupted.
    Running,
    /// It succeeded.
    Done,
    /// It failed, with the class of the failure.
    Failed(String),
    /// It was killed and is to run again.
    Again(String),
}

impl Recording {
    /// When it was on its worker: by its phases, which the worker has measured, or else as it was told.
    pub fn span(&self, now: Instant) -> Span {
        let end = self.end.unwrap_or(now);
        let mut phases = self.measured.phases.named().map(|(_, span)| span);
        match phases.next() {
            None => Span { start: self.start, end },
            Some(first) => Span { start: first.start, end: phases.last().unwrap_or(first).end },
        }
    }
}

impl Recorded {
    /// Nothing so far.
    pub fn new(begun: Instant) -> Self {
        Self {
            begun,
            plan: None,
            ended: false,
            actions: Vec::new(),
            running: Vec::new(),
            phases: Vec::new(),
            memory: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// For several listeners.
    pub fn shared(self) -> Shared {
        Arc::new(Mutex::new(self))
    }

    /// A run begins.
    pub fn plan(&mut self, plan: Plan, now: Instant) {
        self.plan = Some((plan, now));
        self.ended = false;
        self.running.clear();
        self.tally = Tally::default();
    }

    /// An action starts.
    pub fn start(&mut self, step: Step<'_>, now: Instant) {
        self.running.push(self.actions.len());
        self.actions.push(Recording {
            id: step.id,
            kind: step.kind,
            label: step.label.to_owned(),
            cost: step.cost,
            lane: step.lane,
            start: now,
            end: None,
            fate: Fate::Running,
            measured: Measured::default(),
        });
    }

    /// An action succeeded; one that turned out to be up to date was never started.
    pub fn finish(&mut self, step: Step<'_>, measured: Measured, now: Instant) {
        self.end(step, measured, Fate::Done, now);
        match measured.origin {
            Origin::Ran => {
                self.tally.measured_cost = self.tally.measured_cost.saturating_add(step.cost);
                self.tally.measured_wall += measured.wall;
            }
            Origin::Cache => self.tally.hits += 1,
            Origin::UpToDate => self.tally.up_to_date += 1,
        }
    }

    /// An action failed.
    pub fn fail(&mut self, step: Step<'_>, failure: &Failure, now: Instant) {
        let class =
            failure.cause.code().map_or_else(|| "distlto::failed".to_owned(), |code| code.to_string());
        self.end(step, failure.measured, Fate::Failed(class), now);
        self.tally.failed += 1;
    }

    /// An action is to start once more.
    pub fn again(&mut self, step: Step<'_>, cause: &str, now: Instant) {
        if let Some(action) = self.take(step) {
            action.end = Some(now);
            action.fate = Fate::Again(cause.to_owned());
        }
    }

    /// The run ended.
    pub fn summary(&mut self, now: Instant) {
        self.ended = true;
        for at in self.running.drain(..) {
            self.actions[at].end = Some(now);
        }
    }

    /// A phase begins or ends.
    pub fn phase(&mut self, phase: Phase) {
        let same = |known: &&mut Phase| known.name == phase.name && known.start == phase.start;
        match self.phases.iter_mut().find(same) {
            Some(known) => known.end = phase.end,
            None => self.phases.push(phase),
        }
    }

    /// Whether the beginning of a phase was told.
    pub fn is_known(&self, phase: Phase) -> bool {
        self.phases.iter().any(|known| known.name == phase.name && known.start == phase.start)
    }

    /// The use of memory changed.
    pub fn memory(&mut self, memory: Memory, now: Instant) {
        self.memory.push((now, memory));
    }

    fn end(&mut self, step: Step<'_>, measured: Measured, fate: Fate, now: Instant) {
        self.tally.ended += 1;
        self.tally.cost = self.tally.cost.saturating_add(step.cost);
        if let Some(action) = self.take(step) {
            action.end = Some(now);
            action.measured = measured;
            action.fate = fate;
            let span = action.span(now);
            self.tally.busy += span.end.saturating_duration_since(span.start);
        }
    }

    /// The recording of an action that runs, which it does no more.
    fn take(&mut self, step: Step<'_>) -> Option<&mut Recording> {
        let place = self.running.iter().position(|&at| self.actions[at].id == step.id)?;
        let at = self.running.remove(place);
        Some(&mut self.actions[at])
    }
}

/// Whoever panicked with a record in hand had at most one event half told.
pub(super) fn lock(shared: &Mutex<Recorded>) -> MutexGuard<'_, Recorded> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
