//! The places of a link's index shards and other inputs, for readers of these files. They come from the link's graph,
//! or else from the named thing.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, ActionKind, BackendWork};
use distlto_planner::state::Place;

use super::LinkDescription;

/// The known files of a link.
#[derive(Debug, Default)]
pub struct Listing {
    /// The index shard of each module, in the order of [`LinkDescription::modules`].
    pub shards: Vec<Utf8PathBuf>,
    /// The other inputs of the linker.
    pub others: Vec<Utf8PathBuf>,
}

impl Listing {
    /// Of the modules of a graph, in the order of its actions.
    pub fn of(graph: &ActionGraph) -> Self {
        let backends = || graph.actions().filter_map(|(_, action)| action.backend());
        let inputs = |backend: &BackendWork| {
            let module = graph.path(backend.module);
            // A record calls a member by its archive and its name.
            let member = module.as_str().strip_suffix(')').and_then(|path| path.rsplit_once('('));
            let archive = member.filter(|_| graph.is_record()).map(|(archive, _)| Utf8Path::new(archive));
            [Some(module), archive, Some(graph.path(backend.object))]
        };
        let known: HashSet<&Utf8Path> = backends().flat_map(inputs).flatten().collect();
        let links = graph.actions().filter(|(_, action)| action.kind() == ActionKind::Link);
        let read = links.flat_map(|(_, action)| action.inputs()).map(|file| graph.path(file));
        let others = read.filter(|path| !known.contains(path) && !Place::Graph.is_name_of(path));
        let shards = backends().map(|backend| graph.path(backend.shard).to_owned()).collect();
        Self { shards, others: others.map(Utf8Path::to_owned).collect() }
    }
}

impl LinkDescription {
    /// The index shard of a module by its number.
    pub fn shard(&self, number: usize) -> Option<Utf8PathBuf> {
        Some(self.place(self.listing.shards.get(number)?))
    }

    /// Returns the inputs of the linker besides modules and their objects.
    pub fn others(&self) -> &[Utf8PathBuf] {
        &self.listing.others
    }
}
