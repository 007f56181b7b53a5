//! The record of a command while it lasts, and the numbers for a progress line.
//!
//! Takes each event with its moment, and turns moments into the times of the record. Pure; knows nothing of how it is
//! shown.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use distlto_planner::graph::ActionId;
use distlto_prepare::blobs;

use super::event::{Phase, Plan, ProgressEvent, ProgressStep, SlotWait, UnderWay};
use crate::action::{
    ActionCost, ActionPhases, ActionRecord, ActionStatus, CacheAnswer, FailedAction, Interval, OutputRecord,
};
use crate::report::{Failure, Measured, Origin, Outcome, Phases, Span, microseconds};
use crate::run::{MemorySample, PhaseRecord, RunRecord};
use crate::why::Change;

/// A record that several listeners read.
pub type SharedRecord = Arc<Mutex<Recorded>>;

/// The record, and where the run stands.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// When the command began.
    begun: Instant,
    /// All that happened.
    pub run: RunRecord,
    /// The run's plan, and when it began.
    pub plan: Option<(Plan, u64)>,
    /// Whether the run that was planned last has ended.
    pub ended: bool,
    /// The places among the record's actions of those that run.
    pub running: Vec<usize>,
    /// How far actions on engines are.
    pub under_way: UnderWay,
    /// The slots that others hold.
    pub waits: SlotWait,
    /// Since when.
    waits_since: u64,
    /// Of the run.
    pub tally: Tally,
    /// Which pass over a graph it is.
    round: u32,
    /// The places of this pass's actions, by their numbers in the graph.
    places: HashMap<usize, usize>,
}

/// Numbers of a run, as they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ended, with any result.
    pub ended: usize,
    /// Of these, cache hits.
    pub hits: usize,
    /// Of these, those that kept their object, since the functions that it imports are the same.
    pub same: usize,
    /// Of these, those that failed.
    pub failed: usize,
    /// The costs of all that ended.
    pub cost: u64,
    /// How long workers were busy with all that ended.
    pub busy: Duration,
    /// The costs of those that ran their command, and how long they took, for the relation of both.
    pub measured_cost: u64,
    /// See `measured_cost`.
    pub measured_wall: Duration,
}

impl Recorded {
    /// Nothing so far.
    pub fn new(begun: Instant) -> Self {
        Self {
            begun,
            run: RunRecord::default(),
            plan: None,
            ended: false,
            running: Vec::new(),
            under_way: UnderWay::default(),
            waits: SlotWait::default(),
            waits_since: 0,
            tally: Tally::default(),
            round: 0,
            places: HashMap::new(),
        }
    }

    /// For several listeners.
    pub fn shared(self) -> SharedRecord {
        Arc::new(Mutex::new(self))
    }

    /// A moment as the record has it.
    pub fn since(&self, moment: Instant) -> u64 {
        microseconds(moment.saturating_duration_since(self.begun))
    }

    /// Adds the actions of the graph that is about to be run, also those that will not be started.
    pub fn actions(&mut self, actions: impl IntoIterator<Item = ActionRecord>) {
        self.round = self.run.actions.last().map_or(0, |last| last.round + 1);
        self.places.clear();
        for action in actions {
            self.add(action);
        }
    }

    /// Adds actions of a run that lasts or is about to begin and that were not known before. An action that is already
    /// there keeps its events.
    pub fn more_actions(&mut self, actions: impl IntoIterator<Item = ActionRecord>) {
        for action in actions {
            match self.places.get(&action.id) {
                Some(&at) => self.run.actions[at].complete(action),
                None => drop(self.add(action)),
            }
        }
    }

