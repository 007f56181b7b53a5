//! Outdated actions and the reasons, by the log of earlier runs; and torn or damaged logs.

use std::fs;
use std::path::Path;

use distlto_commands::action_log::ActionLog;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind, Decided, FileId, Listed};
use distlto_record::why::{self, Change, ChangeKind, Explainer};

/// An action that names its files by path.
fn add(graph: &mut ActionGraph, args: &[&str], inputs: &[&str], outputs: &[&str]) -> ActionId {
    let mut files = |paths: &[&str]| -> Vec<FileId> { paths.iter().map(|path| graph.file(path)).collect() };
    let (inputs, outputs_of) = (files(inputs), files(outputs));
    let listed = Listed {
        kind: ActionKind::ThinLink,
        label: outputs[0].to_owned(),
        prefix: None,
        args: args.iter().map(|word| (*word).to_owned()).collect(),
        inputs,
        outputs: outputs_of,
        cost: 0,
        decided: Decided::default(),
    };
    let action = listed.typed(&|file| Some(graph.path(file)), &|_| true).expect("whole lists");
    graph.add(action)
}

/// Actions that write `out0`, `out1`, … from a file of their own and one that all share.
fn separate(directory: &Path, count: usize) -> ActionGraph {
    let mut graph = ActionGraph::new();
    fs::write(directory.join("shared"), "shared").expect("a file");
    for index in 0..count {
        let (input, output) = (format!("in {index}\nline\\"), format!("out{index}"));
        fs::write(directory.join(&input), &input).expect("a file");
        fs::write(directory.join(&output), &output).expect("a file");
        add(&mut graph, &[&input], &[&input, "shared"], &[&output]);
    }
    graph
}

fn log(directory: &Path) -> ActionLog {
    ActionLog::open(&directory.join("state"), directory).expect("a log that can be read")
}

fn finish_all(directory: &Path, graph: &ActionGraph) {
    fs::create_dir_all(directory.join("state")).expect("a directory");
    let log = log(directory);
    graph.actions().for_each(|(id, _)| log.finished(graph, id).expect("written"));
}

/// Why each action would run; nothing for one that is up to date.
fn reasons(directory: &Path, graph: &ActionGraph) -> Vec<String> {
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let found = log(directory).changes_of_all(&Explainer::new(graph), &wanted).expect("files can be read");
    found.iter().map(|(_, changes)| why::list(changes)).collect()
}

fn fresh(directory: &Path, graph: &ActionGraph) -> Vec<bool> {
    reasons(directory, graph).iter().map(String::is_empty).collect()
}

#[test]
fn each_difference_is_a_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let write = |path: &str, text: &str| fs::write(directory.join(path), text).expect("a file");
    ["a", "b", "shared", "middle", "program"].iter().for_each(|path| write(path, path));
    let graph_of = |words: &[&str], inputs: &[&str]| {
        let mut graph = ActionGraph::new();
        add(&mut graph, words, inputs, &["middle"]);
        add(&mut graph, &["link"], &["middle"], &["program"]);
        graph
    };
    let graph = graph_of(&["make"], &["a", "b"]);
    assert_eq!(reasons(directory, &graph), ["there is no record of an earlier run"; 2]);
    finish_all(directory, &graph);
    assert_eq!(reasons(directory, &graph), ["", ""]);
    write("a", "a");
    assert_eq!(reasons(directory, &graph), ["", ""], "the content is the same");

    let follows = "it reads the outputs of an action that runs: middle";
    let expect = |graph: &ActionGraph, first: &str| assert_eq!(reasons(directory, graph), [first, follows]);
    write("a", "other");
    expect(&graph, "its input a changed");
    write("b", "other");
    expect(&graph, "its input a changed; its input b changed");
    write("a", "a");
    write("b", "b");
    expect(&graph_of(&["make", "more"], &["a", "b"]), "its command changed");
    expect(&graph_of(&["make"], &["a", "shared"]), "it also reads shared; it no longer reads b");
    assert_eq!(reasons(directory, &graph_of(&["make"], &["b", "a"])), ["", ""], "the order is no difference");

    write("program", "junk");
    assert_eq!(reasons(directory, &graph), ["", "its output program was changed by something else"]);
    fs::remove_file(directory.join("program")).expect("removed");
    assert_eq!(reasons(directory, &graph), ["", "its output program is missing"]);

    // One action by itself, its dependency having run.
    write("program", "program");
    write("middle", "other");
    let log = log(directory);
    let last = graph.actions().map(|(id, _)| id).last().expect("an action");
    let changes = log.changes(&Explainer::new(&graph), last).expect("files can be read");
    assert_eq!(changes, [Change::named(ChangeKind::Input, "middle")]);

    fs::remove_file(directory.join("a")).expect("removed");
    write("middle", "middle");
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let error =
        self::log(directory).changes_of_all(&Explainer::new(&graph), &wanted).expect_err("no such input");
    assert!(error.to_string().contains("cannot read a"), "{error}");
}

#[test]
fn a_torn_log_loses_what_was_written_last_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let graph = separate(directory, 4);
    finish_all(directory, &graph);
    let path = directory.join("state/actions.log");
    let whole = fs::read(&path).expect("a log");
    // An action is recorded when its line is whole, be it without its newline.
    let mut end = 0;
    let mut actions = Vec::new();
    for line in whole.split_inclusive(|&byte| byte == b'\n') {
        end += line.len();
        actions.extend(line.starts_with(b"{\"action\"").then_some(end - 1));
    }
    assert_eq!(actions.len(), 4);
    let last = graph.actions().map(|(id, _)| id).last().expect("an action");
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).expect("a file");
        let found = fresh(directory, &graph);
        let expected: Vec<_> = actions.iter().map(|&end| end <= length).collect();
        assert_eq!(found, expected, "at {length}");
        log(directory).finished(&graph, last).expect("written");
        let after = fresh(directory, &graph);
        assert_eq!((&after[..3], after[3]), (&found[..3], true), "at {length}");
    }
}

#[test]
fn a_damaged_log_never_makes_a_stale_action_fresh() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let graph = separate(directory, 3);
    finish_all(directory, &graph);
    fs::write(directory.join("in 1\nline\\"), "edited").expect("a file");
    let path = directory.join("state/actions.log");
    let whole = fs::read(&path).expect("a log");
    for place in 0..whole.len() {
        for bit in [0, 1, 4] {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            fs::write(&path, &bytes).expect("a file");
            assert!(!fresh(directory, &graph)[1], "bit {bit} of byte {place}");
        }
    }
}

#[test]
fn the_last_record_counts_and_outdated_ones_are_dropped() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let graph = separate(directory, 60);
    for round in 0..40 {
        fs::write(directory.join("shared"), format!("{round}")).expect("a file");
        finish_all(directory, &graph);
    }
    let path = directory.join("state/actions.log");
    let lines = || fs::read_to_string(&path).expect("a log").lines().count();
    log(directory);
    assert!(lines() < 1024 + 3 * 60 * 3, "{} lines", lines());
    assert_eq!(fresh(directory, &graph), [true; 60]);
    fs::write(&path, "distlto actions 0\n").expect("a file");
    assert_eq!(fresh(directory, &graph), [false; 60], "of another version");
    finish_all(directory, &graph);
    assert_eq!(fresh(directory, &graph), [true; 60]);
}
