//! The schedule without processes: chosen graphs, and random graphs with random failures.

use std::collections::{BTreeMap, BTreeSet};

use distlto_executor::schedule::pools::Resource;
use distlto_executor::schedule::{Policy, Schedule, Site, State, Wait, Weight};
use distlto_planner::graph::{Action, ActionGraph, ActionId, Work};
use proptest::prelude::*;

/// Adds an action that reads the outputs of `needs` and writes a file named after itself.
fn add(graph: &mut ActionGraph, name: &str, cost: u64, needs: &[ActionId]) -> ActionId {
    let sources = needs.iter().flat_map(|&id| graph.action(id).outputs()).collect();
    let work = Work::Prepare { sources, members: vec![graph.file(format!("{name}.out"))] };
    graph.add(Action { work, label: name.to_owned(), prefix: None, args: vec![], cost })
}

/// Time is the action's cost; memory plays no part.
fn plain(graph: &ActionGraph, wanted: &[ActionId], policy: Policy) -> Schedule {
    Schedule::new(graph, wanted, policy, |id| Weight { time: graph.action(id).cost, memory: 0 })
}

/// Actions that need nothing, of these times and amounts of memory.
fn sized(weights: &[(u64, u64)]) -> (ActionGraph, Vec<ActionId>) {
    let mut graph = ActionGraph::new();
    let ids = weights.iter().enumerate().map(|(at, &(time, _))| add(&mut graph, &at.to_string(), time, &[]));
    let ids = ids.collect();
    (graph, ids)
}

fn weighed(graph: &ActionGraph, ids: &[ActionId], weights: &[(u64, u64)], budget: u64) -> Schedule {
    let weigh = |id: ActionId| {
        let (time, memory) = weights[ids.iter().position(|&known| known == id).unwrap()];
        Weight { time, memory }
    };
    let mut schedule = Schedule::new(graph, ids, Policy::KeepGoing, weigh);
    schedule.limit(Resource::Memory, budget);
    schedule
}

/// What starts next, here.
fn take(schedule: &mut Schedule) -> Option<ActionId> {
    schedule.take().map(|(id, site)| {
        assert_eq!(site, Site::Here);
        id
    })
}

fn states(schedule: &Schedule) -> BTreeMap<ActionId, State> {
    schedule.states().collect()
}

#[test]
fn the_costliest_chain_starts_first_not_the_costliest_action() {
    let mut graph = ActionGraph::new();
    let big = add(&mut graph, "big", 100, &[]);
    let head = add(&mut graph, "head", 10, &[]);
    let tail = add(&mut graph, "tail", 200, &[head]);
    let small = add(&mut graph, "small", 1, &[]);
    let mut schedule = plain(&graph, &[big, head, tail, small], Policy::KeepGoing);
    assert_eq!(take(&mut schedule), Some(head));
    assert_eq!(take(&mut schedule), Some(big));
    assert_eq!(take(&mut schedule), Some(small));
    assert_eq!(take(&mut schedule), None, "tail waits for head");
    schedule.done(head);
    assert_eq!(take(&mut schedule), Some(tail));
}

#[test]
fn equal_costs_keep_the_graphs_order() {
    let mut graph = ActionGraph::new();
    let all: Vec<_> = (0..5).map(|n| add(&mut graph, &n.to_string(), 0, &[])).collect();
    let mut backwards = all.clone();
    backwards.reverse();
    let mut schedule = plain(&graph, &backwards, Policy::KeepGoing);
    let taken: Vec<_> = std::iter::from_fn(|| take(&mut schedule)).collect();
    assert_eq!(taken, all);
}

#[test]
fn nobody_waits_for_an_action_that_is_not_wanted() {
    let mut graph = ActionGraph::new();
    let shard = add(&mut graph, "shard", 1, &[]);
    let object = add(&mut graph, "object", 1, &[shard]);
    let mut schedule = plain(&graph, &[object], Policy::default());
    assert_eq!(take(&mut schedule), Some(object));
}

