//! How long actions take on an engine against the estimate for this machine, and which are late.
//!
//! Measured in this run: queueing, transfers and the command together. Knows nothing of the actions' content.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use distlto_prepare::mutex::lock;
use distlto_reapi::execute::Stage;
use distlto_record::action::EngineTimes;
use distlto_record::progress::UnderWay;
use tokio::sync::watch;

/// Assumed overhead of an action on the engine, until the first one has come back.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Shorter delays do not count.
const SLACK: Duration = Duration::from_millis(200);

/// The pace of an engine, and the idle slots of this machine.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Of actions that came back: how many, microseconds that they took, and were estimated to take here.
    done: AtomicU64,
    took: AtomicU64,
    estimated: AtomicU64,
    /// Slots of this machine for which nothing is left to start, and how many of them race.
    idle: AtomicUsize,
    racing: AtomicUsize,
    /// Notifies the actions in flight of more idle slots.
    more_idle: watch::Sender<()>,
    /// Numbers of actions that wait for a worker and do not race, and the next number.
    waiting: Mutex<BTreeSet<usize>>,
    begun: AtomicUsize,
    /// How many are at each [`FlightStage`].
    stages: [AtomicUsize; 4],
}

/// How far one action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlightStage {
    Uploading,
    Queued,
    Running,
    Downloading,
}

impl From<Stage> for FlightStage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Queued => Self::Queued,
            Stage::Executing => Self::Running,
            Stage::Completed => Self::Downloading,
        }
    }
}

/// An action under way.
#[derive(Debug)]
pub(super) struct InFlight<'a> {
    pace: &'a Pace,
    /// In the order in which they set out.
    number: usize,
    begun: Instant,
    estimate: Duration,
    step: AtomicUsize,
    /// Whether it has begun here too.
    races: AtomicBool,
    /// When it reached that.
    since: Mutex<Instant>,
    /// How long it was at each step before.
    spent: [AtomicU64; 4],
}

impl Pace {
    /// An action sets out that would take so long here.
    pub(super) fn begin(&self, estimate: Duration) -> InFlight<'_> {
        self.stages[FlightStage::Uploading as usize].fetch_add(1, Relaxed);
        let (step, now) = (AtomicUsize::new(FlightStage::Uploading as usize), Instant::now());
        let number = self.begun.fetch_add(1, Relaxed);
        let (since, spent, races) = (Mutex::new(now), Default::default(), AtomicBool::new(false));
        InFlight { pace: self, number, begun: now, estimate, step, races, since, spent }
    }

    /// So many slots of this machine have nothing to do.
    pub(super) fn set_idle(&self, slots: usize) {
        if self.idle.swap(slots, Relaxed) < slots {
            self.more_idle.send_replace(());
        }
    }

    /// Whether any has.
    pub(super) fn is_any_idle(&self) -> bool {
        self.idle.load(Relaxed) > 0
    }

    /// Returns a receiver that changes when there are more idle slots, or one of them is free again.
    pub(super) fn idle_slots(&self) -> watch::Receiver<()> {
        self.more_idle.subscribe()
    }

    /// Whether to begin an action here too, which takes one of the idle slots then.
    ///
    /// Among actions that wait for a worker, only the last one to set out may race: workers take the others first. Each
    /// action races once: a failure here would repeat here.
    pub(super) fn may_race(&self, flight: &InFlight<'_>) -> bool {
        let idle = self.idle.load(Relaxed);
        let take = |racing| (racing < idle).then_some(racing + 1);
        let mut waiting = self.waiting();
        let is_next = !waiting.contains(&flight.number) || waiting.last() == Some(&flight.number);
        let may = is_next
            && !flight.races.load(Relaxed)
            && self.is_late(flight)
            && self.racing.fetch_update(Relaxed, Relaxed, take).is_ok();
        if may {
            waiting.remove(&flight.number);
            flight.races.store(true, Relaxed);
        }
        may
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        lock(&self.waiting)
    }

    /// Takes an idle slot for an action that comes back to the schedule. Returns whether there was one.
    pub(super) fn take_idle(&self) -> bool {
        let racing = self.racing.load(Relaxed);
        let take = |idle: usize| (racing < idle).then(|| idle - 1);
        self.idle.fetch_update(Relaxed, Relaxed, take).is_ok()
    }

    /// Frees the slot of a race that has ended here.
    pub(super) fn ended_here(&self) {
        self.racing.fetch_sub(1, Relaxed);
        self.more_idle.send_replace(());
    }

    pub(super) fn under_way(&self) -> UnderWay {
        let [uploading, queued, running, downloading] = [0, 1, 2, 3].map(|at| self.stages[at].load(Relaxed));
        UnderWay { uploading, queued, running, downloading, storing: 0 }
    }

    fn is_late(&self, flight: &InFlight<'_>) -> bool {
        let elapsed = flight.begun.elapsed();
        let step = flight.step.load(Relaxed);
        // One that nobody has begun ends here as soon as it could end there.
        let waits = step == FlightStage::Queued as usize && elapsed > flight.estimate + SLACK;
        waits || elapsed > self.expected(flight.estimate).mul_f64(1.5) + SLACK
    }

    /// How long an action takes there.
    fn expected(&self, estimate: Duration) -> Duration {
        let [done, took, estimated] =
            [&self.done, &self.took, &self.estimated].map(|count| count.load(Relaxed));
        if done == 0 {
            return estimate + UNKNOWN;
        }
        let mean = Duration::from_micros(took / done);
        let by_estimate = estimate.as_secs_f64() * took as f64 / estimated.max(1) as f64;
        mean.max(Duration::try_from_secs_f64(by_estimate).unwrap_or(Duration::MAX))
    }
}

