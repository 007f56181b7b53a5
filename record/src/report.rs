//! The result of a run: the outcome of every wanted action, and failures in a form that a person can act on.

pub mod engines;
pub mod summary;

use std::num::NonZeroU64;
use std::ops::Add;
use std::time::{Duration, Instant};

use distlto_planner::graph::ActionId;
use serde::{Deserialize, Serialize};

use crate::cause::{FailureCause, FailureKind};

/// The result of one run.
#[derive(Debug, Default)]
pub struct Report {
    /// Every wanted action, in the graph's order.
    pub outcomes: Vec<(ActionId, Outcome)>,
    /// From beginning to end.
    pub wall: Duration,
    /// The exit code to end with because the run was cancelled; `None` when it was not.
    pub cancelled: Option<u8>,
}

/// The outcome of one action.
#[derive(Debug)]
pub enum Outcome {
    /// It succeeded and its outputs are in place.
    Done(Measured),
    /// It failed; its earlier outputs are intact.
    Failed(Box<Failure>),
    /// It did not run because this action, which it needs, failed.
    Skipped(ActionId),
    /// It did not run because the run ended first.
    NotStarted,
}

/// The cost of an action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// From the start of its command to its end.
    pub wall: Duration,
    /// Processor time, if the system reports it.
    pub cpu: Option<Duration>,
    /// The most memory held at once, in bytes, if the system reports it.
    pub peak_memory: Option<u64>,
    /// Processor time of its import step, if that was performed to see whether it has to run.
    pub import_cpu: Option<Duration>,
    /// How long its command took when it made the outputs that a cache had, in microseconds, if that is known.
    pub spared_us: Option<NonZeroU64>,
    /// Where its outputs are from.
    pub origin: Origin,
    /// When each of its phases ran.
    pub phases: Phases,
}

/// Where an action's outputs are from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Its command ran.
    #[default]
    Ran,
    /// A cache had them.
    Cache,
    /// They were there, and the action's inputs turned out to be unchanged.
    UpToDate,
    /// They were there, made from the same code, though shard or imports changed.
    SameImports,
}

/// The phases of an action on its worker; `None` for a phase that it did not reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Its inputs were verified.
    pub verify: Option<Span>,
    /// The cache was asked.
    pub lookup: Option<Span>,
    /// Its command ran.
    pub command: Option<Span>,
    /// Its outputs were checked, stored and put into place.
    pub commit: Option<Span>,
}

/// From one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub start: Instant,
    /// Its end.
    pub end: Instant,
}

impl Span {
    /// From a moment until this call.
    pub fn since(start: Instant) -> Self {
        Self { start, end: Instant::now() }
    }
}

/// A duration as the record has it.
pub fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A failed action.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub cause: FailureCause,
    /// The command to repeat it, for a POSIX shell.
    pub command: String,
    /// Its cost until then.
    pub measured: Measured,
    /// The command's standard error, cut to a limit; empty when it never ran.
    pub stderr: String,
}

impl Failure {
    /// Whether the run ended while it ran.
    pub fn is_interruption(&self) -> bool {
        self.cause.kind == FailureKind::Interrupted
    }
}

impl Report {
    /// Whether every wanted action is done.
    pub fn is_success(&self) -> bool {
        self.outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Done(_)))
    }

    /// The failures, in the graph's order; interrupted actions are not among them.
    pub fn failures(&self) -> impl Iterator<Item = (ActionId, &Failure)> {
        self.outcomes.iter().filter_map(|(id, outcome)| match outcome {
            Outcome::Failed(failure) if !failure.is_interruption() => Some((*id, &**failure)),
            _ => None,
        })
    }

    /// How many actions ended in which way.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, outcome) in &self.outcomes {
            *match outcome {
                Outcome::Done(_) => &mut counts.done,
                Outcome::Failed(failure) if failure.is_interruption() => &mut counts.interrupted,
                Outcome::Failed(_) => &mut counts.failed,
                Outcome::Skipped(_) => &mut counts.skipped,
                Outcome::NotStarted => &mut counts.not_started,
            } += 1;
        }
        counts
    }

    /// The exit code to end with: 0, that of the signal that ended the run, or that of the first failure's class.
    pub fn exit_code(&self) -> u8 {
        match (self.cancelled, self.failures().next()) {
            (Some(code), _) => code,
            (None, Some((_, failure))) => distlto_prepare::exit::code_of(&failure.cause),
            (None, None) => u8::from(!self.is_success()),
        }
    }
}

/// Numbers of actions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Succeeded.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Ran when the run was interrupted.
    pub interrupted: usize,
    /// Need one that failed.
    pub skipped: usize,
    /// The run ended first.
    pub not_started: usize,
}

impl Counts {
    /// Those that are not done.
    pub fn unfinished(&self) -> usize {
        self.failed + self.interrupted + self.skipped + self.not_started
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            failed: self.failed + other.failed,
            interrupted: self.interrupted + other.interrupted,
            skipped: self.skipped + other.skipped,
            not_started: self.not_started + other.not_started,
        }
    }
}
