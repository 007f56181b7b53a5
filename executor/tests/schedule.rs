//! The schedule without processes: chosen graphs, and random graphs with random failures.

use std::collections::{BTreeMap, BTreeSet};

use distlto_executor::schedule::{Policy, Schedule, State};
use distlto_planner::graph::{Action, ActionGraph, ActionId, ActionKind};
use proptest::prelude::*;

/// Adds an action that reads the outputs of `needs` and writes a file named after itself.
fn add(graph: &mut ActionGraph, name: &str, cost: u64, needs: &[ActionId]) -> ActionId {
    let inputs = needs.iter().map(|&id| graph.action(id).outputs[0]).collect();
    let outputs = vec![graph.file(format!("{name}.out"))];
    graph.add(Action {
        kind: ActionKind::Opt,
        label: name.to_owned(),
        prefix: None,
        args: vec![],
        inputs,
        outputs,
        cost,
    })
}

fn states(schedule: &Schedule<'_>) -> BTreeMap<ActionId, State> {
    schedule.states().collect()
}

#[test]
fn the_costliest_chain_starts_first_not_the_costliest_action() {
    let mut graph = ActionGraph::new();
    let big = add(&mut graph, "big", 100, &[]);
    let head = add(&mut graph, "head", 10, &[]);
    let tail = add(&mut graph, "tail", 200, &[head]);
    let small = add(&mut graph, "small", 1, &[]);
    let mut schedule = Schedule::new(&graph, &[big, head, tail, small], Policy::KeepGoing);
    assert_eq!(schedule.take(), Some(head));
    assert_eq!(schedule.take(), Some(big));
    assert_eq!(schedule.take(), Some(small));
    assert_eq!(schedule.take(), None, "tail waits for head");
    schedule.done(head);
    assert_eq!(schedule.take(), Some(tail));
}

#[test]
fn equal_costs_keep_the_graphs_order() {
    let mut graph = ActionGraph::new();
    let all: Vec<_> = (0..5).map(|n| add(&mut graph, &n.to_string(), 0, &[])).collect();
    let mut backwards = all.clone();
    backwards.reverse();
    let mut schedule = Schedule::new(&graph, &backwards, Policy::KeepGoing);
    let taken: Vec<_> = std::iter::from_fn(|| schedule.take()).collect();
    assert_eq!(taken, all);
}

#[test]
fn nobody_waits_for_an_action_that_is_not_wanted() {
    let mut graph = ActionGraph::new();
    let shard = add(&mut graph, "shard", 1, &[]);
    let object = add(&mut graph, "object", 1, &[shard]);
    let mut schedule = Schedule::new(&graph, &[object], Policy::default());
    assert_eq!(schedule.take(), Some(object));
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

    let mut schedule = Schedule::new(&graph, &wanted, Policy::StopAtFirstFailure);
    assert_eq!((schedule.take(), schedule.take()), (Some(a), Some(b)));
    assert_eq!(schedule.failed(a), [link, strip]);
    assert_eq!(schedule.take(), None);
    assert!(!schedule.is_finished(), "b still runs");
    schedule.done(b);
    assert!(schedule.is_finished());
    let end = states(&schedule);
    assert_eq!((end[&b], end[&c]), (State::Done, State::NotStarted));
    assert_eq!((end[&link], end[&strip]), (State::Skipped(a), State::Skipped(a)));

    let mut schedule = Schedule::new(&graph, &wanted, Policy::KeepGoing);
    schedule.take();
    schedule.failed(a);
    assert_eq!((schedule.take(), schedule.take(), schedule.take()), (Some(b), Some(c), None));
    schedule.done(b);
    schedule.done(c);
    assert_eq!(states(&schedule)[&link], State::Skipped(a));
    assert!(schedule.is_finished());
    assert_eq!(schedule.cost_left(), 0);
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
        let mut schedule = Schedule::new(&graph, &wanted, policy);
        let (mut running, mut done, mut failed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut started = BTreeSet::new();
        let mut ends = order.iter();
        loop {
            while running.len() < workers && let Some(id) = schedule.take() {
                prop_assert!(started.insert(id), "started twice");
                prop_assert!(wanted.contains(&id));
                for needed in graph.dependencies(id) {
                    prop_assert!(done.contains(&needed) || !wanted.contains(&needed));
                }
                running.push(id);
            }
            prop_assert_eq!(schedule.running(), running.len());
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
            prop_assert_eq!(schedule.cost_left(), 0);
        }
    }
}