    /// Takes an event of the run.
    pub fn report(&mut self, event: ProgressEvent<'_>, now: Instant) {
        match event {
            ProgressEvent::Planned(plan) => self.planned(plan, now),
            ProgressEvent::Arrived(action) => self.arrived(action),
            ProgressEvent::Grown(changed) => {
                if let Some((plan, _)) = &mut self.plan {
                    *plan = changed;
                }
            }
            ProgressEvent::Started(step) => self.started(step, now),
            ProgressEvent::Finished(step, measured, warnings) => self.finished(step, measured, warnings, now),
            ProgressEvent::Failed(step, failure) => self.failed(step, failure, now),
            ProgressEvent::LookedUp(step, key) => {
                if let Some(&at) = self.places.get(&step.id) {
                    self.run.actions[at].cache = Some(CacheAnswer { key: blobs::hex(key), hit: false });
                }
            }
            ProgressEvent::ExecutedBy(step, worker, times) => {
                if let Some(&at) = self.places.get(&step.id) {
                    let action = &mut self.run.actions[at];
                    action.worker = Some(worker.to_owned());
                    action.engine = Some(times);
                }
            }
            ProgressEvent::CameBack(step, cause) | ProgressEvent::Again(step, cause) => {
                self.again(step, cause, now);
            }
            ProgressEvent::UnderWay(under_way) => self.under_way = under_way,
            ProgressEvent::Waits(waits) => self.waits(waits.clone(), now),
            ProgressEvent::Engines(engines) => self.run.engines = engines.to_vec(),
            ProgressEvent::Retried(text) | ProgressEvent::Warned(text) => {
                self.run.warnings.push(text.to_owned());
            }
            ProgressEvent::Outcomes(outcomes) => self.outcomes(outcomes),
            ProgressEvent::Ended(..) => self.ended(now),
            ProgressEvent::Phase(phase) => self.phase(phase),
            ProgressEvent::Memory(memory) => {
                let at_us = self.since(now);
                self.run.memory.push(MemorySample { at_us, memory });
            }
            ProgressEvent::Printed(_) | ProgressEvent::Noted(_) | ProgressEvent::Concluded(..) => {}
        }
    }

    /// Another wait begins, or none; the one before is counted.
    fn waits(&mut self, next: SlotWait, now: Instant) {
        let now = self.since(now);
        let took = now.saturating_sub(std::mem::replace(&mut self.waits_since, now));
        let SlotWait { slots, is_alone, holders } = std::mem::replace(&mut self.waits, next);
        let waited = &mut self.run.waited;
        match slots as u64 {
            0 => {}
            _ if is_alone => waited.idle_us += took,
            slots if holders.is_empty() => waited.make_us += took * slots,
            slots => waited.others_us += took * slots,
        }
    }

    /// An action has arrived in a run.
    fn arrived(&mut self, action: &ActionRecord) {
        if !self.places.contains_key(&action.id) {
            self.add(action.clone());
        }
    }

    /// Why an action has to run.
    pub fn because(&mut self, id: ActionId, why: Vec<Change>) {
        if let Some(&at) = self.places.get(&id.index()) {
            self.run.actions[at].why = why;
        }
    }

    /// Adds the outputs of an action: path and digest of each.
    pub fn wrote(&mut self, id: ActionId, outputs: impl IntoIterator<Item = (String, String)>) {
        let Some(&at) = self.places.get(&id.index()) else { return };
        let known = &mut self.run.actions[at].outputs;
        for (path, digest) in outputs {
            match known.iter_mut().find(|output| output.path == path) {
                Some(output) => output.after = Some(digest),
                None => known.push(OutputRecord { path, before: None, after: Some(digest) }),
            }
        }
    }

    /// A run begins.
    fn planned(&mut self, plan: Plan, now: Instant) {
        self.plan = Some((plan, self.since(now)));
        self.run.jobs = Some(plan.jobs);
        self.ended = false;
        self.running.clear();
        self.tally = Tally::default();
    }

    /// An action starts.
    fn started(&mut self, step: ProgressStep<'_>, now: Instant) {
        let at = match self.places.get(&step.id) {
            Some(&at) if self.run.actions[at].start_us.is_none() => at,
            Some(&at) => {
                let again = self.run.actions[at].unstarted();
                self.add(again)
            }
            None => self.add(ActionRecord::new(step.id, step.kind, step.label, step.cost)),
        };
        let start = self.since(now);
        let action = &mut self.run.actions[at];
        action.result = ActionStatus::Running;
        action.cost = step.cost;
        action.lane = Some(step.lane);
        action.start_us = Some(start);
        action.command = step.command.to_owned();
        self.running.push(at);
    }

