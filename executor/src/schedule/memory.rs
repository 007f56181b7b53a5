//! The memory limit for the actions of a run together, and the system's present shortage of memory.
//!
//! # The budget
//!
//! The budget is the memory that the system has available and the limits of our control groups leave, less a tenth as a
//! reserve; or the user's own limit. Running actions lower the available memory, so it cannot be compared as it is. By
//! estimate the actions hold `used` in the end, and anything up to that at the moment. So a budget for all of them
//! together is at least the available memory, and at most that plus `used`. The last budget is moved into that range,
//! and stays unchanged within it. It follows other processes that take or free memory, and not the ups and downs of our
//! own children. When nothing runs it is the available memory. The ledger ([`crate::ledger`]) distinguishes other runs
//! of this user from other processes. The memory of their actions counts as used, and a run that joins them begins with
//! the budget that they have found.
//!
//! A compilation that the system killed has shown that the budget is too large. It shrinks to three quarters of the
//! estimated use at that moment, and does not grow beyond that again.
//!
//! # Pressure
//!
//! Estimates may be wrong, and other processes may want memory too. The kernel counts the time in which a process had
//! to wait for memory. Above a share of [`PRESSED`] nothing more starts until it falls below half of that; one action
//! always runs. Without this counter nothing is slowed down.
//!
//! Independent of actions. The files of the system are read by `memory::system`.

pub mod system;

use std::time::{Duration, Instant};

pub use system::System;

/// The share of time spent waiting for memory, in percent, above which nothing more starts.
pub const PRESSED: u64 = 20;

/// Interval between readings of the available memory.
pub const LOOK: Duration = Duration::from_millis(250);

/// Interval between readings of the pressure while nothing starts because of it.
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Interval between readings of the pressure while actions start.
const LOOK_AT_PRESSURE: Duration = Duration::from_millis(20);

/// How much memory may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// The available memory, read again while actions run.
    #[default]
    Available,
    /// This many bytes, independent of the available memory.
    Bytes(u64),
}

/// The budget of one run.
#[derive(Debug)]
pub struct Memory {
    system: System,
    limit: Limit,
    budget: Option<u64>,
    /// Limit of the budget since a compilation was killed.
    most: u64,
    looked: Option<Instant>,
    pressure: Pressure,
    /// When the pressure was read last, and whether it was too high.
    pressed: (Option<Instant>, bool),
    kills: Option<u64>,
}

/// The memory of this machine that all known runs hold, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// By actions that run, by estimate.
    pub actions: u64,
    /// By linkers that wait for them.
    pub beside: u64,
}

impl Memory {
    /// Makes a budget by the limit; asks the system.
    pub fn new(limit: Limit, system: System, now: Instant) -> Self {
        let kills = system.kills();
        let mut memory = Self {
            system,
            limit,
            budget: None,
            most: u64::MAX,
            looked: None,
            pressure: Pressure::default(),
            pressed: (None, false),
            kills,
        };
        memory.look(now, Held::default());
        memory
    }

    /// Takes over the budget `found` by the other runs for all together, if they have one. The available memory
    /// includes their reserved but unused memory; only their own budget shows that.
    pub fn join(&mut self, found: Option<u64>) {
        if self.limit == Limit::Available {
            self.budget = found.or(self.budget);
            self.looked = None;
        }
    }