#[test]
fn a_failure_skips_what_needs_it_and_stops_the_rest() {
    let mut graph = ActionGraph::new();
    let a = add(&mut graph, "a", 30, &[]);
    let b = add(&mut graph, "b", 20, &[]);
    let c = add(&mut graph, "c", 10, &[]);
    let link = add(&mut graph, "link", 1, &[a, b, c]);
    let strip = add(&mut graph, "strip", 1, &[link]);
    let wanted = [a, b, c, link, strip];

    let mut schedule = plain(&graph, &wanted, Policy::StopAtFirstFailure);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(a), Some(b)));
    assert_eq!(schedule.failed(a), [link, strip]);
    assert_eq!(take(&mut schedule), None);
    assert!(!schedule.is_finished(), "b still runs");
    schedule.done(b);
    assert!(schedule.is_finished());
    let end = states(&schedule);
    assert_eq!((end[&b], end[&c]), (State::Done, State::NotStarted));
    assert_eq!((end[&link], end[&strip]), (State::Skipped(a), State::Skipped(a)));

    let mut schedule = plain(&graph, &wanted, Policy::KeepGoing);
    take(&mut schedule);
    schedule.failed(a);
    assert_eq!((take(&mut schedule), take(&mut schedule), take(&mut schedule)), (Some(b), Some(c), None));
    schedule.done(b);
    schedule.done(c);
    assert_eq!(states(&schedule)[&link], State::Skipped(a));
    assert!(schedule.is_finished());
}

#[test]
fn a_smaller_action_overtakes_only_beside_the_one_that_does_not_fit() {
    let weights = [(100, 6), (90, 8), (80, 5), (70, 2), (60, 2)];
    let (graph, ids) = sized(&weights);
    let [first, large, middle, small, last] = ids[..] else { unreachable!() };
    let mut schedule = weighed(&graph, &ids, &weights, 10);
    assert_eq!(take(&mut schedule), Some(first));
    // 4 are left, 8 are wanted: `middle` does not fit, `small` does beside `large`, then `last` would not.
    assert_eq!(take(&mut schedule), Some(small));
    assert_eq!(take(&mut schedule), None);
    assert_eq!(schedule.memory_used(), 8);
    schedule.done(first);
    assert_eq!(take(&mut schedule), Some(large), "although `middle` would have fitted for longer");
    assert_eq!(take(&mut schedule), None);
    schedule.done(large);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(middle), Some(last)));
}

#[test]
fn an_action_beyond_the_budget_runs_alone() {
    let weights = [(100, 3), (90, 50), (80, 0), (70, 3)];
    let (graph, ids) = sized(&weights);
    let mut schedule = weighed(&graph, &ids, &weights, 10);
    assert_eq!(take(&mut schedule), Some(ids[0]));
    assert_eq!(take(&mut schedule), None, "not even one that takes nothing overtakes it");
    schedule.done(ids[0]);
    assert_eq!(take(&mut schedule), Some(ids[1]));
    assert_eq!(take(&mut schedule), None);
    schedule.done(ids[1]);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(ids[2]), Some(ids[3])));
}

#[test]
fn what_runs_takes_a_slot_and_a_token_each() {
    let weights = [(100, 4), (90, 4), (80, 4), (70, 4)];
    let (graph, ids) = sized(&weights);
    let mut schedule = weighed(&graph, &ids, &weights, 100);
    schedule.limit(Resource::Slots, 3);
    schedule.limit(Resource::Tokens, 1);
    assert_eq!(schedule.waits(), None);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(ids[0]), None));
    assert_eq!(schedule.waits(), Some(Wait::For(Resource::Tokens)));
    schedule.limit(Resource::Tokens, 9);
    assert_eq!(
        (take(&mut schedule), take(&mut schedule), take(&mut schedule)),
        (Some(ids[1]), Some(ids[2]), None)
    );
    assert_eq!(schedule.waits(), Some(Wait::For(Resource::Slots)));
    schedule.limit(Resource::Memory, 11);
    schedule.done(ids[0]);
    assert_eq!((schedule.waits(), take(&mut schedule)), (Some(Wait::For(Resource::Memory)), None));
    schedule.done(ids[1]);
    assert_eq!((take(&mut schedule), schedule.waits()), (Some(ids[3]), Some(Wait::Nothing)));
}

#[test]
fn what_was_killed_runs_again_alone_and_first_but_once() {
    let (graph, ids) = sized(&[(100, 1), (90, 1), (80, 1), (70, 1)]);
    let mut schedule = plain(&graph, &ids, Policy::KeepGoing);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(ids[0]), Some(ids[1])));
    assert!(schedule.again_alone(ids[1]));
    assert!(!schedule.again_alone(ids[2]), "it does not run");
    assert_eq!(take(&mut schedule), None, "0 still runs");
    schedule.done(ids[0]);
    assert_eq!(take(&mut schedule), Some(ids[1]));
    assert_eq!(take(&mut schedule), None, "nothing beside it");
    assert!(!schedule.again_alone(ids[1]), "once");
    schedule.failed(ids[1]);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(ids[2]), Some(ids[3])));
    schedule.stop();
    assert!(!schedule.again_alone(ids[2]), "nothing more starts");
    schedule.failed(ids[2]);
    schedule.done(ids[3]);
    assert!(schedule.is_finished());
}

