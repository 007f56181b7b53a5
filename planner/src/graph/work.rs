//! The purpose of an action, with the role of each of its files, so that nobody asks a list for its second entry.
//!
//! The JSON and the schedule use lists of an action's files, which are functions of this. [`Listed`] converts back,
//! and is the one place that knows the meaning of positions in those lists. Does not depend on commands.

use camino::Utf8Path;

use super::error::GraphError;
use super::{Action, ActionKind, FileId, PrefixId};
use crate::state::Place;

/// The purpose of an action, and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Unpacks one archive.
    Prepare {
        /// The archive and the files that it refers to.
        sources: Vec<FileId>,
        /// The members that lie in its directory.
        members: Vec<FileId>,
    },
    /// Runs the linker over all modules' summaries.
    ThinLink {
        /// All that the linker reads.
        reads: Vec<FileId>,
        /// Shards, lists of imports, and other outputs.
        writes: Vec<FileId>,
        /// The graph itself, which is one of `writes`.
        graph: Option<FileId>,
    },
    /// Compiles one module.
    Backend(BackendWork),
    /// Links the native objects.
    Link {
        /// All that the linker reads.
        reads: Vec<FileId>,
        /// All that the linker writes.
        writes: Vec<FileId>,
        /// The program or library, which is one of `writes`.
        program: FileId,
    },
}

/// The files of one backend compilation.
#[derive(Debug, Clone)]
pub struct BackendWork {
    /// The file that holds the module.
    pub module: FileId,
    /// Its index shard.
    pub shard: FileId,
    /// The files that hold modules it imports from.
    pub imports: Vec<FileId>,
    /// Other inputs of the compiler, such as profiles.
    pub extra: Vec<FileId>,
    /// The native object.
    pub object: FileId,
    /// Split debug information.
    pub dwo: Option<FileId>,
    /// Other outputs.
    pub also: Vec<FileId>,
    /// The thin link's decisions.
    pub decided: Decided,
}

/// The thin link's decisions about a module, where known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// Imported IR instructions, a part of the action's cost.
    pub imported: u64,
    /// The digest of the shard's canonical form ([`digest`](crate::shard::digest)), by which the final link knows the
    /// shard that the object was made from.
    pub shard: Option<String>,
}

impl BackendWork {
    /// Returns the compiler's inputs besides module and shard: imports, then the rest.
    pub fn others(&self) -> impl Iterator<Item = FileId> + Clone {
        self.imports.iter().chain(&self.extra).copied()
    }
}

/// Ignores where the imports end: a text does not say it for imports that its graph does not compile.
impl PartialEq for BackendWork {
    fn eq(&self, other: &Self) -> bool {
        (self.module, self.shard, self.object, self.dwo)
            == (other.module, other.shard, other.object, other.dwo)
            && self.also == other.also
            && self.decided == other.decided
            && self.others().eq(other.others())
    }
}

impl Eq for BackendWork {}

impl Work {
    /// Returns the kind of the action.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Prepare { .. } => ActionKind::Prepare,
            Self::ThinLink { .. } => ActionKind::ThinLink,
            Self::Backend(_) => ActionKind::Opt,
            Self::Link { .. } => ActionKind::Link,
        }
    }

    /// Every file that is read. Of a backend compilation: the module, its shard, its imports, the rest.
    pub fn inputs(&self) -> impl Iterator<Item = FileId> + Clone {
        let (named, lists): ([Option<FileId>; 2], [&[FileId]; 2]) = match self {
            Self::Prepare { sources, .. } => ([None, None], [sources, &[]]),
            Self::ThinLink { reads, .. } | Self::Link { reads, .. } => ([None, None], [reads, &[]]),
            Self::Backend(backend) => {
                ([Some(backend.module), Some(backend.shard)], [&backend.imports, &backend.extra])
            }
        };
        named.into_iter().flatten().chain(lists.into_iter().flatten().copied())
    }

    /// Every file that is written. Of a backend compilation the native object comes first.
    pub fn outputs(&self) -> impl Iterator<Item = FileId> + Clone {
        let (named, list): ([Option<FileId>; 2], &[FileId]) = match self {
            Self::Prepare { members, .. } => ([None, None], members),
            Self::ThinLink { writes, .. } | Self::Link { writes, .. } => ([None, None], writes),
            Self::Backend(backend) => ([Some(backend.object), backend.dwo], &backend.also),
        };
        named.into_iter().flatten().chain(list.iter().copied())
    }

    /// The same with other files.
    pub fn map(&self, mut file: impl FnMut(FileId) -> FileId) -> Self {
        let mut all = |files: &[FileId]| files.iter().map(|&id| file(id)).collect();
        match self {
            Self::Prepare { sources, members } => {
                Self::Prepare { sources: all(sources), members: all(members) }
            }
            Self::ThinLink { reads, writes, graph } => {
                Self::ThinLink { reads: all(reads), writes: all(writes), graph: graph.map(file) }
            }
            Self::Backend(backend) => Self::Backend(BackendWork {
                imports: all(&backend.imports),
                extra: all(&backend.extra),
                also: all(&backend.also),
                module: file(backend.module),
                shard: file(backend.shard),
                object: file(backend.object),
                dwo: backend.dwo.map(file),
                decided: backend.decided.clone(),
            }),
            Self::Link { reads, writes, program } => {
                Self::Link { reads: all(reads), writes: all(writes), program: file(*program) }
            }
        }
    }
}

