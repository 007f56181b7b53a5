//! Selects the actions for the targets of a run, and checks that their inputs exist.
//!
//! Looks at files, and changes none.

use camino::Utf8Path;
use distlto_planner::graph::{ActionGraph, ActionId, FileId};

use super::RunError;

/// The actions of these targets: an output's path, or a label, which several actions may share. All, if there are none.
pub(super) fn select(graph: &ActionGraph, targets: &[String]) -> Result<Vec<ActionId>, RunError> {
    if targets.is_empty() {
        return Ok(graph.topological().collect());
    }
    let mut selected = Vec::new();
    for target in targets {
        let producer = graph.find_file(Utf8Path::new(target)).and_then(|file| graph.producer(file));
        let labelled = graph.actions().filter(|(_, action)| action.label == *target).map(|(id, _)| id);
        let found: Vec<ActionId> = producer.map_or_else(|| labelled.collect(), |id| vec![id]);
        if found.is_empty() {
            return Err(RunError::NoTarget { target: target.clone(), near: near(graph, target) });
        }
        selected.extend(found);
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(selected)
}

/// Returns an output with the file name of an unknown target.
fn near(graph: &ActionGraph, target: &str) -> Option<String> {
    let name = Utf8Path::new(target).file_name()?;
    let mut outputs = graph.actions().flat_map(|(_, action)| action.outputs()).map(|file| graph.path(file));
    outputs.find(|path| path.file_name() == Some(name)).map(|path| path.to_string())
}

/// Refuses a graph with a missing input that no action writes, before anything runs.
pub(super) fn check_inputs(graph: &ActionGraph, targets: &[ActionId]) -> Result<(), RunError> {
    let mut seen = vec![false; graph.actions().len()];
    let mut asked = vec![false; graph.files().len()];
    let mut left = targets.to_vec();
    let mut missing: Option<(FileId, ActionId)> = None;
    let mut count = 0_usize;
    while let Some(id) = left.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        left.extend(graph.dependencies(id));
        for input in graph.action(id).inputs() {
            if std::mem::replace(&mut asked[input.0 as usize], true) || graph.producer(input).is_some() {
                continue;
            }
            // The action reports an input that exists and cannot be read.
            if matches!(graph.path(input).try_exists(), Ok(false)) {
                count += 1;
                if missing.is_none_or(|(first, _)| input < first) {
                    missing = Some((input, id));
                }
            }
        }
    }
    match missing {
        None => Ok(()),
        Some((input, id)) => Err(RunError::MissingInput {
            path: graph.path(input).to_owned(),
            label: graph.action(id).label.clone(),
            more: count - 1,
        }),
    }
}