#[test]
fn estimates_that_change_count_for_what_has_not_started() {
    let weights = [(100, 5), (90, 5), (80, 5), (70, 5)];
    let (graph, ids) = sized(&weights);
    let mut schedule = weighed(&graph, &ids, &weights, 10);
    assert_eq!(
        (take(&mut schedule), take(&mut schedule), take(&mut schedule)),
        (Some(ids[0]), Some(ids[1]), None)
    );
    schedule.set_memory(|_| 2);
    assert_eq!(schedule.memory_used(), 10);
    schedule.done(ids[0]);
    assert_eq!((take(&mut schedule), take(&mut schedule)), (Some(ids[2]), Some(ids[3])));
    assert_eq!(schedule.memory_used(), 9);
}

/// A random graph: for each action its cost and, by index, what it needs among those before it.
fn graphs() -> impl Strategy<Value = Vec<(u64, BTreeSet<usize>)>> {
    prop::collection::vec((0_u64..50, prop::collection::vec(any::<prop::sample::Index>(), 0..4)), 1..25)
        .prop_map(|actions| {
            actions
                .into_iter()
                .enumerate()
                .map(|(at, (cost, needs))| {
                    (cost, needs.iter().filter(|_| at > 0).map(|n| n.index(at.max(1))).collect())
                })
                .collect()
        })
}

