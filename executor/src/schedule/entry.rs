//! One wanted action in the schedule: its resources, its state, its dependents.
//!
//! Independent of the order in which actions start.

use std::collections::BTreeMap;

use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};

use super::pools::Amounts;

/// The estimated time and memory of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// Time, in a unit that is the same for all actions. 0 counts as 1, so that a chain of actions of unknown
    /// weight still counts by its length.
    pub time: u64,
    /// The most memory that it holds at once, in bytes.
    pub memory: u64,
}

/// Where an action runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// On this machine.
    Here,
    /// On an engine.
    Engine,
}

/// Where a wanted action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for this many wanted actions.
    Waiting(usize),
    /// May start.
    Ready,
    /// Was taken and has not been reported on.
    Running,
    /// Succeeded.
    Done,
    /// Failed.
    Failed,
    /// Will not run because this action, which it needs, failed.
    Skipped(ActionId),
    /// Will not run because the run stopped first.
    NotStarted,
}

/// A wanted action.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) state: State,
    pub(super) time: u64,
    /// On this machine.
    pub(super) needs: Amounts,
    /// Whether an engine may execute it.
    pub(super) is_portable: bool,
    /// The resources in use while it runs.
    pub(super) taken: Option<(Site, Amounts)>,
    /// The time of the longest chain from here to the end.
    pub(super) priority: u64,
    pub(super) alone: bool,
    /// The wanted actions that need it.
    pub(super) dependents: Vec<ActionId>,
}

impl Entry {
    pub(super) fn new(graph: &ActionGraph, id: ActionId, weight: Weight) -> Self {
        let time = weight.time.max(1);
        Self {
            state: State::Ready,
            time,
            needs: Amounts::local(weight.memory),
            is_portable: graph.action(id).kind() == ActionKind::Opt,
            taken: None,
            priority: time,
            alone: false,
            dependents: Vec::new(),
        }
    }
}

/// Returns the least amount of each resource that any entry needs.
pub(super) fn least_of(entries: &BTreeMap<ActionId, Entry>) -> Amounts {
    let needs = entries.values().map(|entry| entry.needs);
    needs.reduce(|one, other| one.zip(other, u64::min)).unwrap_or(Amounts::local(0))
}