    /// An action succeeded; one that turned out to be up to date was never started.
    fn finished(&mut self, step: ProgressStep<'_>, measured: Measured, warnings: &str, now: Instant) {
        let fate = match measured.origin {
            Origin::Ran | Origin::Cache => ActionStatus::Done,
            Origin::UpToDate => ActionStatus::UpToDate,
            Origin::SameImports => ActionStatus::SameImports,
        };
        if let Some(action) = self.end(step, measured, fate, now) {
            action.warnings = warnings.to_owned();
        }
        match measured.origin {
            Origin::Ran => {
                self.tally.measured_cost = self.tally.measured_cost.saturating_add(step.cost);
                self.tally.measured_wall += measured.wall;
            }
            Origin::Cache => self.tally.hits += 1,
            Origin::UpToDate => self.was_up_to_date(step),
            Origin::SameImports => self.tally.same += 1,
        }
    }

    /// An action failed.
    fn failed(&mut self, step: ProgressStep<'_>, failure: &Failure, now: Instant) {
        if let Some(action) = self.end(step, failure.measured, ActionStatus::Failed, now) {
            action.failure = Some(failed(failure));
        }
        self.tally.failed += 1;
    }

    /// An action is to start once more.
    fn again(&mut self, step: ProgressStep<'_>, cause: &str, now: Instant) {
        let end = self.since(now);
        if let Some(at) = self.take(step) {
            let action = &mut self.run.actions[at];
            action.end_us = Some(end);
            action.result = ActionStatus::Again;
            action.because = Some(cause.to_owned());
        }
    }

    /// Adds the outcomes that no event has reported so far.
    fn outcomes(&mut self, outcomes: &[(ActionId, Outcome)]) {
        for (id, outcome) in outcomes {
            let Some(&at) = self.places.get(&id.index()) else { continue };
            match outcome {
                Outcome::Skipped(cause) => {
                    let cause = self.places.get(&cause.index()).map(|&at| self.run.actions[at].label.clone());
                    let action = &mut self.run.actions[at];
                    action.result = ActionStatus::Skipped;
                    action.because = cause;
                }
                Outcome::Failed(failure) => {
                    self.run.actions[at].failure.get_or_insert_with(|| failed(failure));
                }
                Outcome::Done(_) | Outcome::NotStarted => {}
            }
        }
    }

    /// The run ended.
    fn ended(&mut self, now: Instant) {
        self.ended = true;
        self.waits(SlotWait::default(), now);
        let end = self.since(now);
        for at in self.running.drain(..) {
            self.run.actions[at].end_us = Some(end);
        }
    }

    /// A phase begins or ends.
    fn phase(&mut self, phase: Phase) {
        let (start_us, end_us) = (self.since(phase.start), phase.end.map(|end| self.since(end)));
        match self.known(phase) {
            Some(at) => self.run.phases[at].end_us = end_us,
            None => self.run.phases.push(PhaseRecord { name: phase.name.to_owned(), start_us, end_us }),
        }
    }

    /// Returns whether the beginning of a phase was reported.
    pub fn is_known(&self, phase: Phase) -> bool {
        self.known(phase).is_some()
    }

    fn known(&self, phase: Phase) -> Option<usize> {
        let start = self.since(phase.start);
        self.run.phases.iter().position(|known| known.name == phase.name && known.start_us == start)
    }

    fn add(&mut self, mut action: ActionRecord) -> usize {
        let at = self.run.actions.len();
        action.round = self.round;
        self.places.insert(action.id, at);
        self.run.actions.push(action);
        at
    }

    fn was_up_to_date(&mut self, step: ProgressStep<'_>) {
        let at = match self.places.get(&step.id) {
            Some(&at) => at,
            None => self.add(ActionRecord::new(step.id, step.kind, step.label, step.cost)),
        };
        let action = &mut self.run.actions[at];
        action.result = ActionStatus::UpToDate;
        action.why.clear();
        action.outputs.iter_mut().for_each(|output| output.after.clone_from(&output.before));
    }