proptest! {
    /// Whatever fails and in whatever order actions end: none starts before what it needs is done, none
    /// starts twice, and each one that did not run needs one that failed, or the run was stopped.
    #[test]
    fn no_action_runs_without_what_it_needs(
        shape in graphs(),
        unwanted in prop::collection::btree_set(0_usize..25, 0..4),
        failing in prop::collection::btree_set(0_usize..25, 0..4),
        workers in 1_usize..5,
        keep_going in any::<bool>(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 25),
    ) {
        let mut graph = ActionGraph::new();
        let mut ids = Vec::new();
        for (at, (cost, needs)) in shape.iter().enumerate() {
            let needs: Vec<_> = needs.iter().map(|&n| ids[n]).collect();
            ids.push(add(&mut graph, &at.to_string(), *cost, &needs));
        }
        let wanted: Vec<_> = (0..ids.len()).filter(|n| !unwanted.contains(n)).map(|n| ids[n]).collect();
        let policy = if keep_going { Policy::KeepGoing } else { Policy::StopAtFirstFailure };
        let mut schedule = plain(&graph, &wanted, policy);
        let (mut running, mut done, mut failed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut started = BTreeSet::new();
        let mut ends = order.iter();
        loop {
            while running.len() < workers && let Some(id) = take(&mut schedule) {
                prop_assert!(started.insert(id), "started twice");
                prop_assert!(wanted.contains(&id));
                for needed in graph.dependencies(id) {
                    prop_assert!(done.contains(&needed) || !wanted.contains(&needed));
                }
                running.push(id);
            }
            prop_assert_eq!(schedule.running_here(), running.len());
            if running.is_empty() {
                break;
            }
            let id = running.swap_remove(ends.next().map_or(0, |at| at.index(running.len())));
            if failing.contains(&ids.iter().position(|&known| known == id).unwrap()) {
                schedule.failed(id);
                failed.insert(id);
            } else {
                schedule.done(id);
                done.insert(id);
            }
        }
        prop_assert!(schedule.is_finished());
        for (id, state) in schedule.states() {
            match state {
                State::Done => prop_assert!(done.contains(&id)),
                State::Failed => prop_assert!(failed.contains(&id)),
                State::Skipped(cause) => prop_assert!(failed.contains(&cause) && !started.contains(&id)),
                State::NotStarted => prop_assert!(!keep_going && !failed.is_empty()),
                other => prop_assert!(false, "{other:?} in a finished schedule"),
            }
        }
        if failed.is_empty() {
            prop_assert_eq!(done.len(), wanted.len());
        }
    }
    /// With random memory and a budget: estimates never exceed it but of one action alone; every action runs; and the
    /// first in the order, once passed over, waits for none but those that ran at that moment.
    #[test]
    fn the_budget_holds_and_nothing_starves(
        weights in prop::collection::vec((1_u64..20, 0_u64..30), 1..40),
        budget in 1_u64..40,
        workers in 1_usize..6,
        order in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let (graph, ids) = sized(&weights);
        let memory = |id: ActionId| weights[ids.iter().position(|&known| known == id).unwrap()].1;
        let mut schedule = weighed(&graph, &ids, &weights, budget);
        let mut running: Vec<ActionId> = Vec::new();
        let mut waiting: Vec<_> = ids.clone();
        waiting.sort_by_key(|&id| (std::cmp::Reverse(graph.action(id).cost), id));
        // The first in the order, and those that ran when it was first passed over and still run.
        let mut passed: Option<(ActionId, BTreeSet<ActionId>)> = None;
        let mut ends = order.iter();
        while !waiting.is_empty() || !running.is_empty() {
            while running.len() < workers {
                let first = waiting.first().copied();
                let taken = take(&mut schedule);
                if taken == first {
                    passed = None;
                } else if let Some(first) = first {
                    match &passed {
                        Some((known, before)) if *known == first => {
                            prop_assert!(!before.is_empty(), "{first:?} waits for one that overtook it");
                        }
                        _ => passed = Some((first, running.iter().copied().collect())),
                    }
                }
                let Some(id) = taken else { break };
                waiting.retain(|&other| other != id);
                running.push(id);
                let used: u64 = running.iter().map(|&id| memory(id)).sum();
                prop_assert_eq!(used, schedule.memory_used());
                prop_assert!(used <= budget || running.len() == 1, "{} of {}", used, budget);
            }
            prop_assert!(!running.is_empty(), "nothing runs and nothing starts");
            let id = running.swap_remove(ends.next().map_or(0, |at| at.index(running.len())));
            schedule.done(id);
            if let Some((_, before)) = &mut passed {
                before.remove(&id);
            }
        }
        prop_assert!(schedule.is_finished());
        prop_assert!(schedule.states().all(|(_, state)| state == State::Done));
    }
}

#[test]
fn the_only_action_waits_too_where_others_hold_what_it_lacks() {
    let weights = [(9, 60), (1, 20)];
    let (graph, ids) = sized(&weights);
    let mut schedule = weighed(&graph, &ids, &weights, 50);
    schedule.let_first_wait(true);
    assert_eq!((take(&mut schedule), schedule.first_that_fits()), (None, None));
    assert!(!schedule.is_finished());
    // What others leave is enough for the first, so that it has waited for something.
    schedule.limit(Resource::Memory, 60);
    assert_eq!(schedule.first_that_fits(), Some(60));
    assert_eq!(take(&mut schedule), Some(ids[0]));
    assert_eq!(take(&mut schedule), None);
    schedule.done(ids[0]);
    // Nobody else goes on: one may run, whatever there is.
    schedule.limit(Resource::Memory, 0);
    assert_eq!(take(&mut schedule), None);
    schedule.let_first_wait(false);
    assert_eq!(take(&mut schedule), Some(ids[1]));
}

#[test]
fn what_is_added_takes_its_place_in_the_order() {
    let mut graph = ActionGraph::new();
    let first = add(&mut graph, "first", 10, &[]);
    let mut schedule = plain(&graph, &[first], Policy::StopAtFirstFailure);
    assert_eq!(take(&mut schedule), Some(first));
    let [small, large, last] = [20, 90, 80].map(|cost| {
        let id = add(&mut graph, &cost.to_string(), cost, &[]);
        schedule.add(&graph, id, Weight { time: cost, memory: 0 });
        id
    });
    assert_eq!((schedule.len(), schedule.total_cost()), (4, 200));
    assert_eq!(take(&mut schedule), Some(large));
    schedule.done(first);
    assert!(schedule.abandoned().is_empty());
    schedule.failed(large);
    assert_eq!((schedule.abandoned(), schedule.abandoned()), (vec![small, last], vec![]));
    assert!(schedule.is_finished());
    let late = add(&mut graph, "late", 1, &[]);
    schedule.add(&graph, late, Weight::default());
    assert_eq!((take(&mut schedule), schedule.abandoned()), (None, vec![late]));
    assert_eq!(states(&schedule)[&late], State::NotStarted);
}

#[test]
fn what_needs_a_failure_is_abandoned_with_it() {
    let mut graph = ActionGraph::new();
    let head = add(&mut graph, "head", 9, &[]);
    let tail = add(&mut graph, "tail", 1, &[head]);
    let other = add(&mut graph, "other", 1, &[]);
    let mut schedule = plain(&graph, &[head, tail, other], Policy::KeepGoing);
    assert_eq!(take(&mut schedule), Some(head));
    schedule.failed(head);
    assert_eq!((schedule.abandoned(), take(&mut schedule)), (vec![tail], Some(other)));
}
