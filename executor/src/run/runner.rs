//! The scheduling thread of a run: starts actions, takes their results, and reports to hooks and progress.
//!
//! Independent of the way an action runs (see `workers`) and of the reason why it is wanted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_prepare::limits::SystemLimit;
use distlto_prepare::warning;

use super::arrivals::{self, Incoming};
use super::event::Event;
use super::exhaustion;
use super::machine_share::MachineShare;
use super::options::{Hooks, Made, Need, RunOptions};
use super::workers::{Task, Workers};
use crate::attempt::JobAttempt;
use crate::cause::Cause;
use crate::execute::remote::engine::Engine;
use crate::job::{self, Job};
use crate::schedule::estimate::Estimates;
use crate::schedule::memory::{self, Limit, Memory, System};
use crate::schedule::pools::Resource;
use crate::schedule::tokens::Tokens;
use crate::schedule::{Schedule, Site, Wait};
use distlto_record::progress::text::whole_lines;
use distlto_record::progress::{Plan, ProgressEvent, ProgressStep, SlotWait};
use distlto_record::report::{Failure, Measured, Origin, Outcome, microseconds};
use distlto_record::run::MemoryUse;

/// Interval between progress reports of actions on an engine.
const LOOK_THERE: Duration = Duration::from_millis(250);

/// The thread that schedules.
pub(super) struct RunLoop<'scope, 'env, 'g> {
    work: RunWork<'g>,
    options: &'g RunOptions<'g>,
    hooks: &'g dyn Hooks,
    workers: Workers<'scope, 'env>,
    tokens: Tokens,
    ended: BTreeMap<ActionId, Outcome>,
    /// The worker of each running action.
    lanes: BTreeMap<ActionId, usize>,
    memory: Memory,
    share: MachineShare,
    /// Those that were killed once.
    again: BTreeSet<ActionId>,
    /// The last reported plan.
    plan: Plan,
    /// The last reported memory.
    reported_memory: Option<MemoryUse>,
    /// The last reported wait for others.
    reported_wait: SlotWait,
    /// The most jobs at once: fewer than requested where the system could not start so many.
    slots: usize,
    /// Whether everything that takes processes besides the one job was given up.
    has_shrunk: bool,
}

/// The work of a run.
pub(super) struct RunWork<'g> {
    /// Grows if actions arrive.
    pub(super) graph: Cow<'g, ActionGraph>,
    pub(super) schedule: Schedule,
    pub(super) estimates: Estimates<'g>,
    /// Where actions arrive.
    pub(super) incoming: Incoming,
}

impl RunWork<'_> {
    /// Returns the plan for progress. Expected actions are assumed to cost as much as those that have arrived.
    pub(super) fn plan(&self, jobs: usize) -> Plan {
        let (actions, cost) = (self.schedule.len(), self.schedule.total_cost());
        let more = self.incoming.expected().saturating_sub(actions) as u64;
        let each = cost / (actions as u64).max(1);
        Plan {
            actions: actions.max(self.incoming.expected()),
            cost: cost.saturating_add(each.saturating_mul(more)),
            jobs: jobs.max(1),
        }
    }

    /// Takes in the actions that have arrived.
    fn admit(&mut self, options: &RunOptions<'_>) {
        if let Cow::Owned(graph) = &mut self.graph {
            for id in self.incoming.take(graph, options.progress) {
                self.estimates.add(graph, id, options.name);
                self.schedule.add(graph, id, self.estimates.weight(id));
            }
        }
    }

    /// Returns whether nothing runs and nothing will. `shuts` lets no more arrive.
    fn is_over(&self, shuts: bool) -> bool {
        self.schedule.is_finished() && self.incoming.is_over(shuts)
    }
}

/// Actions just given to workers.
#[derive(Default)]
struct Started {
    actions: Vec<ActionId>,
    /// Time after which more may start without an action ending.
    look_again: Option<Duration>,
}

impl<'scope, 'env, 'g> RunLoop<'scope, 'env, 'g> {
    pub(super) fn new(
        work: RunWork<'g>,
        plan: Plan,
        options: &'g RunOptions<'g>,
        hooks: &'g dyn Hooks,
        workers: Workers<'scope, 'env>,
        tokens: Tokens,
    ) -> Self {
        Self {
            work,
            options,
            hooks,
            workers,
            tokens,
            memory: Memory::new(options.memory, System::real(), Instant::now()),
            share: MachineShare::new(options),
            plan,
            ended: BTreeMap::new(),
            lanes: BTreeMap::new(),
            again: BTreeSet::new(),
            reported_memory: None,
            reported_wait: SlotWait::default(),
            slots: options.jobs.max(1),
            has_shrunk: false,
        }
    }

