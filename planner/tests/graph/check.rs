//! What is no graph: every error of the checked constructor and of a plan, from the smallest input that has it.

use distlto_planner::graph::build::LinkParts;
use distlto_planner::graph::{ActionGraph, ActionKind, Decided, FileId, Listed, PrefixId};

use super::samples;

fn action(label: &str, inputs: &[u32], outputs: &[u32]) -> Listed {
    Listed {
        kind: ActionKind::Link,
        label: label.to_owned(),
        prefix: None,
        args: vec!["ld".to_owned()],
        inputs: inputs.iter().copied().map(FileId).collect(),
        outputs: outputs.iter().copied().map(FileId).collect(),
        cost: 0,
        decided: Decided::default(),
    }
}

fn error(actions: Vec<Listed>) -> String {
    let files = ["a", "b", "c", "d"].map(Into::into).to_vec();
    match ActionGraph::from_lists(files, vec![vec!["clang".to_owned()]], actions) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn unsound_actions() {
    let opt = |inputs: &[u32]| Listed { kind: ActionKind::Opt, ..action("m.o", inputs, &[2]) };
    let messages = [
        error(vec![action("p", &[0], &[9])]),
        error(vec![Listed { prefix: Some(PrefixId(1)), ..action("p", &[0], &[1]) }]),
        error(vec![Listed { args: Vec::new(), ..action("p", &[0], &[1]) }]),
        error(vec![Listed { args: vec![String::new()], ..action("p", &[0], &[1]) }]),
        error(vec![Listed { args: vec!["ld".to_owned(), "a\0".to_owned()], ..action("p", &[0], &[1]) }]),
        error(vec![action("p", &[0], &[])]),
        error(vec![opt(&[0])]),
        error(vec![action("p", &[0, 1, 0], &[2])]),
        error(vec![action("p", &[0], &[1, 2, 1])]),
        error(vec![action("p", &[0, 1], &[1])]),
        error(vec![action("p", &[0], &[2]), action("q", &[1], &[2])]),
        error(vec![action("p", &[0], &[1]), action("q", &[1, 3], &[2]), action("r", &[2], &[3])]),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn order_of_parts_does_not_matter() {
    let files = || ["a", "b", "c", "d"].map(Into::into).to_vec();
    let (p, q) = (action("p", &[0], &[1]), action("q", &[1], &[2]));
    let forth = ActionGraph::from_lists(files(), Vec::new(), vec![p.clone(), q.clone()]).expect("sound");
    let back = ActionGraph::from_lists(files(), Vec::new(), vec![q, p]).expect("sound");
    assert!(forth == back);
    let labels: Vec<_> = back.actions().map(|(_, action)| action.label.as_str()).collect();
    assert_eq!(labels, ["p", "q"]);
    assert!(back.files().eq(["a", "b", "c"]), "a file that no action names is left out");
}

/// `add` draws edges to earlier producers only; `checked` finds the others.
#[test]
fn checked_finds_late_producers() {
    let mut graph = ActionGraph::new();
    for name in ["a", "b", "c"] {
        graph.file(name);
    }
    samples::add(&mut graph, action("reader", &[1], &[2]));
    samples::add(&mut graph, action("writer", &[0], &[1]));
    let graph = graph.checked().expect("sound");
    let ids: Vec<_> = graph.topological().collect();
    assert_eq!(graph.action(ids[0]).label, "writer");
    assert_eq!(graph.dependents(ids[0]), [ids[1]]);
}

#[test]
fn unsound_links() {
    let message = |edit: fn(&mut LinkParts)| {
        let mut link = samples::link();
        edit(&mut link);
        link.to_graph().map_or_else(|error| error.to_string(), |_| "no error".to_owned())
    };
    let messages = [
        message(|link| link.backends.push(link.backends[0].clone())),
        message(|link| link.backends[0].object = link.backends[0].module.clone()),
        message(|link| link.thin_link = Some((Vec::new(), "graph.json".into()))),
        message(|link| link.inputs.push("out dir/prog".into())),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
