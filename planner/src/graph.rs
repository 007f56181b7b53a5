//! The action graph: every step of one distributed ThinLTO link with its files, dependencies and cost.
//!
//! Pure values. Knows nothing of files on disk, of processes, or of who asked for the link. Every front end
//! ends in an [`ActionGraph`] and every emitter and executor starts from one.

pub mod build;
mod check;
pub mod error;
pub mod json;
mod order;
pub mod summary;
mod work;

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexSet;
use petgraph::graph::{DiGraph, NodeIndex};
pub use work::{BackendWork, Decided, Listed, Work, is_dwo};

/// The version of a graph's JSON; the reader refuses any other.
pub const VERSION: u64 = 2;

/// Names one action of an [`ActionGraph`].
pub type ActionId = NodeIndex<u32>;

/// Names one file of an [`ActionGraph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Names a command prefix that many actions share, such as the compiler and its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixId(pub u32);

/// The purpose of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionKind {
    /// Unpacks one archive into member objects.
    Prepare,
    /// Runs the linker over all modules' summaries; writes an index shard and an import list for each.
    ThinLink,
    /// Compiles one module with its imports to a native object.
    Opt,
    /// Links the native objects to the program.
    Link,
}

impl ActionKind {
    /// All kinds, in the order in which a link runs them.
    pub const ALL: [Self; 4] = [Self::Prepare, Self::ThinLink, Self::Opt, Self::Link];

    /// The kind's name in the graph's JSON: `prepare`, `thin-link`, `opt` or `link`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::ThinLink => "thin-link",
            Self::Opt => "opt",
            Self::Link => "link",
        }
    }

    /// The kind of a name that [`ActionKind::name`] gives.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One command with the files that it reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The purpose of the action, and its files.
    pub work: Work,
    /// The action's name for people: the module id of an opt action, the archive, or the program.
    pub label: String,
    /// Words that come first in the command and are shared with other actions.
    pub prefix: Option<PrefixId>,
    /// The rest of the command.
    pub args: Vec<String>,
    /// Relative cost, in instructions (own and imported) for an opt action; 0 where nothing is known.
    pub cost: u64,
}

impl Action {
    /// Returns the purpose of the action.
    pub fn kind(&self) -> ActionKind {
        self.work.kind()
    }

    /// Every file the command reads.
    pub fn inputs(&self) -> impl Iterator<Item = FileId> + Clone {
        self.work.inputs()
    }

    /// Every file the command writes.
    pub fn outputs(&self) -> impl Iterator<Item = FileId> + Clone {
        self.work.outputs()
    }

    /// The files of a backend compilation, if it is one.
    pub fn backend(&self) -> Option<&BackendWork> {
        match &self.work {
            Work::Backend(backend) => Some(backend),
            _ => None,
        }
    }
}

/// The actions of one link. An edge `a -> b` says that `b` needs an output of `a`.
#[derive(Debug, Clone, Default)]
pub struct ActionGraph {
    actions: DiGraph<Action, (), u32>,
    files: IndexSet<Utf8PathBuf>,
    prefixes: IndexSet<Vec<String>>,
    producers: Vec<Option<ActionId>>,
    is_record: bool,
}

