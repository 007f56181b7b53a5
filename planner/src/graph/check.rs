//! From tables and actions in any order to a checked action graph.
//!
//! Every graph made here is valid: indices lie in their tables, commands have a program, a file has one producer, and
//! no action needs itself. Does not depend on the source of the parts.

use std::collections::{HashMap, HashSet};

use camino::Utf8PathBuf;
use indexmap::IndexSet;

use super::error::GraphError;
use super::{Action, ActionGraph, ActionKind, FileId, Listed};

impl ActionGraph {
    /// The graph of these actions, in canonical order (see [`ActionGraph::canonical`]). Actions refer to
    /// `files` and `prefixes` by index and may come in any order.
    pub fn from_parts(
        files: Vec<Utf8PathBuf>,
        prefixes: Vec<Vec<String>>,
        actions: Vec<Action>,
    ) -> Result<Self, GraphError> {
        let files = file_table(files)?;
        let prefixes = prefix_table(prefixes)?;
        let mut graph = Self { producers: vec![None; files.len()], files, prefixes, ..Self::default() };
        let mut last_seen = vec![Seen::default(); graph.files.len()];
        for (index, action) in actions.iter().enumerate() {
            graph.check_action(index, action, &mut last_seen)?;
        }
        let producers = graph.find_producers(&actions)?;
        let order = runnable_order(&actions, &producers)?;
        let mut actions: Vec<_> = actions.into_iter().map(Some).collect();
        for index in order {
            // The order names each action once, so none is taken twice.
            if let Some(action) = actions[index].take() {
                graph.add(action);
            }
        }
        Ok(graph.canonical())
    }

    /// Builds a graph like [`ActionGraph::from_parts`], from actions as a text lists them. After its shard, a backend
    /// compilation's inputs are imports up to the first file that is no backend's module.
    pub fn from_lists(
        files: Vec<Utf8PathBuf>,
        prefixes: Vec<Vec<String>>,
        actions: Vec<Listed>,
    ) -> Result<Self, GraphError> {
        let backends = actions.iter().filter(|action| action.kind == ActionKind::Opt);
        let modules: HashSet<FileId> = backends.filter_map(|action| action.inputs.first().copied()).collect();
        let path = |file: FileId| files.get(file.0 as usize).map(Utf8PathBuf::as_path);
        let typed = |action: Listed| action.typed(&path, &|file| modules.contains(&file));
        let actions = actions.into_iter().map(typed).collect::<Result<_, _>>()?;
        Self::from_parts(files, prefixes, actions)
    }

    /// This graph, checked, in canonical order, with the edges that actions added before their producers lack.
    pub fn checked(self) -> Result<Self, GraphError> {
        let is_record = self.is_record;
        let (actions, _) = self.actions.into_nodes_edges();
        let graph = Self::from_parts(
            self.files.into_iter().collect(),
            self.prefixes.into_iter().collect(),
            actions.into_iter().map(|node| node.weight).collect(),
        )?;
        Ok(Self { is_record, ..graph })
    }

    fn check_action(&self, index: usize, action: &Action, seen: &mut [Seen]) -> Result<(), GraphError> {
        let label = || action.label.clone();
        no_nul("the label of an action", &action.label)?;
        for word in &action.args {
            no_nul("an argument", word)?;
        }
        let shared = match action.prefix {
            Some(prefix) => self.prefixes.get_index(prefix.0 as usize).ok_or_else(|| {
                GraphError::NoSuchPrefix { label: label(), index: prefix.0, length: self.prefixes.len() }
            })?,
            None => &Vec::new(),
        };
        if shared.first().or(action.args.first()).is_none_or(String::is_empty) {
            return Err(GraphError::NoProgram { label: label() });
        }
        if action.outputs().next().is_none() {
            return Err(GraphError::NoOutput { label: label() });
        }
        // Marks hold the number of their action, so marks of an earlier action need no clearing.
        let number = index + 1;
        for FileId(file) in action.inputs() {
            let mark = seen.get_mut(file as usize).ok_or_else(|| self.no_such_file(action, file))?;
            if std::mem::replace(&mut mark.input, number) == number {
                return Err(GraphError::RepeatedFile {
                    label: label(),
                    path: self.owned(file),
                    list: "inputs",
                });
            }
        }
        for FileId(file) in action.outputs() {
            let mark = seen.get_mut(file as usize).ok_or_else(|| self.no_such_file(action, file))?;
            if mark.input == number {
                return Err(GraphError::ReadsOwnOutput { label: label(), path: self.owned(file) });
            }
            if std::mem::replace(&mut mark.output, number) == number {
                return Err(GraphError::RepeatedFile {
                    label: label(),
                    path: self.owned(file),
                    list: "outputs",
                });
            }
        }
        Ok(())
    }

