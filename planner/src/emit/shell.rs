//! The action graph as a script for a POSIX shell: every action once, each after those that it needs, until one fails.
//!
//! Syntax: <https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html>. Backend compilations run through a
//! program that fails closed; links take their words from a response file. Knows nothing of files on disk.

use std::fmt::Write;

use camino::Utf8Path;
use indexmap::IndexSet;

use super::command::{backend_words, command_line, program, words_outside_response_file};
use crate::graph::{Action, ActionGraph, BackendWork, Work};
use crate::response;
use crate::words::{shell_line, shell_quote};

/// The text of a script that is run in the link's working directory. `opt_program` runs one backend compilation: `PROG --out O
/// --input M --index S -- COMPILER FLAGS...`. Equal graphs give equal texts.
/// A graph that was checked holds no NUL, the one thing that no word can hold.
pub fn render(graph: &ActionGraph, opt_program: &str) -> String {
    let graph = graph.canonical();
    let mut text =
        "#!/bin/sh\n# One distributed ThinLTO link. Run it in the link's working directory.\nset -e\n"
            .to_owned();
    let count = graph.actions().len();
    let mut made = IndexSet::new();
    // The canonical order has each action after those that it needs.
    for (number, (id, action)) in graph.actions().enumerate() {
        let words = graph.command(id);
        let title = format!("[{}/{count}] {} {}", number + 1, action.kind().name(), action.label);
        let mut lines = format!("printf '%s\\n' {}\n", shell_quote(&title));
        for directory in directories(&graph, action).filter(|&directory| made.insert(directory.to_owned())) {
            write_text(&mut lines, format_args!("mkdir -p -- {}\n", shell_quote(directory.as_str())));
        }
        match &action.work {
            Work::Backend(backend) => lines += &compilation(&graph, action, backend, opt_program),
            Work::Prepare { .. } => lines += &command_line(&words),
            Work::ThinLink { .. } => lines += &link(&graph, action, &words),
            Work::Link { .. } => lines += &link(&graph, action, &words),
        }
        text.push_str(&lines);
        text.push('\n');
    }
    text
}

/// Where an action's outputs lie, but for the working directory.
fn directories<'g>(graph: &'g ActionGraph, action: &'g Action) -> impl Iterator<Item = &'g Utf8Path> {
    let parents = action.outputs().filter_map(|file| graph.path(file).parent());
    parents.filter(|parent| !parent.as_str().is_empty())
}

fn compilation(graph: &ActionGraph, action: &Action, backend: &BackendWork, opt_program: &str) -> String {
    let (files, words) = backend_words(graph, action, backend);
    format!("{} {} -- {}", program(opt_program), shell_line(files), command_line(&words))
}

/// A link, whose words from the linker's on stand in a response file: what a here-document holds is not looked at by the shell if its end is quoted.
fn link(graph: &ActionGraph, action: &Action, words: &[&str]) -> String {
    let (head, rest) = words.split_at(words_outside_response_file(words));
    // A checked graph has an output for each action.
    let first = action.outputs().next().map_or("", |file| graph.path(file).as_str());
    let response = format!("{first}.rsp");
    let content = response::content(rest.iter().map(|word| word.as_bytes()));
    let content = String::from_utf8_lossy(&content);
    let mut end = "END_OF_WORDS".to_owned();
    while content.lines().any(|line| line == end) {
        end.push('_');
    }
    let (place, at_file) = (shell_quote(&response), shell_quote(&format!("@{response}")));
    format!("cat > {place} <<'{end}'\n{content}{end}\n{} {at_file}", command_line(head))
}

fn write_text(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String does not fail");
}
