//! The thread of a run that schedules: starts what may start, takes what has ended, and tells hooks and progress.
//!
//! Knows nothing of how an action runs (see `workers`) and of why it is wanted.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver};

use distlto_planner::graph::{ActionGraph, ActionId};
use jobserver::Acquired;

use super::workers::Workers;
use super::{Hooks, Options, jobs};
use crate::capture::whole_lines;
use crate::job::{Attempt, Cause};
use crate::progress::Step;
use crate::report::{Failure, Measured, Outcome};
use crate::schedule::Schedule;
use crate::tokens::Tokens;

/// What workers and the jobserver tell the thread that schedules.
pub(super) enum Event {
    /// `worker` is `None` for an action that this thread ran itself.
    Ended {
        worker: Option<usize>,
        action: ActionId,
        attempt: Box<Attempt>,
    },
    Token(io::Result<Acquired>),
}

/// The thread that schedules.
pub(super) struct Runner<'scope, 'env, 'g> {
    pub(super) graph: &'g ActionGraph,
    pub(super) options: &'g Options<'g>,
    pub(super) hooks: &'g dyn Hooks,
    pub(super) schedule: Schedule<'g>,
    pub(super) workers: Workers<'scope, 'env>,
    pub(super) tokens: Tokens,
    pub(super) ended: BTreeMap<ActionId, Outcome>,
    /// The worker of each running action.
    pub(super) lanes: BTreeMap<ActionId, usize>,
}

impl Runner<'_, '_, '_> {
    pub(super) fn drive(&mut self, events: &Receiver<Event>) {
        loop {
            self.start_what_may();
            if self.schedule.is_finished() {
                return;
            }
            match events.recv() {
                Ok(Event::Ended { worker, action, attempt }) => {
                    self.workers.idle.extend(worker);
                    self.end(action, *attempt);
                }
                Ok(Event::Token(answer)) => self.tokens.take(answer),
                // Not reached: this thread holds a sender itself.
                Err(mpsc::RecvError) => return,
            }
        }
    }

    fn start_what_may(&mut self) {
        if self.options.cancel.is_cancelled() {
            self.schedule.stop();
        }
        let jobs = self.options.jobs.max(1);
        while self.schedule.running() < jobs.min(self.tokens.allowed()) {
            let Some(action) = self.schedule.take() else { break };
            let command = self.command_line(action);
            self.hooks.before(action);
            let worker = self.workers.take();
            // An action that this thread runs itself has no worker's number.
            self.lanes.insert(action, worker.unwrap_or(self.workers.all.len()));
            self.options.progress.start(self.step(action, &command));
            self.workers.give(worker, action);
        }
        if self.schedule.has_ready() && self.schedule.running() < jobs {
            self.tokens.ask();
        } else {
            self.tokens.give_back(self.schedule.running());
        }
    }

    fn end(&mut self, action: ActionId, attempt: Attempt) {
        let mut measured = attempt
            .finished
            .as_ref()
            .map_or_else(Measured::default, |finished| Measured::new(finished.wall, finished.ended));
        measured.phases = attempt.phases;
        measured.origin = attempt.origin;
        let stderr = attempt.finished.as_ref().map_or_else(String::new, |finished| finished.stderr.text());
        let outcome = match attempt.result {
            Ok(()) => {
                self.schedule.done(action);
                self.hooks.finished(action, measured);
                self.options.progress.finish(self.step(action, ""), measured, &whole_lines(&stderr));
                Outcome::Done(measured)
            }
            Err(cause) => {
                self.schedule.failed(action);
                let command = self.command_line(action);
                let failure = Box::new(Failure { cause, command, measured, stderr });
                if !matches!(failure.cause, Cause::Interrupted { .. }) {
                    self.hooks.failed(action, &failure);
                    self.options.progress.fail(self.step(action, ""), &failure);
                }
                Outcome::Failed(failure)
            }
        };
        self.lanes.remove(&action);
        self.ended.insert(action, outcome);
    }

    fn command_line(&self, action: ActionId) -> String {
        match self.options.repeat {
            Some(repeat) => repeat(action),
            None => jobs::job_of(self.graph, action, &[]).command_line(self.options.directory),
        }
    }

    fn step<'s>(&'s self, id: ActionId, command: &'s str) -> Step<'s> {
        let action = self.graph.action(id);
        let lane = self.lanes.get(&id).copied().unwrap_or_default();
        Step {
            id: id.index(),
            kind: action.kind,
            label: &action.label,
            cost: action.cost.max(1),
            lane,
            command,
        }
    }
}
