//! An action of the graph as a job: what to check, what to run, what it writes.

use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};

use crate::job::Job;
use crate::verify::{Backend, Role};

/// What a backend compilation reads besides its module and its shard.
pub(super) fn others_of(graph: &ActionGraph, id: ActionId) -> Vec<&str> {
    let inputs = graph.action(id).inputs.iter().skip(2);
    inputs.map(|&input| graph.path(input).as_str()).collect()
}

/// An action of the graph as a job. A backend compilation's inputs are its module, its shard, then others.
pub(super) fn job_of<'a>(graph: &'a ActionGraph, id: ActionId, others: &'a [&'a str]) -> Job<'a> {
    let action = graph.action(id);
    let backend = match (action.kind, action.inputs.as_slice()) {
        (ActionKind::Opt, &[module, shard, ..]) => {
            Some(Backend { module: graph.path(module).as_str(), shard: graph.path(shard).as_str(), others })
        }
        _ => None,
    };
    let role = |path: &camino::Utf8Path| match backend {
        None if action.kind == ActionKind::ThinLink || action.kind == ActionKind::Prepare => Role::Any,
        None => Role::File,
        Some(_) if path.extension() == Some("dwo") => Role::Dwo,
        Some(_) => Role::Object,
    };
    let outputs = action.outputs.iter().map(|&output| graph.path(output)).map(|path| (path, role(path)));
    Job { label: &action.label, words: graph.command(id), backend, outputs: outputs.collect() }
}