    /// Runs everything, and waits until the workers have ended.
    pub(super) fn drive(mut self) -> (RunWork<'g>, BTreeMap<ActionId, Outcome>) {
        self.run();
        self.workers.end();
        (self.work, self.ended)
    }

    fn run(&mut self) {
        let mut ended = Vec::new();
        loop {
            self.work.admit(self.options);
            if self.hooks.asks() {
                ended.drain(..).for_each(|(action, attempt)| self.report_end(action, attempt));
            }
            // Idle workers get work before reports on ended and started actions.
            self.share.begin();
            let Started { actions, look_again } = self.start_what_may();
            self.share.end(&self.work.schedule);
            if let Some(engine) = self.options.engine {
                let left = if self.work.schedule.has_ready() { 0 } else { self.slots };
                engine.set_idle(left.saturating_sub(self.work.schedule.running_here()));
            }
            ended.drain(..).for_each(|(action, attempt)| self.report_end(action, attempt));
            for &action in &actions {
                let command = self.command_line(action);
                self.hooks.started(action);
                self.options.progress.report(ProgressEvent::Started(self.step(action, &command)));
            }
            self.work.schedule.abandoned().into_iter().for_each(|action| self.hooks.abandoned(action));
            let is_over = self.work.is_over(self.options.cancel.is_cancelled());
            self.report_plan();
            self.report_memory();
            self.report_wait();
            if is_over {
                return;
            }
            if let Some(engine) = self.options.engine {
                self.options.progress.report(ProgressEvent::UnderWay(engine.under_way()));
                for news in engine.news() {
                    self.options.progress.report(ProgressEvent::Printed(&warning::line(&news)));
                    self.options.progress.report(ProgressEvent::Warned(&news));
                }
            }
            // Actions on an engine make progress without one of them ending.
            let by_engine = self.options.engine.map(|_| LOOK_THERE);
            let by_arrivals = self.work.incoming.is_open().then_some(arrivals::LOOK);
            let look_again = look_again.into_iter().chain(by_engine).chain(by_arrivals).min();
            let events = &self.work.incoming.events;
            let event = match look_again {
                Some(after) => events.recv_timeout(after),
                None => events.recv().map_err(RecvTimeoutError::from),
            };
            // All that has happened meanwhile costs one look for actions that may start.
            let all: Vec<_> = event.into_iter().chain(events.try_iter()).collect();
            for event in all {
                match event {
                    Event::Ended { worker, action, attempt } => {
                        self.workers.idle.extend(worker);
                        ended.extend(self.settle(action, *attempt).map(|attempt| (action, attempt)));
                    }
                    Event::Token(answer) => self.tokens.take(answer),
                    Event::Arrived => {}
                }
            }
        }
    }

    /// Starts the actions that slots, tokens, memory and pressure allow.
    fn start_what_may(&mut self) -> Started {
        if self.options.cancel.is_cancelled() {
            self.work.schedule.stop();
        }
        let mut started = Started::default();
        loop {
            if let Some(wait) = self.wait() {
                // A token for an action without room would be kept from others.
                match wait {
                    Wait::For(Resource::Tokens) => self.tokens.ask(),
                    _ => self.tokens.give_back(self.work.schedule.running_here()),
                }
                return started;
            }
            let (action, site) = match self.take() {
                Ok(taken) => taken,
                Err(look_again) => {
                    self.tokens.give_back(self.work.schedule.running_here());
                    return Started { look_again, ..started };
                }
            };
            match if self.hooks.asks() { self.hooks.need(action) } else { Need::Run } {
                Need::Run => self.give(action, site, &mut started),
                Need::UpToDate => self.was_up_to_date(action),
                Need::Stop => {
                    self.work.schedule.stop();
                    self.work.schedule.done(action);
                    self.ended.insert(action, Outcome::NotStarted);
                    self.hooks.abandoned(action);
                }
            }
        }
    }

