//! Computes the share of one run beside the holdings and wishes of the others.
//!
//! # The rules
//!
//! 1. All runs together hold no more than each of them allows: each compares its own limits with the sum of all.
//! 2. The run with the fewest running actions comes first; among equals, the one that has waited longest. So each run
//!    leaves room for the wishes of runs before it, within their limits. Two runs that always have work come to equal
//!    shares.
//! 3. One slot is always a run's own: a processor with one job too many is slower, and nothing else.
//! 4. A run without running actions takes missing memory only if waiting is useless: when no run goes on that holds
//!    memory or is before it. A stopped run does not go on. Neither does one that waits for this very run, as a build
//!    waits for its links.
//!
//! By the fourth rule some run always goes on. A job that is larger than all memory runs when nothing else does. Pure:
//! the caller decides which runs go on.

use super::holding::Holding;

/// Limits of all runs together, as one run sees them; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Job slots.
    pub slots: Option<u64>,
    /// Memory of actions, in bytes.
    pub memory: Option<u64>,
}

/// The share of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunShare {
    /// Job slots; at least one.
    pub slots: u64,
    /// Memory of its actions, in bytes.
    pub memory: u64,
    /// Whether its first action, too, has to fit into the share.
    pub first_waits: bool,
}

/// The sums of the runs' holdings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Job slots.
    pub slots: u64,
    /// Memory of actions.
    pub memory: u64,
    /// Memory of linkers.
    pub beside: u64,
}

impl Sums {
    /// Of these.
    pub fn of(holdings: &[Holding]) -> Self {
        holdings.iter().fold(Self::default(), |sums, holding| Self {
            slots: sums.slots.saturating_add(holding.slots),
            memory: sums.memory.saturating_add(holding.memory),
            beside: sums.beside.saturating_add(holding.beside),
        })
    }
}

/// Returns the share of a run with `slots` running actions that has waited since `since`.
pub fn share_of(
    (slots, since): (u64, u64),
    limits: RunLimits,
    others: &[Holding],
    goes_on: impl Fn(&Holding) -> bool,
) -> RunShare {
    let held = Sums::of(others);
    let is_before =
        |other: &&Holding| other.waits.is_some_and(|wish| (other.slots, wish.since) < (slots, since));
    let before: Vec<_> = others.iter().filter(is_before).filter(|other| goes_on(other)).collect();
    let wishes = || before.iter().filter_map(|other| other.waits);
    let wanted_slots = wishes().fold(held.slots, |sum, wish| sum.saturating_add(wish.slots));
    let wanted = wishes().fold(held.memory, |sum, wish| sum.saturating_add(wish.memory));
    let most = before.iter().filter_map(|other| other.most).chain(limits.memory).min();
    let first_waits =
        slots == 0 && (!before.is_empty() || others.iter().any(|other| other.slots > 0 && goes_on(other)));
    RunShare {
        slots: limits.slots.map_or(u64::MAX, |all| all.saturating_sub(wanted_slots).max(1)),
        memory: most.map_or(u64::MAX, |most| most.saturating_sub(wanted)),
        first_waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::holding::Wish;

    fn run(slots: u64, memory: u64, waits: Option<(u64, u64)>) -> Holding {
        let waits = waits.map(|(since, memory)| Wish { since, slots: 1, memory });
        Holding { slots, memory, most: Some(100), waits, ..Holding::default() }
    }

    fn limits(slots: u64, memory: u64) -> RunLimits {
        RunLimits { slots: Some(slots), memory: Some(memory) }
    }

    const LATER: u64 = 50;

    fn of(slots: u64, limits: RunLimits, others: &[Holding]) -> (u64, u64, bool) {
        let share = share_of((slots, LATER), limits, others, |_| true);
        (share.slots, share.memory, share.first_waits)
    }

    #[test]
    fn who_has_least_is_left_room() {
        let waiting = |slots, since| [run(slots, 10, Some((since, 30)))];
        // It has fewer, or as many and has waited longer.
        assert_eq!(of(2, limits(8, 100), &waiting(1, LATER + 1)), (6, 60, false));
        assert_eq!(of(1, limits(8, 100), &waiting(1, LATER - 1)), (6, 60, false));
        // This one is before it.
        assert_eq!(of(1, limits(8, 100), &waiting(1, LATER + 1)), (7, 90, false));
        assert_eq!(of(1, limits(8, 100), &waiting(2, LATER - 1)), (6, 90, false));
        // Nobody holds anything, and the other one is first.
        assert_eq!(of(0, limits(8, 100), &[run(0, 0, Some((LATER - 1, 30)))]), (7, 70, true));
        assert_eq!(of(0, limits(8, 100), &[run(0, 0, Some((LATER + 1, 30)))]), (8, 100, false));
    }

    #[test]
    fn room_is_left_within_the_limits_of_who_waits() {
        let small = Holding { most: Some(50), ..run(0, 0, Some((0, 20))) };
        assert_eq!(of(1, limits(8, 1000), &[run(1, 10, None), small]), (6, 20, false));
        let large = Holding { most: Some(50), ..run(0, 0, Some((0, 70))) };
        assert_eq!(of(1, limits(8, 1000), &[large]).1, 0, "it needs all of it, alone");
        assert_eq!(of(1, RunLimits { slots: None, memory: None }, &[large]).1, 0);
    }

    /// Runs that start and end actions by these rules, each taking its share in its turn.
    #[test]
    fn runs_of_all_sizes_come_to_their_end_within_the_budget() {
        // For each run: the number of its actions, and the memory of one. One is larger than all memory.
        let work: [(u64, u64); 4] = [(40, 10), (30, 30), (3, 90), (2, 150)];
        let mut left: Vec<u64> = work.iter().map(|&(count, _)| count).collect();
        let mut runs: Vec<Holding> = work.iter().map(|_| run(0, 0, None)).collect();
        let (mut clock, mut ended) = (1, 0);
        for _ in 0..10_000 {
            for at in 0..runs.len() {
                let size = work[at].1;
                let others: Vec<_> =
                    runs.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, &run)| run).collect();
                clock += 1;
                let own = runs[at];
                let since = own.waits.map_or(clock, |wish| wish.since);
                let share = share_of((own.slots, since), limits(8, 100), &others, |_| true);
                let fits = own.memory + size <= share.memory || (own.slots == 0 && !share.first_waits);
                let starts = left[at] > 0 && own.slots < share.slots && fits;
                runs[at].waits = (left[at] > 0 && !starts).then_some(Wish { since, slots: 1, memory: size });
                if starts {
                    left[at] -= 1;
                    runs[at].slots += 1;
                    runs[at].memory += size;
                }
            }
            let sums = Sums::of(&runs);
            assert!(sums.memory <= 100 || (sums.memory == 150 && sums.slots == 1), "{runs:?}");
            // A running action ends, now in one run and now in another.
            ended += 1;
            let at = ended % runs.len();
            if runs[at].slots > 0 {
                runs[at].slots -= 1;
                runs[at].memory -= work[at].1;
            }
            if left.iter().all(|&left| left == 0) {
                return;
            }
        }
        panic!("some never ran: {left:?} of {work:?}");
    }
}
