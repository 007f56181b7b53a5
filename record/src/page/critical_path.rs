//! The critical path of a run: from its end back to its beginning, each step began when the one before it ended.
//!
//! Backends do not wait for each other, but for a slot. The step before a backend is the last one that ended before it
//! began, in its own lane if that was no earlier than elsewhere. Pure.

use crate::action::Interval;

/// How much earlier the step in the own lane may have ended and still count as the one before, in microseconds.
const SAME: u64 = 50_000;

/// A phase or an action of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CriticalStep {
    /// When it was.
    pub(super) interval: Interval,
    /// Where; `None` for the linker.
    pub(super) lane: Option<usize>,
    /// Its number on the page.
    pub(super) name: i64,
}

/// The names of the steps, the first one first.
pub(super) fn path(steps: &[CriticalStep]) -> Vec<i64> {
    let mut by_end: Vec<&CriticalStep> = steps.iter().collect();
    by_end.sort_by_key(|step| (step.interval.end, step.interval.start));
    let mut found = Vec::new();
    let mut lane = None;
    let mut earlier = &by_end[..];
    while let Some(last) = earlier.last() {
        let late = earlier
            .iter()
            .rev()
            .take_while(|step| step.interval.end.saturating_add(SAME) >= last.interval.end);
        let step = late.copied().find(|step| lane.is_some() && step.lane == lane).unwrap_or(last);
        found.push(step.name);
        lane = step.lane;
        // At least one less: a step that takes no time ends where it begins.
        let ended = earlier.partition_point(|other| other.interval.end <= step.interval.start);
        earlier = &earlier[..ended.min(earlier.len() - 1)];
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: i64, lane: Option<usize>, start: u64, end: u64) -> CriticalStep {
        CriticalStep { interval: Interval { start, end }, lane, name }
    }

    #[test]
    fn each_step_waited_for_the_one_before() {
        let steps = [
            step(-1, None, 0, 10_000),
            step(0, Some(0), 11_000, 40_000),
            step(1, Some(1), 11_000, 40_500),
            step(2, Some(0), 40_600, 90_000),
            step(3, Some(1), 40_600, 60_000),
            step(-2, None, 90_100, 100_000),
        ];
        assert_eq!(path(&steps), [-1, 0, 2, -2]);
        assert_eq!(path(&[]), [0; 0]);
    }

    #[test]
    fn what_takes_no_time_or_overlaps_ends() {
        let steps = [step(0, Some(0), 5, 5), step(1, Some(0), 5, 5), step(2, None, 0, u64::MAX)];
        assert_eq!(path(&steps), [2]);
        assert_eq!(path(&steps[..2]).len(), 2);
    }
}
