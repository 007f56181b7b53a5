//! What may run next: the ready queue over an action graph.
//!
//! # How it works
//!
//! The schedule holds the actions that are *wanted*: those the caller found out of date. An action waits for
//! the wanted actions among its dependencies; one that is not wanted is up to date, so its outputs are there
//! and nobody waits for it. When its last dependency is done an action is *ready*, and [`Schedule::take`]
//! hands out ready actions one by one to whoever runs them, who reports [`Schedule::done`] or
//! [`Schedule::failed`].
//!
//! # Which one first
//!
//! The one with the costliest chain of wanted actions from it to the end (its critical path, itself included):
//! what is started late and takes long is what the whole link waits for. All backend compilations of a link
//! lead to the same final link, so among them the order is largest first, which on recorded builds needs
//! about three quarters of the time that command-line order takes. Ties go to the action that was added first, so that
//! a run with one worker is reproducible.
//!
//! # When an action fails
//!
//! Whatever needs it, directly or through others, is *skipped* and remembers which failure it was: a final link
//! never runs over objects of which one is old or missing. With [`Policy::KeepGoing`] everything else runs on.
//! With [`Policy::StopAtFirstFailure`] nothing more starts, but what runs is left to finish, as make and ninja
//! do: those compilations are paid for, and their objects need not be compiled again in the next run.
//! Cancellation is another thing: it ends what runs (see `process`), and the schedule is told with
//! [`Schedule::stop`].
//!
//! Pure: knows nothing of processes, workers, files and time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use distlto_planner::graph::{ActionGraph, ActionId};

/// What a failure means for the actions that do not need the failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// They are not started; those that run are left to finish.
    #[default]
    StopAtFirstFailure,
    /// They run.
    KeepGoing,
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

/// The wanted actions of one graph and where each stands.
#[derive(Debug)]
pub struct Schedule<'g> {
    graph: &'g ActionGraph,
    policy: Policy,
    states: BTreeMap<ActionId, State>,
    priorities: BTreeMap<ActionId, u64>,
    ready: BinaryHeap<(u64, Reverse<ActionId>)>,
    running: usize,
    left: u64,
    stopped: bool,
}

impl<'g> Schedule<'g> {
    /// A schedule of these actions; an action named twice runs once.
    pub fn new(graph: &'g ActionGraph, wanted: &[ActionId], policy: Policy) -> Self {
        let mut states: BTreeMap<_, _> = wanted.iter().map(|&id| (id, State::Ready)).collect();
        let mut priorities = BTreeMap::new();
        let wanted: Vec<_> = states.keys().copied().collect();
        // Actions are added after what they need, so backwards every dependent comes before its dependency.
        for &id in wanted.iter().rev() {
            let after = graph.dependents(id).iter().filter_map(|next| priorities.get(next)).copied().max();
            priorities.insert(id, weight(graph, id).saturating_add(after.unwrap_or(0)));
        }
        for &id in &wanted {
            let count = graph.dependencies(id).iter().filter(|&needed| states.contains_key(needed)).count();
            if count > 0 {
                states.insert(id, State::Waiting(count));
            }
        }
        let ready = wanted
            .iter()
            .filter(|id| states[id] == State::Ready)
            .map(|&id| (priorities[&id], Reverse(id)))
            .collect();
        let left = wanted.iter().fold(0_u64, |sum, &id| sum.saturating_add(weight(graph, id)));
        Self { graph, policy, states, priorities, ready, running: 0, left, stopped: false }
    }

    /// The ready action to start next, which runs from here on; `None` when none may start at the moment.
    pub fn take(&mut self) -> Option<ActionId> {
        if self.stopped {
            return None;
        }
        let (_, Reverse(id)) = self.ready.pop()?;
        self.states.insert(id, State::Running);
        self.running += 1;
        Some(id)
    }

    /// Whether [`Schedule::take`] would give an action.
    pub fn has_ready(&self) -> bool {
        !self.stopped && !self.ready.is_empty()
    }

    /// How many actions run.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Whether nothing runs and nothing will.
    pub fn is_finished(&self) -> bool {
        self.running == 0 && !self.has_ready()
    }

    /// The sum of the costs of all actions that have not ended, for an estimate of the time left.
    pub fn cost_left(&self) -> u64 {
        self.left
    }

    /// A running action succeeded; what waited for it alone becomes ready.
    pub fn done(&mut self, id: ActionId) {
        if !self.end(id, State::Done) {
            return;
        }
        for next in self.graph.dependents(id) {
            match self.states.get(&next) {
                Some(&State::Waiting(1)) => {
                    self.states.insert(next, State::Ready);
                    self.ready.push((self.priorities[&next], Reverse(next)));
                }
                Some(&State::Waiting(count)) => {
                    self.states.insert(next, State::Waiting(count - 1));
                }
                _ => {}
            }
        }
    }

    /// A running action failed; what needs it is skipped. Returns the skipped actions, sorted.
    pub fn failed(&mut self, id: ActionId) -> Vec<ActionId> {
        if !self.end(id, State::Failed) {
            return Vec::new();
        }
        self.stopped |= self.policy == Policy::StopAtFirstFailure;
        let mut skipped = Vec::new();
        let mut reached = self.graph.dependents(id);
        while let Some(next) = reached.pop() {
            if let Some(state @ State::Waiting(_)) = self.states.get_mut(&next) {
                *state = State::Skipped(id);
                skipped.push(next);
                reached.extend(self.graph.dependents(next));
            }
        }
        skipped.sort_unstable();
        for &id in &skipped {
            self.left = self.left.saturating_sub(weight(self.graph, id));
        }
        skipped
    }

    /// Nothing more starts.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Every wanted action in the graph's order with where it stands. In a finished schedule, one that never
    /// became ready or was never taken is [`State::NotStarted`].
    pub fn states(&self) -> impl Iterator<Item = (ActionId, State)> + '_ {
        let finished = self.is_finished();
        self.states.iter().map(move |(&id, &state)| match state {
            State::Waiting(_) | State::Ready if finished => (id, State::NotStarted),
            state => (id, state),
        })
    }

    /// Ends a running action; false when it does not run, which a caller's mistake alone can bring about.
    fn end(&mut self, id: ActionId, state: State) -> bool {
        match self.states.get_mut(&id) {
            Some(old @ State::Running) => *old = state,
            _ => return false,
        }
        self.running -= 1;
        self.left = self.left.saturating_sub(weight(self.graph, id));
        true
    }
}

/// An action's cost; at least 1, so that a chain of actions of unknown cost still counts by its length.
fn weight(graph: &ActionGraph, id: ActionId) -> u64 {
    graph.action(id).cost.max(1)
}
