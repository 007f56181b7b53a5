//! The shell script, run by a real shell with programs that write down their words; and the list of commands.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use distlto_planner::emit::{compile_commands, shell};
use distlto_planner::graph::build::LinkParts;
use distlto_planner::graph::{ActionGraph, ActionKind};
use distlto_planner::response;

use super::samples;

/// Writes down its words, each ended by a NUL, and fails where one of them is the file `fails` says.
const PROGRAM: &str = "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" '' >> log\n\
                       for word; do [ \"$word\" != \"$(cat fails)\" ] || exit 3; done\n";

fn graph() -> ActionGraph {
    let thin_link = |link: &mut LinkParts, word: &str| {
        let command = link.thin_link.as_mut().map(|(command, _)| command);
        command.expect("it has one").push(word.to_owned());
    };
    let mut link = samples::link();
    link.output = "new\nline".into();
    // The log ends a run with an empty word.
    link.command.retain(|word| !word.is_empty());
    link.thin_link.iter_mut().for_each(|(command, _)| command.retain(|word| !word.is_empty()));
    samples::tell_backends(&mut link, "-DQUOTES='\"`$(date)`\\");
    thin_link(&mut link, "END_OF_WORDS");
    thin_link(&mut link, "two\nlines");
    link.to_graph().expect("sound")
}

/// Runs the script; gives its exit code and the words of each program that it ran, response files expanded.
fn run(directory: &Path, fails: &str) -> (Option<i32>, Vec<Vec<String>>) {
    fs::create_dir(directory.join("bin")).expect("made");
    for name in ["distlto", "distlto-index", "opt program", "clang"] {
        let path = directory.join("bin").join(name);
        fs::write(&path, PROGRAM).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("made executable");
    }
    fs::write(directory.join("fails"), fails).expect("written");
    fs::write(directory.join("script"), shell::render(&graph(), "opt program")).expect("written");
    let path = format!("{}:{}", directory.join("bin").display(), std::env::var("PATH").expect("a PATH"));
    let mut command = Command::new("sh");
    let output = command.arg("script").current_dir(directory).env("PATH", path).output().expect("a shell");
    let log = fs::read_to_string(directory.join("log")).expect("programs ran");
    let mut runs = vec![Vec::new()];
    for word in log.split('\0') {
        match (word, word.strip_prefix('@')) {
            ("", _) => runs.push(Vec::new()),
            (_, Some(file)) => {
                let text = fs::read(directory.join(file)).expect("a response file");
                let words = response::tokenize(&text).into_iter().map(String::from_utf8);
                runs.last_mut().expect("one").extend(words.map(|word| word.expect("text")));
            }
            (word, None) => runs.last_mut().expect("one").push(word.to_owned()),
        }
    }
    runs.retain(|run| !run.is_empty());
    (output.status.code(), runs)
}

#[test]
fn every_word_arrives_as_it_is_and_in_an_order_that_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, runs) = run(directory.path(), "nothing fails");
    assert_eq!(code, Some(0));
    let graph = graph().canonical();
    assert_eq!(runs.len(), graph.actions().len());
    for (run, (id, action)) in runs.iter().zip(graph.actions()) {
        // What names no file is an empty word, which the log leaves out too.
        let words: Vec<&str> = graph.command(id).into_iter().filter(|word| !word.is_empty()).collect();
        if action.kind() != ActionKind::Opt {
            assert_eq!(run, &words, "{}", action.label);
            continue;
        }
        let dashes = run.iter().position(|word| word == "--").expect("the compiler follows");
        assert_eq!(run[..2], ["opt program", "--out"]);
        assert!(run[dashes + 1..].iter().all(|word| words.contains(&word.as_str())), "{run:?} of {words:?}");
        assert!(run.contains(&"-DQUOTES='\"`$(date)`\\".to_owned()), "{run:?}");
    }
    assert!(directory.path().join("native/a dir").is_dir(), "directories of outputs are made");
}

#[test]
fn the_first_failure_ends_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, runs) = run(directory.path(), "native/a dir/a:1.o");
    assert_eq!(code, Some(3));
    let last = runs.last().expect("some ran");
    assert!(last.contains(&"native/a dir/a:1.o".to_owned()), "{last:?}");
    assert!(!runs.iter().any(|run| run[0] == "clang"), "nothing is linked: {runs:?}");
}

#[test]
fn the_list_has_every_command_with_its_files() {
    let graph = graph();
    let list: serde_json::Value =
        serde_json::from_str(&compile_commands::render(&graph, "/a \"directory\"")).expect("JSON");
    let list = list.as_array().expect("a list");
    let canonical = graph.canonical();
    assert_eq!(list.len(), canonical.actions().len());
    for (entry, (id, action)) in list.iter().zip(canonical.actions()) {
        assert_eq!(entry["directory"], "/a \"directory\"");
        assert_eq!(entry["arguments"], serde_json::json!(canonical.command(id)));
        let of = |file| canonical.path(file).as_str();
        assert!(action.inputs().any(|file| entry["file"] == of(file)), "{entry}");
        assert!(action.outputs().any(|file| entry["output"] == of(file)), "{entry}");
        if let Some(backend) = action.backend() {
            assert_eq!(
                (&entry["file"], &entry["output"]),
                (&of(backend.module).into(), &of(backend.object).into())
            );
        }
    }
}
