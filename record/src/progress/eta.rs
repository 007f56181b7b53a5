//! How long a run will still take.
//!
//! The remaining cost over the slots, at the speed measured so far; at least the rest of the longest running action.
//! Near the end, with one long action left, it is that action's rest: idle slots count for nothing. Pure.

use std::time::{Duration, Instant};

use super::recorded::Recorded;
use crate::action::ActionRecord;

/// This many finished actions outweigh the costs' own unit, which is microseconds.
const PRIOR: f64 = 2.0;

/// An action that has taken longer than it should takes this share of its time more.
const OVERDUE: f64 = 0.25;

/// The time left, by estimate; `None` before anything is known.
pub fn left(recorded: &Recorded, now: Instant) -> Option<Duration> {
    let (plan, begun) = recorded.plan.filter(|_| !recorded.ended)?;
    let elapsed = between(begun, recorded.since(now)).as_secs_f64();
    let tally = &recorded.tally;
    if tally.ended == 0 && elapsed < 1.0 {
        return None;
    }
    let each = seconds_per_cost(recorded);
    let mut running = 0.0;
    let mut busy = tally.busy.as_secs_f64();
    let mut longest: f64 = 0.0;
    let mut cost = tally.cost;
    for action in recorded.running.iter().map(|&at| &recorded.run.actions[at]) {
        let since = ran_for(recorded, action, now).as_secs_f64();
        let rest = (action.cost as f64 * each - since).max(since * OVERDUE);
        running += rest;
        busy += since;
        longest = longest.max(rest);
        cost = cost.saturating_add(action.cost);
    }
    let waiting = plan.cost.saturating_sub(cost) as f64 * each;
    let slots = slots(plan.jobs, busy, elapsed, waiting > 0.0);
    Some(Duration::from_secs_f64(((running + waiting) / slots).max(longest).min(1e9)))
}

/// How long an action has run.
pub(super) fn ran_for(recorded: &Recorded, action: &ActionRecord, now: Instant) -> Duration {
    action.start_us.map_or(Duration::ZERO, |start| between(start, recorded.since(now)))
}

/// From one of the record's times to another.
pub(super) fn between(start: u64, end: u64) -> Duration {
    Duration::from_micros(end.saturating_sub(start))
}

/// Returns the seconds per unit of cost: as measured, and by the costs' own unit while few actions have ended.
pub(super) fn seconds_per_cost(recorded: &Recorded) -> f64 {
    let (plan, _) = match recorded.plan {
        Some(plan) => plan,
        None => return 1e-6,
    };
    let tally = &recorded.tally;
    let prior = PRIOR * plan.cost as f64 / plan.actions.max(1) as f64;
    let measured = tally.measured_wall.as_secs_f64();
    (measured + prior * 1e-6) / (tally.measured_cost as f64 + prior).max(1.0)
}

/// How many actions run at once. A jobserver or a lack of memory may allow fewer than was planned; that shows after a while.
fn slots(jobs: usize, busy: f64, elapsed: f64, waits: bool) -> f64 {
    let jobs = jobs.max(1) as f64;
    if elapsed < 2.0 || !waits { jobs } else { (busy / elapsed).clamp(1.0, jobs) }
}

#[cfg(test)]
mod tests {
    use distlto_planner::graph::ActionKind;

    use super::*;
    use crate::progress::{Plan, ProgressEvent, ProgressStep};
    use crate::report::{Counts, Measured};

    fn step(id: usize, cost: u64) -> ProgressStep<'static> {
        ProgressStep { id, kind: ActionKind::Opt, label: "m", cost, lane: 0, command: "" }
    }

    fn measured(wall: Duration) -> Measured {
        Measured { wall, ..Measured::default() }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_left_follows_from_what_has_ended() {
        // Of ten actions of a second on two workers: how many have ended, seconds that each took, what may be left.
        for (ended, seconds, expected) in [(4, 1, 2.9..3.1), (6, 5, 7.0..10.5)] {
            let begun = Instant::now();
            let mut recorded = Recorded::new(begun);
            recorded.report(ProgressEvent::Planned(Plan { actions: 10, cost: 10_000_000, jobs: 2 }), begun);
            let wall = SECOND * seconds;
            for id in 0..ended + 2 {
                let at = begun + wall * u32::try_from(id / 2).expect("small");
                recorded.report(ProgressEvent::Started(step(id, 1_000_000)), at);
                if id < ended {
                    let end = ProgressEvent::Finished(step(id, 1_000_000), measured(wall), "");
                    recorded.report(end, at + wall);
                }
            }
            let now = begun + wall * u32::try_from(ended / 2).expect("small");
            let left = left(&recorded, now).expect("known").as_secs_f64();
            assert!(expected.contains(&left), "{left} after {ended}");
        }
    }

    #[test]
    fn the_last_long_action_is_all_that_is_left() {
        let begun = Instant::now();
        let mut recorded = Recorded::new(begun);
        recorded.report(ProgressEvent::Planned(Plan { actions: 2, cost: 11_000_000, jobs: 8 }), begun);
        recorded.report(ProgressEvent::Started(step(0, 10_000_000)), begun);
        recorded.report(ProgressEvent::Started(step(1, 1_000_000)), begun);
        recorded.report(ProgressEvent::Finished(step(1, 1_000_000), measured(SECOND), ""), begun + SECOND);
        let at = |seconds| left(&recorded, begun + SECOND * seconds).expect("known").as_secs_f64();
        assert!((7.9..8.1).contains(&at(2)), "{}", at(2));
        assert!((0.9..1.1).contains(&at(9)) || at(9) >= 2.0, "{}", at(9));
        assert!(at(20) > 1.0, "an overdue action is not about to end: {}", at(20));
    }

    #[test]
    fn nothing_is_said_before_anything_is_known() {
        let begun = Instant::now();
        let mut recorded = Recorded::new(begun);
        assert_eq!(left(&recorded, begun), None);
        recorded.report(ProgressEvent::Planned(Plan { actions: 2, cost: 0, jobs: 0 }), begun);
        assert_eq!(left(&recorded, begun), None);
        assert!(left(&recorded, begun + SECOND * 3).is_some(), "a plan without costs divides by nothing");
        recorded.report(ProgressEvent::Ended(Counts::default(), Duration::ZERO), begun);
        assert_eq!(left(&recorded, begun + SECOND * 3), None);
    }
}
