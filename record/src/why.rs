//! Why an action runs, as data: the differences from the known state of its last run.
//!
//! One list of words for every way of linking, made of an action log or of the parts of a key. Knows nothing of how
//! differences are found.

use std::collections::HashSet;
use std::fmt;

use camino::Utf8Path;
use distlto_planner::graph::{ActionGraph, ActionId, FileId};
use distlto_planner::keep;
use serde::{Deserialize, Serialize};

/// The [`kind`] of imports, or of the thin link's decisions about them.
pub const IMPORTS: &str = "imports";
/// The [`kind`] of actions without an earlier run.
pub const NEW: &str = "new";

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The kind of the difference.
    pub what: ChangeKind,
    /// Which one it is, where there may be several: a file, a module, an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The kinds of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// There is no record of an earlier run.
    FirstTime,
    /// Nothing is kept between runs: each request runs the action.
    Requested,
    /// A file that it writes is not there.
    OutputMissing,
    /// A file that it writes is not as it left it.
    OutputChanged,
    /// Its command, in any way.
    Command,
    /// The compiler.
    Compiler,
    /// The compiler's flags.
    Flags,
    /// The module that is compiled.
    Module,
    /// The module's shard, with the decisions of the thin link.
    Shard,
    /// A module that it imports from.
    Import,
    /// Another file that it reads, such as a profile.
    Input,
    /// It reads a file that it did not read before.
    InputAdded,
    /// It does not read a file that it read before.
    InputRemoved,
    /// An action that writes one of its inputs runs.
    Dependency,
    /// Some of its inputs are not known.
    NotKnown,
}

impl Change {
    /// Returns a change of a thing that exists once.
    pub fn of(what: ChangeKind) -> Self {
        Self { what, name: None }
    }

    /// Returns a change of one of several things.
    pub fn named(what: ChangeKind, name: impl Into<String>) -> Self {
        Self { what, name: Some(name.into()) }
    }
}

impl ChangeKind {
    /// Returns the noun for it, where reasons are counted.
    pub fn noun(self) -> &'static str {
        match self {
            Self::FirstTime => "first time",
            Self::Requested => "asked for",
            Self::OutputMissing => "object missing",
            Self::OutputChanged => "object changed",
            Self::Command => "command",
            Self::Compiler => "compiler",
            Self::Flags => "flags",
            Self::Module => "module",
            Self::Shard => "thin link's decisions",
            Self::Import => "import",
            Self::Input | Self::InputAdded | Self::InputRemoved => "other input",
            Self::Dependency => "dependency",
            Self::NotKnown => "not known",
        }
    }
}

/// Returns the change that explains most: that of a thing of the user's own rather than of a decision that follows from it.
pub fn main_reason(why: &[Change]) -> Option<&Change> {
    why.iter().min_by_key(|change| matches!(change.what, ChangeKind::Shard | ChangeKind::Dependency))
}

/// Returns a word or two for the kind of an action's main reason: `own code`, `imports`, `flags`, `new` or `other reasons`.
/// An action that was merely asked for has none.
pub fn kind(why: &[Change]) -> Option<&'static str> {
    Some(match main_reason(why)?.what {
        ChangeKind::Requested => return None,
        ChangeKind::Module => "own code",
        ChangeKind::Import | ChangeKind::Shard => IMPORTS,
        ChangeKind::Flags | ChangeKind::Compiler | ChangeKind::Command => "flags",
        ChangeKind::FirstTime => NEW,
        _ => "other reasons",
    })
}

/// Returns whether imports, or the thin link's decisions about them, are the only reasons.
pub fn is_imports_only(why: &[Change]) -> bool {
    !why.is_empty() && why.iter().all(|change| matches!(change.what, ChangeKind::Import | ChangeKind::Shard))
}

/// Reasons on one line.
pub fn list(why: &[Change]) -> String {
    why.iter().map(Change::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = match self.what {
            ChangeKind::FirstTime => ("there is no record of an earlier run", ""),
            ChangeKind::Requested => ("it was asked for", ""),
            ChangeKind::OutputMissing => ("its output", "is missing"),
            ChangeKind::OutputChanged => ("its output", "was changed by something else"),
            ChangeKind::Command => ("its command", "changed"),
            ChangeKind::Compiler => ("the compiler, its configuration or its environment", "changed"),
            ChangeKind::Flags => ("the compiler's flags", "changed"),
            ChangeKind::Module => ("its module", "changed"),
            ChangeKind::Shard => ("what the thin link decided for it", "changed"),
            ChangeKind::Import => ("its import", "changed"),
            ChangeKind::Input => ("its input", "changed"),
            ChangeKind::InputAdded => ("it also reads", ""),
            ChangeKind::InputRemoved => ("it no longer reads", ""),
            ChangeKind::Dependency => ("it reads the outputs of an action that runs:", ""),
            ChangeKind::NotKnown => ("what decides it is not all known", ""),
        };
        out.write_str(before)?;
        self.name.iter().try_for_each(|name| write!(out, " {name}"))?;
        if after.is_empty() { Ok(()) } else { write!(out, " {after}") }
    }
}

/// Finds the role of a graph's file for an action: module, shard, import, compiler or other input.
#[derive(Debug)]
pub struct Explainer<'g> {
    graph: &'g ActionGraph,
    /// The modules of all backend compilations.
    modules: HashSet<FileId>,
}

impl<'g> Explainer<'g> {
    /// For the actions of a graph.
    pub fn new(graph: &'g ActionGraph) -> Self {
        let modules = graph.actions().filter_map(|(_, action)| Some(action.backend()?.module)).collect();
        Self { graph, modules }
    }

    /// The graph.
    pub fn graph(&self) -> &'g ActionGraph {
        self.graph
    }

    /// An input of an action that changed.
    pub fn input(&self, id: ActionId, path: &Utf8Path) -> Change {
        let action = self.graph.action(id);
        let file = self.graph.find_file(path);
        let what = match action.backend() {
            Some(backend) if file == Some(backend.module) => return Change::of(ChangeKind::Module),
            Some(backend) if file == Some(backend.shard) => return Change::of(ChangeKind::Shard),
            _ if keep::is_toolchain(path.as_std_path()) => return Change::of(ChangeKind::Compiler),
            Some(_) if file.is_some_and(|file| self.modules.contains(&file)) => ChangeKind::Import,
            _ => ChangeKind::Input,
        };
        Change::named(what, path.as_str())
    }
}
