//! An action as work: checks, command, outputs. Independent of their execution.
//!
//! It owns its text: workers do not read the graph, which may grow while they run.

use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, ActionId, FileId, Work};
use distlto_planner::words::{shell_line, shell_quote};

use crate::output::Role;
use crate::verify::Backend;

/// An action as work.
#[derive(Debug, Clone)]
pub struct Job {
    /// The module id of a backend compilation, or the action's name for people.
    pub label: String,
    /// The command; the first word is the program.
    pub words: Vec<String>,
    /// The files to check before the command runs, for a backend compilation.
    pub backend: Option<Backend>,
    /// The command's outputs. Those of a backend compilation are staged, others are checked in place.
    pub outputs: Vec<(Utf8PathBuf, Role)>,
}

impl Job {
    /// An action of a graph.
    pub fn of(graph: &ActionGraph, id: ActionId) -> Self {
        let action = graph.action(id);
        let text = |file: FileId| graph.path(file).to_string();
        let backend = action.backend().map(|files| Backend {
            module: text(files.module),
            shard: text(files.shard),
            others: files.others().map(text).collect(),
        });
        let role = |output: FileId| match &action.work {
            Work::Prepare { .. } | Work::ThinLink { .. } => Role::Any,
            Work::Link { .. } => Role::File,
            Work::Backend(files) if files.dwo == Some(output) => Role::Dwo,
            Work::Backend(_) => Role::Object,
        };
        let outputs = action.outputs().map(|output| (graph.path(output).to_owned(), role(output)));
        let words = graph.command(id).into_iter().map(str::to_owned);
        Self { label: action.label.clone(), words: words.collect(), backend, outputs: outputs.collect() }
    }

    /// Returns the declared inputs of a backend compilation.
    pub fn inputs(&self) -> impl Iterator<Item = &Utf8Path> {
        let backend = self.backend.iter();
        backend
            .flat_map(|backend| [&backend.module, &backend.shard].into_iter().chain(&backend.others))
            .map(Utf8Path::new)
    }

    /// The command as a line to paste into a shell. Runs in the directory of the job.
    pub fn command_line(&self, directory: Option<&Path>) -> String {
        command_line(self.words.iter().map(String::as_str), directory)
    }
}

/// See [`Job::command_line`].
pub(crate) fn command_line<'a>(words: impl Iterator<Item = &'a str>, directory: Option<&Path>) -> String {
    let line = shell_line(words);
    match directory.and_then(Path::to_str) {
        Some(directory) => format!("cd {} && {line}", shell_quote(directory)),
        None => line,
    }
}
