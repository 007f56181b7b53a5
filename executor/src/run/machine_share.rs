//! A run among others on this machine: its share beside their holdings, by the ledger.
//!
//! Without a ledger, and from the moment on in which it cannot be used, the run has the machine to itself. Independent
//! of the ledger's format.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use distlto_planner::graph::ActionId;
use distlto_prepare::warning::warn;

use super::options::RunOptions;
use crate::ledger::holding::{Holding, Wish};
use crate::ledger::share::{self, RunLimits, Sums};
use crate::ledger::{LedgerError, Seat, Turn};
use crate::schedule::memory::{self, Held, Limit, Memory};
use crate::schedule::pools::Resource;
use crate::schedule::{Schedule, Site};

/// Pause before the next look, for each of the other runs, while they leave no room.
const PAUSE: Duration = Duration::from_millis(10);

/// Time limit for others without a started or ended action. After it this run does not wait for their holdings:
/// something unforeseen is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state of a run among other runs.
pub(super) struct MachineShare {
    seat: Option<Seat>,
    limit: Limit,
    jobs: u64,
    /// Job slots of all runs, unless the slots are make's.
    slots: Option<u64>,
    /// Memory of a linker.
    beside: u64,
    /// As it was written last.
    own: Holding,
    /// Holdings of the others at the last look.
    theirs: Sums,
    others: usize,
    /// The processes of those of them that hold something.
    holders: Vec<u32>,
    /// Whether others had no room for the next action.
    is_waiting: bool,
    /// When the others last started or ended something.
    changed: Instant,
    has_warned: bool,
}

impl MachineShare {
    /// Takes part in the ledger of the options, if there is one.
    pub(super) fn new(options: &RunOptions<'_>) -> Self {
        let jobs = options.jobs.max(1);
        // So many jobs for each of several links are meant for a machine that has processors for them.
        let slots = jobs.max(thread::available_parallelism().map_or(1, usize::from)) as u64;
        let mut shared = Self {
            seat: None,
            limit: options.memory,
            jobs: jobs as u64,
            slots: options.slots.is_none().then_some(slots),
            beside: options.beside,
            own: Holding::default(),
            theirs: Sums::default(),
            others: 0,
            holders: Vec::new(),
            is_waiting: false,
            changed: Instant::now(),
            has_warned: false,
        };
        shared.seat = options.ledger.and_then(|ledger| ledger.join().map_err(|error| warn_of(&error)).ok());
        shared
    }

    /// Returns the next action that memory and others let start.
    pub(super) fn take(
        &mut self,
        schedule: &mut Schedule,
        memory: &mut Memory,
        now: Instant,
    ) -> Option<(ActionId, Site)> {
        let Some(mut seat) = self.seat.take() else { return self.take_alone(schedule, memory, now) };
        match seat.turn() {
            Ok(turn) => {
                let taken = self.take_in(&turn, schedule, memory, now);
                match turn.write(&self.own) {
                    Ok(()) => self.seat = Some(seat),
                    Err(error) => self.give_up(&error),
                }
                taken
            }
            Err(error) => {
                self.give_up(&error);
                self.take_alone(schedule, memory, now)
            }
        }
    }

    fn take_alone(
        &self,
        schedule: &mut Schedule,
        memory: &mut Memory,
        now: Instant,
    ) -> Option<(ActionId, Site)> {
        let budget = memory.budget(now, Held { actions: schedule.memory_used(), beside: self.beside });
        schedule.limit(Resource::Memory, budget.unwrap_or(u64::MAX));
        schedule.take()
    }

