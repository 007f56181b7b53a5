//! The Ninja text: snapshots, and that real Ninja and a real shell read back the words that were written.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use distlto_planner::emit::ninja::{NinjaOptions, NinjaRemake, render};
use distlto_planner::graph::{Action, ActionGraph, ActionKind, Decided, FileId, Listed};
use distlto_planner::response;
use proptest::prelude::*;
use serde::Deserialize;

use super::samples;

pub fn options() -> NinjaOptions {
    NinjaOptions { opt_program: "distlto-opt".to_owned(), build_directory: None, manifest: None }
}

/// Standard output of Ninja, which must succeed.
pub fn ninja(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("ninja").current_dir(directory).args(arguments).output();
    let output = output.expect("ninja is missing: apt-get install ninja-build");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn a_plan_with_odd_names() {
    let options = NinjaOptions {
        opt_program: "tools/distlto opt".to_owned(),
        build_directory: Some("out dir/prog.distlto".into()),
        manifest: Some(NinjaRemake {
            path: "build.ninja".into(),
            source: "out dir/prog.distlto/graph.json".into(),
            command: ["distlto-plan", "out dir/prog.distlto", "--ninja", "build.ninja"]
                .map(str::to_owned)
                .to_vec(),
        }),
    };
    insta::assert_snapshot!(
        render(&samples::link().to_graph().expect("sound"), &options).expect("one-line names")
    );
}

#[test]
fn what_ninja_cannot_express() {
    let mut link = samples::link();
    link.backends[0].label = "a\nb.o".into();
    let error = render(&link.to_graph().expect("sound"), &options()).expect_err("a newline has no escape");
    insta::assert_snapshot!(error.to_string());
    let mut link = samples::link();
    samples::tell_backends(&mut link, &"x".repeat(140_000));
    let error = render(&link.to_graph().expect("sound"), &options()).expect_err("sh -c cannot take it");
    insta::assert_snapshot!(error.to_string());
    // Links of any size pass through a response file.
    let mut link = samples::link();
    link.command.push("x".repeat(140_000));
    assert!(render(&link.to_graph().expect("sound"), &options()).is_ok());
}

/// A generic lld looks for its flavour before it opens response files.
#[test]
fn a_flavour_stands_on_the_command_line() {
    let mut link = samples::link();
    // An empty word keeps all words before it on the command line too.
    link.command.retain(|word| !word.is_empty());
    let at = link.command.iter().position(|word| word == "clang").expect("the linker");
    link.command.splice(at..=at, ["lld", "-flavor", "gnu"].map(str::to_owned));
    let text = render(&link.to_graph().expect("sound"), &options()).expect("one-line names");
    assert!(text.contains(" -- lld -flavor gnu '@"), "{text}");
}

/// Every output is a target of Ninja, in the spelling of the graph.
#[test]
fn ninja_sees_every_output() {
    for graph in [samples::link().to_graph().expect("sound"), samples::lld_jobs()] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        write_and_check(directory.path(), &graph);
    }
}

#[derive(Deserialize)]
struct Entry {
    command: String,
    output: String,
}

/// What each action must run as, read by a shell, by its first output; response files expanded.
fn expected(graph: &ActionGraph) -> BTreeSet<(String, Vec<String>)> {
    let opt_words = |action: &Action| {
        let path = |file: FileId| graph.path(file).to_string();
        let backend = action.backend().expect("a backend compilation");
        let (out, module, shard) = (path(backend.object), path(backend.module), path(backend.shard));
        let prefix = action.prefix.map_or(&[][..], |prefix| graph.prefix_words(prefix));
        let named = ["-x", "ir", &module, &format!("-fthinlto-index={shard}"), "-o", &out].map(str::to_owned);
        let own = action.args.strip_prefix(&named[..]).or(action.args.strip_prefix(&named[2..]));
        let own = own.unwrap_or(&action.args);
        let mut words =
            ["distlto-opt", "--out", &out, "--input", &module, "--index", &shard].map(str::to_owned).to_vec();
        let dwo = action.outputs().map(|file| graph.path(file)).find(|path| path.extension() == Some("dwo"));
        words.extend(dwo.into_iter().flat_map(|dwo| ["--dwo".to_owned(), dwo.to_string()]));
        words.push("--".to_owned());
        words.extend(prefix.iter().chain(own).cloned());
        words
    };
    graph
        .actions()
        .map(|(id, action)| {
            let words = match action.kind() {
                ActionKind::Opt => opt_words(action),
                _ => graph.command(id).into_iter().map(str::to_owned).collect(),
            };
            let first = action.outputs().next().expect("an output");
            (graph.path(first).to_string(), words)
        })
        .collect()
}

