//! What expensive backends import, from their index shards.
//!
//! Reads the few shards that a summary names. What cannot be read is left out: a summary is not what a link fails for.

use std::path::Path;

use camino::Utf8Path;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_planner::shard;
use distlto_prepare::regular;

use super::summary::{Expensive, Summary};

/// Fills in instructions and imports. The graph is the one that ran in `directory`.
pub fn fill(summary: &mut Summary, graph: &ActionGraph, directory: Option<&Path>) {
    for one in &mut summary.expensive {
        // Not there if the summary is one of several graphs.
        let _ = fill_one(one, graph, directory);
    }
}

fn fill_one(one: &mut Expensive, graph: &ActionGraph, directory: Option<&Path>) -> Option<()> {
    let id = ActionId::new(one.id);
    let (_, action) = graph.actions().nth(id.index())?;
    if action.kind != ActionKind::Opt || action.label != one.label {
        return None;
    }
    let &[module, shard, ..] = action.inputs.as_slice() else { return None };
    let place = |path: &Utf8Path| match directory {
        Some(directory) => directory.join(path),
        None => path.as_std_path().to_owned(),
    };
    let shard = shard::read(&regular::read(&place(graph.path(shard))).ok()?).ok()?;
    let own = graph.path(module).as_str();
    let imports = shard.imported_from(own).map(|import| (import.name().into_owned(), import.instructions));
    one.imports = imports.collect();
    one.imports.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    one.own_instructions = shard.cost(own).ok()?.own_instructions;
    Some(())
}