    fn take_in(
        &mut self,
        turn: &Turn<'_>,
        schedule: &mut Schedule,
        memory: &mut Memory,
        now: Instant,
    ) -> Option<(ActionId, Site)> {
        let others = turn.others();
        self.notice(others, now);
        if self.own.most.is_none() && self.theirs.memory > 0 {
            memory.join(others.iter().filter_map(|other| other.found).max());
        }
        let used = schedule.memory_used();
        let actions = used.saturating_add(self.theirs.memory);
        let beside = self.beside.saturating_add(self.theirs.beside);
        let budget = memory.budget(now, Held { actions, beside });
        let since = self.own.waits.map_or_else(clock, |wish| wish.since);
        let slots = schedule.running_here() as u64;
        let limits = RunLimits { slots: self.slots, memory: budget };
        let room = share::share_of((slots, since), limits, others, |other| turn.goes_on(other));
        let waits = room.first_waits && !self.has_lost_patience(others, now);
        limit(schedule, self.jobs.min(room.slots), room.memory, waits);
        let taken = schedule.take();
        // If it could start without the others, they are the reason of the wait.
        limit(schedule, self.jobs, self.alone(budget), false);
        let wish = taken.is_none().then(|| schedule.first_that_fits()).flatten();
        self.is_waiting = wish.is_some();
        let own_slots = u64::from(self.slots.is_some());
        self.own = Holding {
            slots: schedule.running_here() as u64,
            memory: schedule.memory_used(),
            beside: self.beside,
            most: budget,
            found: memory.found(),
            waits: wish.map(|memory| Wish { since, slots: own_slots, memory }),
            ..self.own
        };
        taken
    }

    /// Returns the memory limit of actions without other runs.
    fn alone(&self, budget: Option<u64>) -> u64 {
        match self.limit {
            Limit::Bytes(_) => budget.unwrap_or(0).saturating_add(self.theirs.beside),
            Limit::Available => budget.unwrap_or(u64::MAX),
        }
    }

    fn notice(&mut self, others: &[Holding], now: Instant) {
        let theirs = Sums::of(others);
        if (theirs, others.len()) != (self.theirs, self.others) || self.own.waits.is_none() {
            self.changed = now;
        }
        (self.theirs, self.others) = (theirs, others.len());
        let holding = others.iter().filter(|other| other.slots > 0 || other.memory > 0);
        self.holders = holding.map(|other| other.process).collect();
    }

    fn has_lost_patience(&mut self, others: &[Holding], now: Instant) -> bool {
        let has_lost = now.saturating_duration_since(self.changed) >= PATIENCE;
        if has_lost && !self.has_warned {
            self.has_warned = true;
            let holding = others.iter().filter(|other| other.slots > 0);
            let names: Vec<_> = holding.map(|other| other.process.to_string()).collect();
            warn(format_args!(
                "for {} s no job has ended in the links of process {}, which hold the memory of this machine: it is not waited for longer",
                PATIENCE.as_secs(),
                names.join(", ")
            ));
        }
        has_lost
    }

    /// Begins a look for actions that may start.
    pub(super) fn begin(&mut self) {
        self.is_waiting = false;
    }

    /// Ends the look: writes this run's holdings for others, unless they are unchanged.
    pub(super) fn end(&mut self, schedule: &Schedule) {
        let holds = (schedule.running_here() as u64, schedule.memory_used());
        if holds == (self.own.slots, self.own.memory) && self.is_waiting == self.own.waits.is_some() {
            return;
        }
        let Some(mut seat) = self.seat.take() else { return };
        self.own = Holding { slots: holds.0, memory: holds.1, waits: None, ..self.own };
        match seat.turn().and_then(|turn| turn.write(&self.own)) {
            Ok(()) => self.seat = Some(seat),
            Err(error) => self.give_up(&error),
        }
    }

    /// Returns the time until the next look for room that others leave.
    pub(super) fn look_again(&self) -> Option<Duration> {
        let pause = PAUSE.saturating_mul(u32::try_from(self.others.max(1)).unwrap_or(u32::MAX));
        self.is_waiting.then(|| pause.min(memory::LOOK))
    }

    /// Returns the processes of the other runs that leave no room for the next action.
    pub(super) fn waits_for(&self) -> Option<&[u32]> {
        self.is_waiting.then_some(self.holders.as_slice()).filter(|holders| !holders.is_empty())
    }

    /// Returns the memory of other runs' actions.
    pub(super) fn memory_of_others(&self) -> u64 {
        self.theirs.memory
    }

    fn give_up(&mut self, error: &LedgerError) {
        warn_of(error);
        self.theirs = Sums::default();
        self.others = 0;
        self.is_waiting = false;
    }
}

fn limit(schedule: &mut Schedule, slots: u64, memory: u64, first_waits: bool) {
    schedule.limit(Resource::Slots, slots);
    schedule.limit(Resource::Memory, memory);
    schedule.let_first_wait(first_waits);
}

fn warn_of(error: &LedgerError) {
    warn(format_args!("links that run at once do not know of this one: {error}"));
}

/// Nanoseconds since 1970.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