    fn end(
        &mut self,
        step: ProgressStep<'_>,
        measured: Measured,
        fate: ActionStatus,
        now: Instant,
    ) -> Option<&mut ActionRecord> {
        self.tally.ended += 1;
        self.tally.cost = self.tally.cost.saturating_add(step.cost);
        let end = self.since(now);
        let phases = self.phases_of(measured.phases);
        let at = self.take(step)?;
        let action = &mut self.run.actions[at];
        action.end_us = Some(end);
        action.phases = phases;
        action.took = ActionCost {
            wall_us: microseconds(measured.wall),
            cpu_us: measured.cpu.map(microseconds),
            import_cpu_us: measured.import_cpu.map(microseconds),
            spared_us: measured.spared_us.map(NonZeroU64::get),
            peak_memory: measured.peak_memory,
            origin: measured.origin,
        };
        if let Some(answer) = &mut action.cache {
            answer.hit = measured.origin == Origin::Cache;
        }
        action.result = fate;
        let busy = action.interval(end).map_or(0, Interval::length);
        self.tally.busy += Duration::from_micros(busy);
        Some(action)
    }

    fn phases_of(&self, phases: Phases) -> ActionPhases {
        let interval = |span: Span| Interval { start: self.since(span.start), end: self.since(span.end) };
        let Phases { verify, lookup, command, commit } = phases;
        ActionPhases {
            verify: verify.map(interval),
            lookup: lookup.map(interval),
            command: command.map(interval),
            commit: commit.map(interval),
        }
    }

    /// The place of an action that runs, which it does no more.
    fn take(&mut self, step: ProgressStep<'_>) -> Option<usize> {
        let place = self.running.iter().position(|&at| self.run.actions[at].id == step.id)?;
        Some(self.running.remove(place))
    }
}

fn failed(failure: &Failure) -> FailedAction {
    FailedAction {
        cause: failure.cause.clone(),
        repeat: failure.command.clone(),
        stderr: failure.stderr.clone(),
    }
}

#[cfg(test)]
mod tests {
    use distlto_planner::graph::ActionKind;

    use super::*;

    fn step(id: usize) -> ProgressStep<'static> {
        ProgressStep { id, kind: ActionKind::Opt, label: "m", cost: 1, lane: 0, command: "" }
    }

    fn action(id: usize) -> ActionRecord {
        ActionRecord::new(id, ActionKind::Opt, "m", 1)
    }

    #[test]
    fn what_is_known_of_an_arrival_is_kept_whoever_speaks_first() {
        let known = |id| ActionRecord { key: Some(format!("key {id}")), ..action(id) };
        let begun = Instant::now();
        let mut recorded = Recorded::new(begun);
        // An earlier run with all its actions known.
        recorded.actions([known(0)]);
        recorded.actions([]);
        recorded.more_actions([known(0)]);
        recorded.report(ProgressEvent::Arrived(&action(0)), begun);
        recorded.report(ProgressEvent::Arrived(&action(1)), begun);
        recorded.report(ProgressEvent::Started(step(1)), begun);
        recorded.more_actions([known(1)]);
        recorded.report(ProgressEvent::Arrived(&action(2)), begun);
        recorded.report(ProgressEvent::Outcomes(&[(ActionId::new(2), Outcome::NotStarted)]), begun);
        let told = recorded.run.actions.iter();
        let told: Vec<_> = told.map(|one| (one.round, one.id, one.key.as_deref(), one.result)).collect();
        let expected = [
            (0, 0, Some("key 0"), ActionStatus::NotStarted),
            (1, 0, Some("key 0"), ActionStatus::NotStarted),
            (1, 1, Some("key 1"), ActionStatus::Running),
            (1, 2, None, ActionStatus::NotStarted),
        ];
        assert_eq!(told, expected);
    }
}
