//! The action graph as a list of commands, in the form of clang's compilation databases.
//!
//! <https://clang.llvm.org/docs/JSONCompilationDatabase.html>. The list is in an order in which the commands can be run one
//! after the other. Knows nothing of files on disk.

use serde::Serialize;

use crate::graph::{ActionGraph, FileId};

/// One action.
#[derive(Debug, Serialize)]
struct Entry<'g> {
    directory: &'g str,
    arguments: Vec<&'g str>,
    /// The module; of another action the first file that it reads.
    file: &'g str,
    /// The object; of another action the first file that it writes.
    output: &'g str,
}

/// The list for a link whose working directory is this one.
pub fn render(graph: &ActionGraph, directory: &str) -> String {
    let graph = graph.canonical();
    let path = |file: Option<FileId>| file.map_or("", |file| graph.path(file).as_str());
    let entries = graph.actions().map(|(id, action)| {
        let backend = action.backend();
        let (module, object) = (backend.map(|backend| backend.module), backend.map(|backend| backend.object));
        Entry {
            directory,
            arguments: graph.command(id),
            file: path(module.or_else(|| action.inputs().next())),
            output: path(object.or_else(|| action.outputs().next())),
        }
    });
    let entries: Vec<Entry<'_>> = entries.collect();
    serde_json::to_string_pretty(&entries).expect("strings and lists serialise") + "\n"
}
