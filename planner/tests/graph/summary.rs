//! The summary and the simulated schedules.

use distlto_planner::graph::summary::{GraphSummary, Spread, makespan};
use distlto_planner::graph::{ActionGraph, ActionKind, Decided, Listed};
use proptest::prelude::*;

use super::samples;

fn independent(costs: &[u64]) -> ActionGraph {
    let mut graph = ActionGraph::new();
    for (n, &cost) in costs.iter().enumerate() {
        let inputs = vec![graph.file(format!("m{n}")), graph.file(format!("s{n}"))];
        let outputs = vec![graph.file(format!("o{n}"))];
        let (kind, label, args) = (ActionKind::Opt, format!("m{n}"), vec!["cc".to_owned()]);
        samples::add(
            &mut graph,
            Listed { kind, label, prefix: None, args, inputs, outputs, cost, decided: Decided::default() },
        );
    }
    graph
}

#[test]
fn of_a_plan() {
    let plan = samples::link().to_graph().expect("sound");
    insta::assert_snapshot!(GraphSummary::of(&plan).to_string());
    insta::assert_snapshot!(GraphSummary::of(&samples::lld_jobs()).to_string());
    insta::assert_snapshot!(GraphSummary::of(&ActionGraph::new()).to_string());
}

/// Graham's example (Bounds on multiprocessing timing anomalies, 1969): largest first takes 11 where 9 is possible.
#[test]
fn largest_first_takes_the_largest_first() {
    let graph = independent(&[5, 5, 4, 4, 3, 3, 3]);
    assert_eq!(makespan(&graph, 3), 11);
    assert_eq!(makespan(&graph, 1), 27);
    assert_eq!(makespan(&graph, 7), 5);
    assert_eq!(makespan(&graph, 0), 27, "no worker counts as one");
}

#[test]
fn spreads() {
    assert_eq!(Spread::of(Vec::new()), Spread::default());
    assert_eq!(Spread::of((1..=10).collect()), Spread { total: 55, median: 5, ninth_decile: 9, max: 10 });
    assert_eq!(Spread::of(vec![u64::MAX, u64::MAX]).total, u64::MAX);
}

#[test]
fn critical_paths_add_up_along_chains() {
    let graph = samples::link().to_graph().expect("sound");
    let costs = graph.critical_path_costs();
    for (id, action) in graph.actions() {
        let behind = graph.dependents(id).into_iter().map(|next| costs[next.index()]).max().unwrap_or(0);
        assert_eq!(costs[id.index()], action.cost + behind);
    }
    assert_eq!(costs[0], 100, "the prepare action waits for nothing and the costliest module waits for it");
}

proptest! {
    /// No schedule beats the two lower bounds; list scheduling stays within twice their larger (Graham 1969).
    #[test]
    fn makespans_keep_their_bounds(costs in prop::collection::vec(0..1000_u64, 1..40), workers in 1..9_usize) {
        let graph = independent(&costs);
        let total: u64 = costs.iter().sum();
        let bound = (total.div_ceil(workers as u64)).max(costs.iter().copied().max().unwrap_or(0));
        let makespan = makespan(&graph, workers);
        prop_assert!(bound <= makespan && makespan <= 2 * bound);
    }
}