    /// Returns the reason why nothing can start at the moment, apart from memory.
    fn wait(&mut self) -> Option<Wait> {
        self.work.schedule.limit(Resource::Slots, self.slots as u64);
        self.work.schedule.limit(Resource::Tokens, self.tokens.allowed() as u64);
        self.work.schedule.limit(Resource::Memory, u64::MAX);
        let engine = self.options.engine.map_or(0, Engine::slots);
        self.work.schedule.limit(Resource::Engine, engine as u64);
        self.work.schedule.waits()
    }

    /// Returns the next action that memory allows, or the time until the next look: others may free memory without one
    /// of our actions ending.
    fn take(&mut self) -> Result<(ActionId, Site), Option<Duration>> {
        let now = Instant::now();
        if self.work.schedule.running_here() > 0 && self.memory.is_pressed(now) {
            // Actions elsewhere take no memory of this machine.
            self.work.schedule.limit(Resource::Slots, 0);
            return self.work.schedule.take().ok_or(Some(memory::LOOK_AGAIN));
        }
        self.share.take(&mut self.work.schedule, &mut self.memory, now).ok_or_else(|| {
            let by_itself = (self.options.memory == Limit::Available).then_some(memory::LOOK);
            self.share.look_again().into_iter().chain(by_itself).min()
        })
    }

    /// Gives an action to a worker.
    fn give(&mut self, action: ActionId, site: Site, started: &mut Started) {
        let worker = self.workers.take();
        // An action that this thread runs itself has no worker's number.
        self.lanes.insert(action, worker.unwrap_or(self.workers.all.len()));
        let estimate = Duration::from_micros(self.work.schedule.cost(action));
        let job = Job::of(&self.work.graph, action);
        self.workers.give(worker, Task { action, job, site, estimate });
        started.actions.push(action);
    }

    fn was_up_to_date(&mut self, action: ActionId) {
        let measured = Measured { origin: Origin::UpToDate, ..Measured::default() };
        self.work.schedule.done(action);
        self.options.progress.report(ProgressEvent::Finished(self.step(action, ""), measured, ""));
        self.ended.insert(action, Outcome::Done(measured));
    }

    /// Takes in the end of an action, as far as others wait for it. `None` when it is to run once more.
    fn settle(&mut self, action: ActionId, mut attempt: JobAttempt) -> Option<JobAttempt> {
        if let Err(cause @ Cause::NotOnEngine { .. }) = &attempt.result
            && self.work.schedule.again_here(action)
        {
            self.options.progress.report(ProgressEvent::CameBack(self.step(action, ""), &cause.to_string()));
            return None;
        }
        if let Some(limit) = exhaustion::of_system_limit(&mut attempt)
            && self.again_with_fewer(action, limit)
        {
            return None;
        }
        if let Some(executed) = &attempt.executed
            && let Some(worker) = &executed.worker
        {
            self.options.progress.report(ProgressEvent::ExecutedBy(
                self.step(action, ""),
                worker,
                executed.times,
            ));
        }
        if exhaustion::of_memory(&attempt) {
            let used = self.work.schedule.memory_used().saturating_add(self.share.memory_of_others());
            let killer = self.memory.killed(used);
            if self.work.schedule.again_alone(action) {
                self.again.insert(action);
                if let Err(cause) = &attempt.result {
                    self.options
                        .progress
                        .report(ProgressEvent::Again(self.step(action, ""), &cause.to_string()));
                }
                return None;
            }
            if self.again.contains(&action) {
                attempt.result = attempt.result.map_err(|cause| cause.twice(killer));
            }
        }
        match &attempt.result {
            Ok(()) => self.work.schedule.done(action),
            Err(_) => drop(self.work.schedule.failed(action)),
        }
        Some(attempt)
    }

    /// Retries an action that could not be started, when another one has ended. The last retry comes after workers and
    /// spare processes were given up. False if that did not help either.
    fn again_with_fewer(&mut self, action: ActionId, limit: SystemLimit) -> bool {
        let others = self.work.schedule.running_here().saturating_sub(1);
        if (others == 0 && self.has_shrunk) || !self.work.schedule.again(action) {
            return false;
        }
        if others == 0 {
            self.has_shrunk = true;
            self.workers.give_up();
        }
        self.slots = self.slots.min(others.max(1));
        self.options.progress.report(ProgressEvent::CameBack(self.step(action, ""), &limit.to_string()));
        self.options.progress.report(ProgressEvent::Noted(&format!(
            "{limit}: no more than {} at once from here on",
            self.slots
        )));
        true
    }