/// An action as a text lists it: its files in two lists, with positions that give their roles
/// (`docs/action-graph.md`).
#[derive(Debug, Clone)]
pub struct Listed {
    /// The purpose of the action.
    pub kind: ActionKind,
    /// The action's name for people.
    pub label: String,
    /// Words that come first in the command.
    pub prefix: Option<PrefixId>,
    /// The rest of the command.
    pub args: Vec<String>,
    /// Of a backend compilation: the module, its shard, its imports, the rest.
    pub inputs: Vec<FileId>,
    /// Of a backend compilation: the object, the rest.
    pub outputs: Vec<FileId>,
    /// Relative cost.
    pub cost: u64,
    /// Of a backend compilation.
    pub decided: Decided,
}

impl Listed {
    /// The action. `path` is a file's, if there is such a file; `is_module` says of an input of a backend compilation
    /// that it holds a module, so that it is imported from.
    pub fn typed<'a>(
        self,
        path: &dyn Fn(FileId) -> Option<&'a Utf8Path>,
        is_module: &dyn Fn(FileId) -> bool,
    ) -> Result<Action, GraphError> {
        let Some((&first, others)) = self.outputs.split_first() else {
            return Err(GraphError::NoOutput { label: self.label });
        };
        let named = |what: &dyn Fn(&Utf8Path) -> bool| {
            self.outputs.iter().copied().find(|&output| path(output).is_some_and(what))
        };
        let work = match self.kind {
            ActionKind::Prepare => Work::Prepare { sources: self.inputs, members: self.outputs },
            ActionKind::ThinLink => {
                let graph = named(&|path| Place::Graph.is_name_of(path));
                Work::ThinLink { reads: self.inputs, writes: self.outputs, graph }
            }
            ActionKind::Opt => {
                let &[module, shard, ref read @ ..] = self.inputs.as_slice() else {
                    return Err(GraphError::NoModule { label: self.label, count: self.inputs.len() });
                };
                let imported = read.iter().take_while(|&&input| is_module(input)).count();
                let (imports, extra) = read.split_at(imported);
                let is_dwo = |&file: &FileId| path(file).is_some_and(is_dwo);
                let dwo = others.iter().copied().find(is_dwo);
                Work::Backend(BackendWork {
                    module,
                    shard,
                    imports: imports.to_vec(),
                    extra: extra.to_vec(),
                    object: first,
                    dwo,
                    also: others.iter().copied().filter(|&file| Some(file) != dwo).collect(),
                    decided: self.decided,
                })
            }
            ActionKind::Link => {
                let program = named(&|path| path.as_str() == self.label).unwrap_or(first);
                Work::Link { reads: self.inputs, writes: self.outputs, program }
            }
        };
        Ok(Action { work, label: self.label, prefix: self.prefix, args: self.args, cost: self.cost })
    }
}

/// Whether a file is named as compilers name split debug information.
pub fn is_dwo(path: &Utf8Path) -> bool {
    path.extension() == Some("dwo")
}
