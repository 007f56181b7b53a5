//! Checks whether a graph still agrees with the decisions of its own thin link.
//!
//! A thin link that runs again may import otherwise, and members of archives may have come or gone. A graph that it
//! wrote again itself is read again; another one is compared with the graph that the thin link wrote, `graph.json`
//! among its outputs. Without one, each backend checks its own shard.

use std::collections::BTreeMap;

use crate::plan::GraphSource;
use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, FileId};
use miette::Report;

use super::RunError;

/// The graph to go on with, if its file differs; an error if the one that the thin link wrote does.
pub(super) fn look(
    graph: &ActionGraph,
    written: Option<FileId>,
    input: &GraphSource,
) -> Result<Option<ActionGraph>, Report> {
    let newer = input.read()?;
    if newer != *graph {
        return Ok(Some(newer));
    }
    if let Some(path) = written.map(|written| graph.path(written)).filter(|path| *path != input.path()) {
        let planned = GraphSource::find(path, None)?.read()?;
        if let Some(difference) = difference(graph, &planned) {
            let index = path.parent().filter(|parent| !parent.as_str().is_empty());
            let index = index.unwrap_or(Utf8Path::new(".")).to_owned();
            return Err(RunError::Stale { graph: input.path().to_owned(), index, difference }.into());
        }
    }
    Ok(None)
}

/// The inputs and outputs of a backend.
type Files<'a> = (Vec<&'a Utf8Path>, Vec<&'a Utf8Path>);

fn backends(graph: &ActionGraph) -> BTreeMap<&str, Files<'_>> {
    let sorted = |mut paths: Vec<_>| {
        paths.sort_unstable();
        paths
    };
    let path = |id| graph.path(id);
    let backends = graph.actions().map(|(_, action)| action).filter(|action| action.backend().is_some());
    let files = backends.map(|action| {
        let (inputs, outputs) = (action.inputs().map(path).collect(), action.outputs().map(path).collect());
        (action, (sorted(inputs), sorted(outputs)))
    });
    files.map(|(action, files)| (action.label.as_str(), files)).collect()
}

/// The first difference from the thin link's graph. Further actions of the given graph do not matter.
fn difference(graph: &ActionGraph, planned: &ActionGraph) -> Option<String> {
    let (ours, theirs) = (backends(graph), backends(planned));
    let first = |new: &[&Utf8Path], old: &[&Utf8Path]| -> Option<Utf8PathBuf> {
        new.iter().find(|path| !old.contains(path)).map(|&path| path.to_owned())
    };
    for (module, (inputs, outputs)) in &theirs {
        let Some((own_inputs, own_outputs)) = ours.get(module) else {
            return Some(format!("{module} is linked too, and it has no action for that module"));
        };
        if let Some(input) = first(inputs, own_inputs) {
            return Some(format!("{module} also reads {input}"));
        }
        if let Some(output) = first(outputs, own_outputs) {
            return Some(format!("{module} is compiled to {output}"));
        }
    }
    None
}
