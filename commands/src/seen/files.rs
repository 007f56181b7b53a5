//! The places of the files of a link's modules, and their compiler, for readers of these files. Both come from the
//! link's graph, or else from the named thing.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, ActionKind, BackendWork};
use distlto_planner::state::Place;

use super::Seen;

/// The files of a module.
#[derive(Debug, Clone)]
pub struct ModuleFiles {
    /// Its bitcode.
    pub module: Utf8PathBuf,
    /// The archive that holds it, where it may be in no file of its own.
    pub archive: Option<Utf8PathBuf>,
    /// Its index shard.
    pub shard: Utf8PathBuf,
}

/// The known files of a link.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those of each module, in the order of [`Seen::modules`].
    pub modules: Vec<ModuleFiles>,
    /// The compiler of the backends, where one is named.
    pub compiler: Option<String>,
    /// The other inputs of the linker.
    pub others: Vec<Utf8PathBuf>,
}

impl Listing {
    /// Of the modules of a graph, in the order of its actions.
    pub fn of(graph: &ActionGraph) -> Self {
        let backends = || graph.actions().filter_map(|(id, action)| Some((id, action.backend()?)));
        let files = |(_, backend): (_, &BackendWork)| {
            let module = graph.path(backend.module).to_owned();
            // A record calls a member by its archive and its name.
            let member = module.as_str().strip_suffix(')').and_then(|path| path.rsplit_once('('));
            let archive = member.filter(|_| graph.is_record()).map(|(archive, _)| Utf8PathBuf::from(archive));
            ModuleFiles { archive, module, shard: graph.path(backend.shard).to_owned() }
        };
        let modules: Vec<ModuleFiles> = backends().map(files).collect();
        let compiler = backends().next().and_then(|(id, _)| Some((*graph.command(id).first()?).to_owned()));
        let known: HashSet<&Utf8Path> = modules
            .iter()
            .flat_map(|files| [Some(files.module.as_path()), files.archive.as_deref()])
            .chain(backends().map(|(_, backend)| Some(graph.path(backend.object))))
            .flatten()
            .collect();
        let links = graph.actions().filter(|(_, action)| action.kind() == ActionKind::Link);
        let read = links.flat_map(|(_, action)| action.inputs()).map(|file| graph.path(file));
        let others = read.filter(|path| !known.contains(path) && !Place::Graph.is_name_of(path));
        Self { others: others.map(Utf8Path::to_owned).collect(), compiler, modules }
    }
}

impl Seen {
    /// Those of a module by its number; paths are relative to where the link ran.
    pub fn files(&self, number: usize) -> Option<ModuleFiles> {
        self.listing.modules.get(number).cloned()
    }

    /// Returns the inputs of the linker besides modules and their objects.
    pub fn others(&self) -> &[Utf8PathBuf] {
        &self.listing.others
    }

    /// The compiler of the backends.
    pub fn compiler(&self) -> Option<&str> {
        self.listing.compiler.as_deref()
    }
}
