//! An action of the graph as a job: what to check, what to run, what it writes.

use distlto_planner::graph::{ActionGraph, ActionId, FileId, Work};

use crate::job::Job;
use crate::output::Role;
use crate::verify::Backend;

/// What a backend compilation reads besides its module and its shard.
pub(super) fn others_of(graph: &ActionGraph, id: ActionId) -> Vec<&str> {
    let others = graph.action(id).backend().into_iter().flat_map(|backend| backend.others());
    others.map(|input| graph.path(input).as_str()).collect()
}

/// An action of the graph as a job.
pub(super) fn job_of<'a>(graph: &'a ActionGraph, id: ActionId, others: &'a [&'a str]) -> Job<'a> {
    let action = graph.action(id);
    let backend = action.backend().map(|files| Backend {
        module: graph.path(files.module).as_str(),
        shard: graph.path(files.shard).as_str(),
        others,
    });
    let role = |output: FileId| match &action.work {
        Work::Prepare { .. } | Work::ThinLink { .. } => Role::Any,
        Work::Link { .. } => Role::File,
        Work::Backend(files) if files.dwo == Some(output) => Role::Dwo,
        Work::Backend(_) => Role::Object,
    };
    let outputs = action.outputs().map(|output| (graph.path(output), role(output)));
    Job { label: &action.label, words: graph.command(id), backend, outputs: outputs.collect() }
}