/// Writes the Ninja file, has Ninja parse it, and a shell and the response-file rules split its commands.
fn write_and_check(directory: &Path, graph: &ActionGraph) {
    let text = render(graph, &options()).expect("one-line names");
    std::fs::write(directory.join("build.ninja"), text).expect("writing the Ninja file");
    let outputs: BTreeSet<String> = graph
        .actions()
        .flat_map(|(_, action)| action.outputs())
        .map(|file| graph.path(file).to_string())
        .collect();
    let targets: BTreeSet<String> = ninja(directory, &["-t", "targets", "all"])
        .lines()
        .map(|line| line.rsplit_once(": ").expect("PATH: RULE").0.to_owned())
        .collect();
    assert_eq!(targets, outputs);
    let entries: Vec<Entry> =
        serde_json::from_str(&ninja(directory, &["-t", "compdb"])).expect("compdb prints JSON");
    let mut found = BTreeSet::new();
    for entry in entries {
        let mut words = shell_words(directory, &entry.command);
        let mark = format!("@{}.rsp", entry.output);
        if words.last() == Some(&mark) {
            words.pop();
            words.extend(response_words(directory, &entry));
        }
        found.insert((entry.output, words));
    }
    assert_eq!(found, expected(graph));
}

/// The words as a program gets them from the shell that Ninja runs commands with.
fn shell_words(directory: &Path, command: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {command}");
    let output =
        Command::new("/bin/sh").args(["-c", &script]).current_dir(directory).output().expect("sh runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("the words were text");
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// The content that Ninja would put into the action's response file, split by the rules of LLVM and GNU tools.
fn response_words(directory: &Path, entry: &Entry) -> Vec<String> {
    let expanded: Vec<Entry> =
        serde_json::from_str(&ninja(directory, &["-t", "compdb", "-x"])).expect("compdb prints JSON");
    let expanded =
        expanded.into_iter().find(|other| other.output == entry.output).expect("the same commands");
    // `-x` puts the content in the place of `@file`, which the shell's quotes may surround.
    let at = entry.command.find(&format!("@{}.rsp", entry.output)).expect("the names hold no single quotes");
    let content = expanded.command.get(at..).expect("the same beginning");
    let quoted = entry.command.get(..at).is_some_and(|before| before.ends_with('\''));
    let content = if quoted { content.strip_suffix('\'').expect("the closing quote") } else { content };
    response::tokenize(content.as_bytes())
        .into_iter()
        .map(|word| String::from_utf8(word).expect("the words were text"))
        .collect()
}

/// A graph whose words are these: an action of each kind reading the one before.
fn chain(names: &[String], words: &[String]) -> ActionGraph {
    let mut graph = ActionGraph::new();
    let prefix = graph.prefix(words.to_vec());
    let mut last = [graph.file("source 1"), graph.file("source 2")];
    for (kind, names) in ActionKind::ALL.into_iter().zip(names.chunks_exact(2)) {
        // Ninja takes `.` and `..` and slashes for directories; a number makes each a name of its own.
        let [first, second] = [&names[0], &names[1]].map(|name| format!("{}{name}", kind.name()));
        let outputs = [graph.file(format!("{first}1")), graph.file(format!("{second}2"))];
        samples::add(
            &mut graph,
            Listed {
                kind,
                label: first,
                prefix: Some(prefix),
                args: words.iter().rev().cloned().collect(),
                inputs: last.to_vec(),
                outputs: outputs.to_vec(),
                cost: 0,
                decided: Decided::default(),
            },
        );
        last = outputs;
    }
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    /// The names of files that a response file is called after hold no single quote, which `ninja -t compdb -x`
    /// cannot expand; words and other names may.
    #[test]
    fn any_printable_name(
        names in prop::collection::vec("[ -&(-.0-~äß→]{0,9}", 8),
        words in prop::collection::vec("[ -~äß→]{1,9}", 1..5),
    ) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        write_and_check(directory.path(), &chain(&names, &words));
    }
}
