//! Orders over an action graph: topological, canonical, and by critical path.
//!
//! The canonical order depends only on the graph's content, not on the order of its construction; it is the order of
//! the JSON. Does not depend on formats and schedulers.

use std::cmp::Ordering;

use camino::Utf8Path;

use super::{Action, ActionGraph, ActionId, FileId, PrefixId};

/// The canonical order of a graph's tables and actions.
pub(super) struct CanonicalOrder {
    /// Files that an action names, sorted by the bytes of their paths.
    pub files: Vec<FileId>,
    /// For each file its place in `files`.
    pub file_places: Vec<u32>,
    /// Prefixes that an action names, sorted by their words.
    pub prefixes: Vec<PrefixId>,
    /// For each prefix its place in `prefixes`.
    pub prefix_places: Vec<u32>,
    /// Actions by level, kind, label and files. An action's level is the length of the longest chain of
    /// actions that it waits for, so each action follows those that it needs.
    pub actions: Vec<ActionId>,
}

impl ActionGraph {
    /// Returns all actions, each after the producers of its inputs.
    pub fn topological(&self) -> impl DoubleEndedIterator<Item = ActionId> + ExactSizeIterator + use<'_> {
        // `add` draws edges from earlier actions to later ones only, so the order of ids is one.
        self.actions.node_indices()
    }

    /// For each action, by index of its id: its cost and that of the costliest chain of actions that wait
    /// for it, one after the other. Saturates at `u64::MAX`.
    pub fn critical_path_costs(&self) -> Vec<u64> {
        let mut costs = vec![0_u64; self.actions.node_count()];
        for id in self.topological().rev() {
            let longest = self.actions.neighbors(id).map(|next| costs[next.index()]).max().unwrap_or(0);
            costs[id.index()] = longest.saturating_add(self.action(id).cost);
        }
        costs
    }

    /// The same graph with its tables sorted, without entries that no action names, and its actions in an
    /// order that follows from their content: equal content gives equal graphs.
    pub fn canonical(&self) -> Self {
        let order = self.canonical_order();
        let mut graph = Self { is_record: self.is_record, ..Self::new() };
        for &file in &order.files {
            graph.file(self.path(file));
        }
        for &prefix in &order.prefixes {
            graph.prefix(self.prefix_words(prefix).to_vec());
        }
        for &id in &order.actions {
            let action = self.action(id);
            graph.add(Action {
                work: action.work.map(|file| FileId(order.place(file))),
                label: action.label.clone(),
                prefix: action.prefix.map(|prefix| PrefixId(order.prefix_places[prefix.0 as usize])),
                args: action.args.clone(),
                cost: action.cost,
            });
        }
        graph
    }

    pub(super) fn canonical_order(&self) -> CanonicalOrder {
        let mut used_files = vec![false; self.files.len()];
        let mut used_prefixes = vec![false; self.prefixes.len()];
        for (_, action) in self.actions() {
            for file in action.inputs().chain(action.outputs()) {
                used_files[file.0 as usize] = true;
            }
            if let Some(prefix) = action.prefix {
                used_prefixes[prefix.0 as usize] = true;
            }
        }
        let mut files: Vec<_> = used(&used_files).map(FileId).collect();
        files.sort_unstable_by(|&a, &b| self.path(a).as_str().cmp(self.path(b).as_str()));
        let mut prefixes: Vec<_> = used(&used_prefixes).map(PrefixId).collect();
        prefixes.sort_unstable_by_key(|&prefix| self.prefix_words(prefix));
        let file_places = places(used_files.len(), files.iter().map(|file| file.0));
        let prefix_places = places(used_prefixes.len(), prefixes.iter().map(|prefix| prefix.0));
        let mut order = CanonicalOrder { files, file_places, prefixes, prefix_places, actions: Vec::new() };
        let levels = self.levels();
        let mut actions: Vec<_> = self.topological().collect();
        actions.sort_by(|&a, &b| {
            levels[a.index()]
                .cmp(&levels[b.index()])
                .then_with(|| order.compare(self.action(a), self.action(b)))
        });
        order.actions = actions;
        order
    }

    /// For each action the length of the longest chain of actions that it waits for.
    fn levels(&self) -> Vec<u32> {
        let mut levels = vec![0_u32; self.actions.node_count()];
        for id in self.topological() {
            for next in self.actions.neighbors(id) {
                levels[next.index()] = levels[next.index()].max(levels[id.index()] + 1);
            }
        }
        levels
    }

    /// A file's path as text.
    pub(super) fn text(&self, file: FileId) -> &str {
        Utf8Path::as_str(self.path(file))
    }
}

impl CanonicalOrder {
    pub(super) fn place(&self, file: FileId) -> u32 {
        self.file_places[file.0 as usize]
    }

    pub(super) fn prefix_place(&self, action: &Action) -> Option<u32> {
        action.prefix.map(|prefix| self.prefix_places[prefix.0 as usize])
    }

    fn compare(&self, a: &Action, b: &Action) -> Ordering {
        let place = |file| self.place(file);
        (a.kind(), &a.label)
            .cmp(&(b.kind(), &b.label))
            .then_with(|| a.outputs().map(place).cmp(b.outputs().map(place)))
            .then_with(|| a.inputs().map(place).cmp(b.inputs().map(place)))
            .then_with(|| self.prefix_place(a).cmp(&self.prefix_place(b)))
            .then_with(|| (&a.args, a.cost).cmp(&(&b.args, b.cost)))
    }
}

fn used(marks: &[bool]) -> impl Iterator<Item = u32> {
    (0..).zip(marks).filter(|(_, used)| **used).map(|(index, _)| index)
}

/// The inverse of an order: for each of `length` entries its place among `ordered`, 0 where it has none.
fn places(length: usize, ordered: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut places = vec![0; length];
    for (place, entry) in (0..).zip(ordered) {
        places[entry as usize] = place;
    }
    places
}