impl InFlight<'_> {
    pub(super) fn reach(&self, step: FlightStage) {
        let before = self.step.swap(step as usize, Relaxed);
        let mut since = lock(&self.since);
        self.spent[before].fetch_add(micros(since.elapsed()), Relaxed);
        *since = Instant::now();
        self.pace.stages[before].fetch_sub(1, Relaxed);
        self.pace.stages[step as usize].fetch_add(1, Relaxed);
        let mut waiting = self.pace.waiting();
        if step == FlightStage::Queued && !self.races.load(Relaxed) {
            waiting.insert(self.number);
        } else {
            waiting.remove(&self.number);
        }
    }

    /// Ends the flight of an action that came back. Returns the time at each stage.
    pub(super) fn done(&self) -> EngineTimes {
        self.reach(FlightStage::Downloading);
        self.pace.done.fetch_add(1, Relaxed);
        self.pace.took.fetch_add(micros(self.begun.elapsed()), Relaxed);
        self.pace.estimated.fetch_add(micros(self.estimate), Relaxed);
        let [uploading_us, queued_us, running_us, downloading_us] =
            [0, 1, 2, 3].map(|at| self.spent[at].load(Relaxed));
        EngineTimes { uploading_us, queued_us, running_us, downloading_us }
    }
}

/// Returns microseconds. Only durations beyond `u64` are cut.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 20)
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.pace.stages[self.step.load(Relaxed)].fetch_sub(1, Relaxed);
        self.pace.waiting().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idle_slots_race_and_only_what_is_late() {
        let pace = Pace::default();
        let mut late = pace.begin(Duration::ZERO);
        late.begun = late.begun.checked_sub(Duration::from_secs(5)).expect("up for long");
        assert!(!pace.may_race(&late), "no slot is idle");
        pace.set_idle(1);
        let mut other = pace.begin(Duration::ZERO);
        other.begun = late.begun;
        assert!(pace.may_race(&late) && !pace.may_race(&other), "there is one slot");
        pace.ended_here();
        assert!(!pace.may_race(&late), "once is enough");
        let early = pace.begin(Duration::from_secs(3600));
        assert!(!pace.may_race(&early) && pace.may_race(&other));
    }

    #[test]
    fn of_those_that_wait_the_last_one_races() {
        let pace = Pace::default();
        pace.set_idle(2);
        let mut flights = [0; 3].map(|_| pace.begin(Duration::ZERO));
        for flight in &mut flights {
            flight.begun = flight.begun.checked_sub(Duration::from_secs(5)).expect("up for long");
            flight.reach(FlightStage::Queued);
        }
        let [first, second, third] = flights;
        assert!(!pace.may_race(&first) && !pace.may_race(&second), "workers take these first");
        assert!(pace.may_race(&third) && pace.may_race(&second));
        pace.ended_here();
        first.reach(FlightStage::Running);
        assert!(pace.may_race(&first), "a worker is late");
    }
}
