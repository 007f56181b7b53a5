//! Builds the action graph of a link from its parts.
//!
//! The thin link, one opt action for each module, and the final link, which is the user's own command. Pure: does not
//! depend on files on disk.

use camino::Utf8PathBuf;

use super::error::GraphError;
use super::{Action, ActionGraph, BackendWork, Decided, FileId, Work, is_dwo};
use crate::shard::Cost;

/// One link.
#[derive(Debug, Clone, Default)]
pub struct LinkParts {
    /// The program or library that the link makes.
    pub output: Utf8PathBuf,
    /// The command that writes the graph, where that can be run again, and the graph.
    pub thin_link: Option<(Vec<String>, Utf8PathBuf)>,
    /// Other outputs of the thin link, besides graph and shards.
    pub written: Vec<Utf8PathBuf>,
    /// The command that links.
    pub command: Vec<String>,
    /// Every file that it reads and no backend writes.
    pub inputs: Vec<Utf8PathBuf>,
    /// The backends.
    pub backends: Vec<BackendParts>,
}

/// One backend compilation. All paths are relative to the link's working directory, or absolute if the link line's
/// were.
#[derive(Debug, Clone, Default)]
pub struct BackendParts {
    /// The module's name for people.
    pub label: String,
    /// The words that all backends of these flags share, with the compiler as the first.
    pub shared: Vec<String>,
    /// The words after those.
    pub args: Vec<String>,
    /// The file that holds the module.
    pub module: Utf8PathBuf,
    /// The module's index shard.
    pub shard: Utf8PathBuf,
    /// The digest of the shard's canonical form, if the final link is to compare it.
    pub digest: Option<String>,
    /// The files that hold modules it imports from.
    pub imports: Vec<Utf8PathBuf>,
    /// Further files the compilation reads, such as profiles.
    pub inputs: Vec<Utf8PathBuf>,
    /// The native object.
    pub object: Utf8PathBuf,
    /// Further files the compilation writes, such as a `.dwo`.
    pub outputs: Vec<Utf8PathBuf>,
    /// The cost of the compilation.
    pub cost: Cost,
}

impl LinkParts {
    /// The link's action graph, checked, in canonical order.
    pub fn to_graph(&self) -> Result<ActionGraph, GraphError> {
        let mut graph = ActionGraph::new();
        let label = self.output.to_string();
        let mut reads = sorted(self.inputs.clone());
        if let Some((command, place)) = &self.thin_link {
            let shards = self.backends.iter().map(|backend| backend.shard.clone());
            let writes = sorted(shards.chain(self.written.iter().cloned()).chain([place.clone()]).collect());
            let work = Work::ThinLink {
                reads: files(&mut graph, &reads),
                writes: files(&mut graph, &writes),
                graph: Some(graph.file(place)),
            };
            let action = Action { work, label: label.clone(), prefix: None, args: command.clone(), cost: 0 };
            graph.add(action);
            reads.push(place.clone());
        }
        for backend in &self.backends {
            let action = backend.action(&mut graph);
            graph.add(action);
        }
        reads.extend(self.backends.iter().map(|backend| backend.object.clone()));
        let program = graph.file(&self.output);
        let reads = files(&mut graph, &sorted(reads));
        let work = Work::Link { reads, writes: vec![program], program };
        graph.add(Action { work, label, prefix: None, args: self.command.clone(), cost: 0 });
        graph.checked()
    }
}

impl BackendParts {
    fn action(&self, graph: &mut ActionGraph) -> Action {
        let imports: Vec<_> = self.imports.iter().filter(|&file| *file != self.module).cloned().collect();
        let dwo = self.outputs.iter().find(|path| is_dwo(path));
        let also = self.outputs.iter().filter(|&path| Some(path) != dwo);
        let work = Work::Backend(BackendWork {
            module: graph.file(&self.module),
            shard: graph.file(&self.shard),
            imports: files(graph, &sorted(imports)),
            extra: files(graph, &sorted(self.inputs.clone())),
            object: graph.file(&self.object),
            dwo: dwo.map(|dwo| graph.file(dwo)),
            also: also.map(|path| graph.file(path)).collect(),
            decided: Decided { imported: self.cost.imported_instructions, shard: self.digest.clone() },
        });
        Action {
            work,
            label: self.label.clone(),
            prefix: Some(graph.prefix(self.shared.clone())),
            args: self.args.clone(),
            cost: self.cost.total(),
        }
    }
}

/// By the bytes of their paths, each once.
fn sorted(mut paths: Vec<Utf8PathBuf>) -> Vec<Utf8PathBuf> {
    paths.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    paths.dedup();
    paths
}

fn files(graph: &mut ActionGraph, paths: &[Utf8PathBuf]) -> Vec<FileId> {
    paths.iter().map(|path| graph.file(path)).collect()
}