    /// Returns the bytes that all actions may take together; `None` where there is no limit.
    pub fn budget(&mut self, now: Instant, held: Held) -> Option<u64> {
        let is_due = self.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK);
        if is_due || self.limit != Limit::Available {
            self.look(now, held);
        }
        self.last()
    }

    /// Returns the same, if the available memory decided it.
    pub fn found(&self) -> Option<u64> {
        self.last().filter(|_| self.limit == Limit::Available)
    }

    /// Returns the last budget.
    pub fn last(&self) -> Option<u64> {
        match self.budget {
            Some(budget) => Some(budget.min(self.most)),
            None => (self.most < u64::MAX).then_some(self.most),
        }
    }

    /// Returns whether the system is so short of memory that nothing more is to start.
    pub fn is_pressed(&mut self, now: Instant) -> bool {
        let (looked, was_pressed) = self.pressed;
        if looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOK_AT_PRESSURE) {
            return was_pressed;
        }
        let is_pressed = self.system.stalled().is_some_and(|stalled| self.pressure.observe(now, stalled));
        self.pressed = (Some(now), is_pressed);
        is_pressed
    }

    /// Takes in that an action was killed while this much was in use, by estimate. Returns the likely killer.
    pub fn killed(&mut self, used: u64) -> Killer {
        let kills = self.system.kills();
        let killer = match (self.kills, kills) {
            (Some(before), Some(after)) if after > before => Killer::System,
            (Some(_), Some(_)) => Killer::Somebody,
            _ => Killer::Unknown,
        };
        self.kills = kills;
        if killer != Killer::Somebody {
            self.most = self.most.min(used - used / 4);
        }
        killer
    }

    fn look(&mut self, now: Instant, held: Held) {
        self.looked = Some(now);
        self.budget = match self.limit {
            Limit::Bytes(bytes) => Some(bytes.saturating_sub(held.beside)),
            // The memory of linkers is not available.
            Limit::Available => {
                let available = self.system.available();
                available.map(|bytes| refreshed(self.budget, bytes - bytes / 10, held.actions))
            }
        };
    }
}

/// The sender of a SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killer {
    /// The system, for want of memory: its counter of such ends has risen.
    System,
    /// Another process: the counter has not risen.
    Somebody,
    /// The system does not report it.
    Unknown,
}

/// Moves the budget after a reading of the available memory, while running actions take anything up to `used`.
fn refreshed(before: Option<u64>, available: u64, used: u64) -> u64 {
    let most = available.saturating_add(used);
    before.map_or(most, |before| before.clamp(available, most))
}

/// The share of time spent waiting for memory, by readings of a counter.
#[derive(Debug, Default)]
struct Pressure {
    last: Option<(Instant, Duration)>,
    high: bool,
}

impl Pressure {
    /// Takes in a reading of the counter. Ignores intervals shorter than [`LOOK_AGAIN`].
    fn observe(&mut self, now: Instant, stalled: Duration) -> bool {
        let Some((then, before)) = self.last else {
            self.last = Some((now, stalled));
            return self.high;
        };
        let passed = now.saturating_duration_since(then);
        if passed >= LOOK_AGAIN {
            let percent = stalled.saturating_sub(before).as_micros() * 100 / passed.as_micros().max(1);
            let limit = if self.high { PRESSED / 2 } else { PRESSED };
            self.high = percent > u128::from(limit);
            self.last = Some((now, stalled));
        }
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_moves_only_as_far_as_is_certain() {
        // Nothing runs: the available memory.
        assert_eq!(refreshed(None, 1000, 0), 1000);
        assert_eq!(refreshed(Some(400), 1000, 0), 1000);
        // Our own children take 600 of an estimated 700: nothing is known to have changed.
        assert_eq!(refreshed(Some(1000), 400, 700), 1000);
        // Even if ours have taken all they may, others have taken 200.
        assert_eq!(refreshed(Some(1000), 100, 700), 800);
        // Others have freed memory while ours run.
        assert_eq!(refreshed(Some(1000), 1500, 700), 1500);
        assert_eq!(refreshed(Some(u64::MAX), u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn pressure_is_the_share_of_time_since_the_last_look() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pressure = Pressure::default();
        let mut observe = |ms, stalled| pressure.observe(at(ms), Duration::from_millis(stalled));
        assert!(!observe(0, 5_000), "what was before does not count");
        assert!(!observe(50, 5_050), "too short to say");
        assert!(observe(200, 5_050), "a quarter");
        assert!(observe(400, 5_080), "15 percent is still more than half of the limit");
        assert!(!observe(600, 5_090), "5 percent");
        assert!(!observe(800, 5_120), "15 percent again");
        assert!(!observe(800, 9_000), "no time has passed");
        assert!(!observe(1000, 4_000), "a counter that falls says nothing");
    }
}