impl ActionGraph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the graph records the work of one linker process. The actions of such a graph cannot run one by
    /// one.
    pub fn is_record(&self) -> bool {
        self.is_record
    }

    /// Makes the graph such a record.
    pub fn into_record(self) -> Self {
        Self { is_record: true, ..self }
    }

    /// The id of a file; one path has one id. Paths are relative to the link's working directory,
    /// or absolute where the link line's were.
    pub fn file(&mut self, path: impl AsRef<Utf8Path>) -> FileId {
        let path = path.as_ref();
        let index = match self.files.get_index_of(path) {
            Some(index) => index,
            None => {
                self.producers.push(None);
                self.files.insert_full(path.to_owned()).0
            }
        };
        FileId(u32::try_from(index).expect("a graph of over four billion files does not fit in memory"))
    }

    /// The id of a shared command prefix; one list of words has one id.
    pub fn prefix(&mut self, words: Vec<String>) -> PrefixId {
        let index = self.prefixes.insert_full(words).0;
        PrefixId(u32::try_from(index).expect("a graph of over four billion prefixes does not fit in memory"))
    }

    /// Adds an action. Edges follow from its files: an action that reads a file depends on the action
    /// that writes it, so producers are added before their consumers.
    pub fn add(&mut self, action: Action) -> ActionId {
        // Searching a thin link's edges for each of its readers would take quadratic time; a list of
        // distinct producers needs no search, for the action is in no edge yet.
        let mut producers: Vec<_> = action.inputs().filter_map(|input| self.producer(input)).collect();
        producers.sort_unstable();
        producers.dedup();
        let outputs: Vec<_> = action.outputs().collect();
        let id = self.actions.add_node(action);
        for producer in producers {
            self.actions.add_edge(producer, id, ());
        }
        for output in outputs {
            self.producers[output.0 as usize] = Some(id);
        }
        id
    }

    /// One action.
    pub fn action(&self, id: ActionId) -> &Action {
        &self.actions[id]
    }

    /// Sets the cost of an action, for a cost found out after the graph was made.
    pub fn set_cost(&mut self, id: ActionId, cost: u64) {
        self.actions[id].cost = cost;
    }

    /// Gives an action's command other words after its prefix, where a program is elsewhere than the graph says.
    pub fn set_args(&mut self, id: ActionId, args: Vec<String>) {
        self.actions[id].args = args;
    }

    /// All actions in the order in which they were added, which is an order they can run in.
    pub fn actions(&self) -> impl ExactSizeIterator<Item = (ActionId, &Action)> {
        self.actions.node_indices().map(|id| (id, &self.actions[id]))
    }

    /// Returns the actions that write this action's inputs, sorted.
    pub fn dependencies(&self, id: ActionId) -> Vec<ActionId> {
        let mut found: Vec<_> = self.actions.neighbors_directed(id, petgraph::Direction::Incoming).collect();
        found.sort_unstable();
        found
    }

    /// The actions that read an output of this one, sorted.
    pub fn dependents(&self, id: ActionId) -> Vec<ActionId> {
        let mut found: Vec<_> = self.actions.neighbors(id).collect();
        found.sort_unstable();
        found
    }

    /// The action that writes a file, if one does.
    pub fn producer(&self, file: FileId) -> Option<ActionId> {
        self.producers[file.0 as usize]
    }

    /// A file's path.
    pub fn path(&self, file: FileId) -> &Utf8Path {
        &self.files[file.0 as usize]
    }

    /// The id of a path, if an action names it.
    pub fn find_file(&self, path: &Utf8Path) -> Option<FileId> {
        let index = self.files.get_index_of(path)?;
        u32::try_from(index).ok().map(FileId)
    }

    /// All files in the order of their ids.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Utf8Path> {
        self.files.iter().map(Utf8PathBuf::as_path)
    }

    /// A shared prefix's words.
    pub fn prefix_words(&self, prefix: PrefixId) -> &[String] {
        &self.prefixes[prefix.0 as usize]
    }

    /// All shared prefixes in the order of their ids.
    pub fn prefixes(&self) -> impl ExactSizeIterator<Item = &[String]> {
        self.prefixes.iter().map(Vec::as_slice)
    }

    /// An action's whole command: its prefix, then its own words.
    pub fn command(&self, id: ActionId) -> Vec<&str> {
        let action = self.action(id);
        let prefix = action.prefix.map_or(&[][..], |prefix| self.prefix_words(prefix));
        prefix.iter().chain(&action.args).map(String::as_str).collect()
    }
}

/// Equal tables and equal actions, each in the same order; [`ActionGraph::canonical`] makes orders equal.
impl PartialEq for ActionGraph {
    fn eq(&self, other: &Self) -> bool {
        self.files().map(Utf8Path::as_str).eq(other.files().map(Utf8Path::as_str))
            && self.prefixes().eq(other.prefixes())
            && self.actions().eq(other.actions())
            && self.is_record == other.is_record
    }
}

impl Eq for ActionGraph {}