    /// Reports the end of an action to hooks and progress.
    fn report_end(&mut self, action: ActionId, attempt: JobAttempt) {
        let mut measured =
            attempt.executed.as_ref().map_or_else(Measured::default, |executed| executed.measured);
        measured.phases = attempt.phases;
        measured.origin = attempt.origin;
        measured.import_cpu = attempt.import_cpu;
        measured.spared_us = attempt.spared.and_then(|took| NonZeroU64::new(microseconds(took)));
        if let Some(key) = &attempt.key {
            self.options.progress.report(ProgressEvent::LookedUp(self.step(action, ""), key));
        }
        attempt.refused.iter().for_each(|text| self.options.progress.report(ProgressEvent::Retried(text)));
        let was_elsewhere = attempt.ran_elsewhere();
        let stderr = attempt.stderr;
        let outcome = match attempt.result {
            Ok(()) => {
                let ran_here = measured.origin == Origin::Ran && !was_elsewhere;
                if ran_here && self.work.estimates.measured(action, measured) {
                    let estimates = &self.work.estimates;
                    self.work.schedule.set_memory(|id| estimates.weight(id).memory);
                }
                let stderr = whole_lines(&stderr);
                let made = Made { measured, stderr: &stderr, undeclared: &attempt.undeclared };
                self.hooks.finished(action, &made);
                self.options.progress.report(ProgressEvent::Finished(
                    self.step(action, ""),
                    measured,
                    &stderr,
                ));
                Outcome::Done(measured)
            }
            Err(cause) => {
                let cause = cause.to_record();
                let mut failure = Box::new(Failure { cause, command: String::new(), measured, stderr });
                failure.command = match self.options.keep_failed {
                    Some(keep) if !failure.is_interruption() => keep(action),
                    _ => self.command_line(action),
                };
                if failure.is_interruption() {
                    self.hooks.abandoned(action);
                } else {
                    self.hooks.failed(action, &failure);
                    self.options.progress.report(ProgressEvent::Failed(self.step(action, ""), &failure));
                }
                Outcome::Failed(failure)
            }
        };
        self.lanes.remove(&action);
        self.ended.insert(action, outcome);
    }

    /// Reports the plan when it has changed.
    fn report_plan(&mut self) {
        let plan = self.work.plan(self.options.jobs);
        if self.plan != plan {
            self.plan = plan;
            self.options.progress.report(ProgressEvent::Grown(plan));
        }
    }

    /// Reports memory in use and budget when either has changed.
    fn report_memory(&mut self) {
        let others = self.share.memory_of_others();
        let budget = self.memory.last().map(|budget| budget.saturating_sub(others));
        let memory = MemoryUse { in_use: self.work.schedule.memory_used(), budget };
        if self.reported_memory != Some(memory) {
            self.reported_memory = Some(memory);
            self.options.progress.report(ProgressEvent::Memory(memory));
        }
    }

    /// Reports who holds the slots that actions wait for when that has changed.
    fn report_wait(&mut self) {
        let schedule = &self.work.schedule;
        let running = schedule.running_here();
        let slots = self.slots.saturating_sub(running).min(schedule.ready());
        let wait = |holders: &[u32]| SlotWait { slots, is_alone: running == 0, holders: holders.to_vec() };
        let wait = match self.share.waits_for() {
            _ if slots == 0 => SlotWait::default(),
            Some(holders) => wait(holders),
            None if self.tokens.is_waiting() => wait(&[]),
            None => SlotWait::default(),
        };
        if self.reported_wait != wait {
            self.options.progress.report(ProgressEvent::Waits(&wait));
            self.reported_wait = wait;
        }
    }

    fn command_line(&self, action: ActionId) -> String {
        match self.options.repeat {
            Some(repeat) => repeat(action),
            None => job::command_line(self.work.graph.command(action).into_iter(), self.options.directory),
        }
    }

    fn step<'s>(&'s self, id: ActionId, command: &'s str) -> ProgressStep<'s> {
        let action = self.work.graph.action(id);
        let lane = self.lanes.get(&id).copied().unwrap_or_default();
        ProgressStep {
            id: id.index(),
            kind: action.kind(),
            label: &action.label,
            cost: self.work.schedule.cost(id),
            lane,
            command,
        }
    }
}
