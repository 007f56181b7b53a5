//! The imports of expensive backends, from their index shards.
//!
//! Reads the few shards that a summary names. Unreadable ones are left out: no link fails for its summary.

use std::path::Path;

use camino::Utf8Path;
use distlto_planner::graph::ActionGraph;
use distlto_planner::shard::{self, Shard};
use distlto_prepare::regular;

use super::summary::{Expensive, Summary};

/// Fills in instructions and imports. The graph's actions are those that ran in `directory`, by label.
pub fn fill(summary: &mut Summary, graph: &ActionGraph, directory: Option<&Path>) {
    for one in &mut summary.expensive {
        // Not there if the summary is one of several graphs.
        let _ = fill_one(one, graph, directory);
    }
}

fn fill_one(one: &mut Expensive, graph: &ActionGraph, directory: Option<&Path>) -> Option<()> {
    let mut labelled = graph.actions().map(|(_, action)| action).filter(|action| action.label == one.label);
    let backend = labelled.find_map(|action| action.backend())?;
    let place = |path: &Utf8Path| match directory {
        Some(directory) => directory.join(path),
        None => path.as_std_path().to_owned(),
    };
    let shard = shard::read(&regular::read(&place(graph.path(backend.shard))).ok()?).ok()?;
    // A module in an archive is known by its label.
    let own = [graph.path(backend.module).as_str(), &one.label].into_iter().find(|own| names(&shard, own))?;
    let imports = shard.imported_from(own).map(|import| (import.name().into_owned(), import.instructions));
    one.imports = imports.collect();
    one.imports.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    one.own_instructions = shard.cost(own).ok()?.own_instructions;
    Some(())
}

fn names(shard: &Shard, module: &str) -> bool {
    shard.modules.iter().any(|named| named.path == module.as_bytes())
}
