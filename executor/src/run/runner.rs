//! The thread of a run that schedules: starts what may start, takes what has ended, and tells hooks and progress.
//!
//! Knows nothing of how an action runs (see `workers`) and of why it is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use distlto_planner::graph::{ActionGraph, ActionId};
use jobserver::Acquired;

use super::workers::Workers;
use super::{Hooks, Need, Options, jobs, killed};
use crate::estimate::Estimates;
use crate::job::Attempt;
use crate::memory::{self, Limit, Memory};
use crate::process::Finished;
use crate::schedule::Schedule;
use crate::tokens::Tokens;
use distlto_record::progress::text::whole_lines;
use distlto_record::progress::{self, Step};
use distlto_record::report::{Failure, Measured, Origin, Outcome};

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
    pub(super) memory: Memory,
    pub(super) estimates: Estimates<'g>,
    /// Those that were killed once.
    pub(super) again: BTreeSet<ActionId>,
    /// What was said last of memory.
    pub(super) told: Option<progress::Memory>,
}

/// What has just been given to workers.
#[derive(Default)]
struct Started {
    actions: Vec<ActionId>,
    /// When more may start without an action ending.
    look_again: Option<Duration>,
}

impl Runner<'_, '_, '_> {
    pub(super) fn drive(&mut self, events: &Receiver<Event>) {
        let mut ended = None;
        loop {
            if self.hooks.asks()
                && let Some((action, attempt)) = ended.take()
            {
                self.tell_end(action, attempt);
            }
            // Whoever waits for work gets it before anybody is told what has ended and what starts.
            let Started { actions, look_again } = self.start_what_may();
            if let Some((action, attempt)) = ended.take() {
                self.tell_end(action, attempt);
            }
            for &action in &actions {
                let command = self.command_line(action);
                self.hooks.started(action);
                self.options.progress.start(self.step(action, &command));
            }
            self.tell_memory();
            if self.schedule.is_finished() {
                return;
            }
            let event = match look_again {
                Some(after) => events.recv_timeout(after),
                None => events.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Ended { worker, action, attempt }) => {
                    self.workers.idle.extend(worker);
                    ended = self.settle(action, *attempt).map(|attempt| (action, attempt));
                }
                Ok(Event::Token(answer)) => self.tokens.take(answer),
                Err(RecvTimeoutError::Timeout) => {}
                // Not reached: this thread holds a sender itself.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Starts what slots, tokens, memory and pressure let start.
    fn start_what_may(&mut self) -> Started {
        if self.options.cancel.is_cancelled() {
            self.schedule.stop();
        }
        let mut started = Started::default();
        let jobs = self.options.jobs.max(1);
        let mut has_room = true;
        while self.schedule.has_ready() && self.schedule.running() < jobs.min(self.tokens.allowed()) {
            let now = Instant::now();
            let (running, used) = (self.schedule.running(), self.schedule.memory_used());
            if running > 0 && self.memory.is_pressed(now) {
                started.look_again = Some(memory::LOOK_AGAIN);
                has_room = false;
                break;
            }
            let budget = self.memory.budget(now, used);
            let Some(action) = self.schedule.take(budget.unwrap_or(u64::MAX)) else {
                // What others free shows without one of ours ending.
                started.look_again = (self.options.memory == Limit::Available).then_some(memory::LOOK);
                has_room = false;
                break;
            };
            match if self.hooks.asks() { self.hooks.need(action) } else { Need::Run } {
                Need::Run => {}
                Need::UpToDate => {
                    self.was_up_to_date(action);
                    continue;
                }
                Need::Stop => {
                    self.schedule.stop();
                    self.schedule.done(action);
                    self.ended.insert(action, Outcome::NotStarted);
                    break;
                }
            }
            let worker = self.workers.take();
            // An action that this thread runs itself has no worker's number.
            self.lanes.insert(action, worker.unwrap_or(self.workers.all.len()));
            self.workers.give(worker, action);
            started.actions.push(action);
        }
        // A token for an action that has no room would be kept from others.
        if has_room && self.schedule.has_ready() && self.schedule.running() < jobs {
            self.tokens.ask();
        } else {
            self.tokens.give_back(self.schedule.running());
        }
        started
    }

    fn was_up_to_date(&mut self, action: ActionId) {
        let measured = Measured { origin: Origin::UpToDate, ..Measured::default() };
        self.schedule.done(action);
        self.options.progress.finish(self.step(action, ""), measured, "");
        self.ended.insert(action, Outcome::Done(measured));
    }

    /// Takes in how an action ended, as far as others wait for it. `None` when it is to run once more.
    fn settle(&mut self, action: ActionId, mut attempt: Attempt) -> Option<Attempt> {
        if killed::for_want_of_memory(&attempt) {
            let killer = self.memory.killed(self.schedule.memory_used());
            if self.schedule.again_alone(action) {
                self.again.insert(action);
                if let Err(cause) = &attempt.result {
                    self.options.progress.again(self.step(action, ""), &cause.to_string());
                }
                return None;
            }
            if self.again.contains(&action) {
                attempt.result = attempt.result.map_err(|cause| cause.twice(killer));
            }
        }
        match &attempt.result {
            Ok(()) => self.schedule.done(action),
            Err(_) => drop(self.schedule.failed(action)),
        }
        Some(attempt)
    }

    /// Tells hooks and progress how an action ended.
    fn tell_end(&mut self, action: ActionId, attempt: Attempt) {
        let mut measured = attempt.finished.as_ref().map_or_else(Measured::default, Finished::measured);
        measured.phases = attempt.phases;
        measured.origin = attempt.origin;
        if let Some(key) = &attempt.key {
            self.options.progress.asked(self.step(action, ""), key);
        }
        let stderr = attempt.stderr;
        let outcome = match attempt.result {
            Ok(()) => {
                if measured.origin == Origin::Ran && self.estimates.measured(action, measured) {
                    let estimates = &self.estimates;
                    self.schedule.set_memory(|id| estimates.weight(id).memory);
                }
                self.hooks.finished(action, measured);
                self.options.progress.finish(self.step(action, ""), measured, &whole_lines(&stderr));
                Outcome::Done(measured)
            }
            Err(cause) => {
                let command = self.command_line(action);
                let cause = cause.told();
                let failure = Box::new(Failure { cause, command, measured, stderr });
                if !failure.is_interruption() {
                    self.hooks.failed(action, &failure);
                    self.options.progress.fail(self.step(action, ""), &failure);
                }
                Outcome::Failed(failure)
            }
        };
        self.lanes.remove(&action);
        self.ended.insert(action, outcome);
    }

    /// Tells what is in use, when that or the budget has changed.
    fn tell_memory(&mut self) {
        let budget = self.memory.last();
        let memory = progress::Memory { in_use: self.schedule.memory_used(), budget };
        if self.told != Some(memory) {
            self.told = Some(memory);
            self.options.progress.memory(memory);
        }
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
            cost: self.schedule.cost(id),
            lane,
            command,
        }
    }
}
