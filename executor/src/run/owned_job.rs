//! An action of the graph as a job that a worker owns: checks, command, outputs.
//!
//! Workers do not read the graph, which may grow while they run.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, ActionId, FileId, Work};

use crate::attempt::{self, Context, JobAttempt};
use crate::job::Job;
use crate::output::Role;
use crate::schedule::Site;
use crate::verify::Backend;

/// An action of the graph as a job.
pub(super) struct OwnedJob {
    pub(super) label: String,
    words: Vec<String>,
    backend: Option<OwnedBackend>,
    outputs: Vec<(Utf8PathBuf, Role)>,
}

/// A [`Backend`].
struct OwnedBackend {
    module: String,
    shard: String,
    others: Vec<String>,
}

impl OwnedJob {
    pub(super) fn of(graph: &ActionGraph, id: ActionId) -> Self {
        let action = graph.action(id);
        let text = |file: FileId| graph.path(file).to_string();
        let backend = action.backend().map(|files| OwnedBackend {
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

    pub(super) fn run(&self, site: Site, estimate: Duration, context: &Context<'_>) -> JobAttempt {
        let Self { label, words, backend, outputs } = self;
        let others: Vec<&str> =
            backend.iter().flat_map(|backend| backend.others.iter().map(String::as_str)).collect();
        let backend = backend.as_ref().map(|backend| Backend {
            module: &backend.module,
            shard: &backend.shard,
            others: &others,
        });
        let outputs = outputs.iter().map(|(path, role)| (Utf8Path::new(path), *role)).collect();
        let words = words.iter().map(String::as_str).collect();
        attempt::run(&Job { label, words, backend, outputs }, site, estimate, context)
    }
}