    /// For each file the index of the action that writes it.
    fn find_producers(&self, actions: &[Action]) -> Result<Vec<Option<usize>>, GraphError> {
        let mut producers = vec![None; self.files.len()];
        for (index, action) in actions.iter().enumerate() {
            for FileId(file) in action.outputs() {
                if let Some(first) = producers[file as usize].replace(index) {
                    let first: &Action = &actions[first];
                    return Err(GraphError::TwoProducers {
                        path: self.owned(file),
                        first: name(first),
                        second: name(action),
                    });
                }
            }
        }
        Ok(producers)
    }

    fn no_such_file(&self, action: &Action, index: u32) -> GraphError {
        GraphError::NoSuchFile { label: action.label.clone(), index, length: self.files.len() }
    }

    fn owned(&self, file: u32) -> Utf8PathBuf {
        self.files[file as usize].clone()
    }
}

/// The number of the last action, counted from 1, that lists a file.
#[derive(Clone, Copy, Default)]
struct Seen {
    input: usize,
    output: usize,
}

fn no_nul(what: &'static str, text: &str) -> Result<(), GraphError> {
    if text.contains('\0') { Err(GraphError::Nul { what, text: text.to_owned() }) } else { Ok(()) }
}

fn file_table(paths: Vec<Utf8PathBuf>) -> Result<IndexSet<Utf8PathBuf>, GraphError> {
    let mut files = IndexSet::with_capacity(paths.len());
    for (index, path) in paths.into_iter().enumerate() {
        if path.as_str().is_empty() {
            return Err(GraphError::EmptyPath { index });
        }
        no_nul("a path", path.as_str())?;
        if let Some(first) = files.get_index_of(&path) {
            return Err(GraphError::DuplicateFile { path, index, first });
        }
        files.insert(path);
    }
    Ok(files)
}

fn prefix_table(lists: Vec<Vec<String>>) -> Result<IndexSet<Vec<String>>, GraphError> {
    let mut prefixes = IndexSet::with_capacity(lists.len());
    for (index, words) in lists.into_iter().enumerate() {
        for word in &words {
            no_nul("a word of a prefix", word)?;
        }
        if let Some(first) = prefixes.get_index_of(&words) {
            return Err(GraphError::DuplicatePrefix { index, first });
        }
        prefixes.insert(words);
    }
    Ok(prefixes)
}

/// Returns an order in which every action follows the producers of its inputs.
fn runnable_order(actions: &[Action], producers: &[Option<usize>]) -> Result<Vec<usize>, GraphError> {
    let needs = |index: usize| {
        let mut needs: Vec<usize> =
            actions[index].inputs().filter_map(|file| producers[file.0 as usize]).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    };
    let mut missing = vec![0_usize; actions.len()];
    let mut readers = vec![Vec::new(); actions.len()];
    for (index, count) in missing.iter_mut().enumerate() {
        let needs = needs(index);
        *count = needs.len();
        for producer in needs {
            readers[producer].push(index);
        }
    }
    let mut order: Vec<usize> = (0..actions.len()).filter(|&index| missing[index] == 0).collect();
    let mut next = 0;
    while let Some(&done) = order.get(next) {
        next += 1;
        for &reader in &readers[done] {
            missing[reader] -= 1;
            if missing[reader] == 0 {
                order.push(reader);
            }
        }
    }
    match (0..actions.len()).find(|&index| missing[index] > 0) {
        None => Ok(order),
        Some(waiting) => Err(cycle(actions, waiting, |index| {
            // An action still waits because one that it needs still waits.
            needs(index).into_iter().find(|&need| missing[need] > 0)
        })),
    }
}

/// Follows the needs of actions from `start` until an action repeats, and returns that cycle as an error.
fn cycle(actions: &[Action], start: usize, need: impl Fn(usize) -> Option<usize>) -> GraphError {
    let mut path = vec![start];
    let mut places = HashMap::from([(start, 0)]);
    let mut at = start;
    let mut begin = 0;
    while let Some(next) = need(at) {
        path.push(next);
        if let Some(place) = places.insert(next, path.len() - 1) {
            begin = place;
            break;
        }
        at = next;
    }
    GraphError::Cycle { cycle: path[begin..].iter().map(|&index| name(&actions[index])).collect() }
}

/// A thin link and its final link have one label, so where they meet the kind is said too.
fn name(action: &Action) -> String {
    format!("{} {}", action.kind().name(), action.label)
}
