//! What a run did: the outcome of every wanted action, and failures in a form that a person can act on.

use std::time::Duration;

use distlto_planner::graph::ActionId;

use crate::job::Cause;
use crate::process::Ended;

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

/// What became of one action.
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

/// What an action cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// From the start of its command to its end.
    pub wall: Duration,
    /// Processor time, where the system tells.
    pub cpu: Option<Duration>,
    /// The most memory held at once, in bytes, where the system tells.
    pub peak_memory: Option<u64>,
}

impl Measured {
    /// From what is known of a process that ended.
    pub fn new(wall: Duration, ended: Ended) -> Self {
        Self { wall, cpu: ended.cpu, peak_memory: ended.peak_memory }
    }
}

/// A failed action.
#[derive(Debug)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// The command to repeat it, for a POSIX shell.
    pub command: String,
    /// What the command printed on standard error, within bounds; empty when it never ran.
    pub stderr: String,
}

impl Report {
    /// Whether every wanted action is done.
    pub fn is_success(&self) -> bool {
        self.outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Done(_)))
    }

    /// The failures, in the graph's order; interrupted actions are not among them.
    pub fn failures(&self) -> impl Iterator<Item = (ActionId, &Failure)> {
        self.outcomes.iter().filter_map(|(id, outcome)| match outcome {
            Outcome::Failed(failure) if !matches!(failure.cause, Cause::Interrupted { .. }) => {
                Some((*id, &**failure))
            }
            _ => None,
        })
    }

    /// How many actions succeeded, failed or were interrupted, were skipped, and were not started.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, outcome) in &self.outcomes {
            *match outcome {
                Outcome::Done(_) => &mut counts.done,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Succeeded.
    pub done: usize,
    /// Failed, or were interrupted.
    pub failed: usize,
    /// Need one that failed.
    pub skipped: usize,
    /// The run ended first.
    pub not_started: usize,
}
