//! An action as work: checks, command, outputs. Independent of their execution.

use std::path::Path;

use camino::Utf8Path;
use distlto_planner::words::{shell_line, shell_quote};

use crate::output::Role;
use crate::verify::Backend;

/// An action as work.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// The module id of a backend compilation, or the action's name for people.
    pub label: &'a str,
    /// The command; the first word is the program.
    pub words: Vec<&'a str>,
    /// The files to check before the command runs, for a backend compilation.
    pub backend: Option<Backend<'a>>,
    /// The command's outputs. Those of a backend compilation are staged, others are checked in place.
    pub outputs: Vec<(&'a Utf8Path, Role)>,
}

impl<'a> Job<'a> {
    /// Returns the declared inputs of a backend compilation.
    pub fn inputs(&self) -> impl Iterator<Item = &'a Utf8Path> + use<'a> {
        let backend = self.backend.into_iter();
        backend
            .flat_map(|backend| {
                [backend.module, backend.shard].into_iter().chain(backend.others.iter().copied())
            })
            .map(Utf8Path::new)
    }

    /// The command as a line to paste into a shell. Runs in the directory of the job.
    pub fn command_line(&self, directory: Option<&Path>) -> String {
        command_line(&self.words, directory)
    }
}

/// See [`Job::command_line`].
pub(crate) fn command_line(words: &[&str], directory: Option<&Path>) -> String {
    let line = shell_line(words.iter().copied());
    match directory.and_then(Path::to_str) {
        Some(directory) => format!("cd {} && {line}", shell_quote(directory)),
        None => line,
    }
}
