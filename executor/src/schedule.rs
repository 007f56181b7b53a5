//! Decides the next action: the ready queue over an action graph, with weights of time and memory.
//!
//! # How it works
//!
//! The schedule holds the *wanted* actions: those that the caller found out of date. An action waits for the wanted
//! actions among its dependencies. An action that is not wanted is up to date: its outputs are there and no action
//! waits for it. When its last dependency is done, an action is *ready*. [`Schedule::take`] hands out ready actions one
//! by one, and the caller reports [`Schedule::done`] or [`Schedule::failed`] for each.
//!
//! # Which one first
//!
//! The first is the action with the longest chain of wanted actions from it to the end (its critical path, itself
//! included), in estimated time: the whole link waits for a long action that starts late. All backend compilations of a
//! link lead to the same final link, so among them the order is longest first. On recorded builds this needs about
//! three quarters of the time of command-line order. Ties go to the action that was added first, so that a run with one
//! worker is reproducible.
//!
//! # Resources
//!
//! An action starts only if each pool ([`pools`]) has enough left: a slot, a token of the jobserver, its estimated
//! memory. One action of any size may always run, alone, unless it must wait for the holdings of other runs
//! ([`Schedule::let_first_wait`]). When the first in the order does not fit, the resource that it lacks is *reserved*
//! for it. A later action may overtake it only if there is enough of that resource for it beside both the running
//! actions and the overtaken one. So a large action waits only for those that ran when it was first passed over, and
//! never for one that overtook it.
//!
//! # Here and elsewhere
//!
//! An action that an engine can execute runs here if there is room for it here, and else there: distinct actions run in
//! both places. The longest begin where they end first, since here nothing is transferred. An action that the engine
//! does not execute comes back with [`Schedule::again_here`]. An engine that is a cache alone has room too: that of
//! lookups.
//!
//! # When an action fails
//!
//! All actions that need it, directly or through others, are *skipped* and remember the failed one: a final link never
//! runs over objects if one is old or missing. With [`Policy::KeepGoing`] everything else runs on. With
//! [`Policy::StopAtFirstFailure`] nothing more starts, but running actions finish, as in make and ninja: those
//! compilations are paid for, and the next run need not compile their objects again. Cancellation is another thing: it
//! ends running actions (see `process`), and the caller calls [`Schedule::stop`]. [`Schedule::abandoned`] returns the
//! actions that will not run. An action that the system killed for lack of memory is given back with
//! [`Schedule::again_alone`].
//!
//! Pure: knows nothing of processes, workers, files and time.

mod entry;
pub mod estimate;
pub mod history;
pub mod memory;
pub mod pools;
pub mod tokens;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use distlto_planner::graph::{ActionGraph, ActionId};

use entry::{Entry, least_of};
pub use entry::{Site, State, Weight};
use pools::{Amounts, Pools, Resource};

/// The effect of a failure on actions that do not need the failed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// They are not started; running ones finish.
    #[default]
    StopAtFirstFailure,
    /// They run.
    KeepGoing,
}

/// The reason why no action starts at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// None is ready, or nothing more is to start.
    Nothing,
    /// Even the smallest lacks this resource.
    For(Resource),
}

/// The wanted actions of one graph and where each stands.
#[derive(Debug)]
pub struct Schedule {
    policy: Policy,
    entries: BTreeMap<ActionId, Entry>,
    /// By priority.
    ready: BTreeSet<(Reverse<u64>, ActionId)>,
    /// The same by memory.
    sizes: BTreeSet<(u64, ActionId)>,
    reserved: Option<Reserved>,
    pools: Pools,
    /// The least amount of each resource that any wanted action needs.
    least: Amounts,
    running: usize,
    /// Those of them that run on this machine.
    running_here: usize,
    /// Whether the running action must run alone.
    alone: bool,
    /// Whether an action has to find room even if nothing runs here.
    first_waits: bool,
    /// The times of all actions.
    total: u64,
    stopped: bool,
    /// Actions that will not run, not yet returned to the caller.
    abandoned: Vec<ActionId>,
}

/// A reservation of the resource that an action lacked. The overtaking actions run.
#[derive(Debug)]
struct Reserved {
    action: ActionId,
    lacks: Resource,
    overtaking: BTreeSet<ActionId>,
}

impl Schedule {
    /// A schedule of these actions; an action named twice runs once.
    pub fn new(
        graph: &ActionGraph,
        wanted: &[ActionId],
        policy: Policy,
        weigh: impl Fn(ActionId) -> Weight,
    ) -> Self {
        let entry = |&id: &ActionId| (id, Entry::new(graph, id, weigh(id)));
        let mut entries: BTreeMap<_, _> = wanted.iter().map(entry).collect();
        let wanted: Vec<_> = entries.keys().copied().collect();
        // Actions are added after their dependencies, so backwards every dependent comes before its dependency.
        for &id in wanted.iter().rev() {
            let mut dependents = graph.dependents(id);
            dependents.retain(|next| entries.contains_key(next));
            let after = dependents.iter().map(|next| entries[next].priority).max();
            let count = graph.dependencies(id).iter().filter(|&needed| entries.contains_key(needed)).count();
            if let Some(entry) = entries.get_mut(&id) {
                entry.priority = entry.time.saturating_add(after.unwrap_or(0));
                entry.dependents = dependents;
                if count > 0 {
                    entry.state = State::Waiting(count);
                }
            }
        }
        let total = entries.values().fold(0_u64, |sum, entry| sum.saturating_add(entry.time));
        let least = least_of(&entries);
        let mut schedule = Self {
            policy,
            entries,
            ready: BTreeSet::new(),
            sizes: BTreeSet::new(),
            reserved: None,
            pools: Pools::default(),
            least,
            running: 0,
            running_here: 0,
            alone: false,
            first_waits: false,
            total,
            stopped: false,
            abandoned: Vec::new(),
        };
        for &id in &wanted {
            if schedule.entries[&id].state == State::Ready {
                schedule.enqueue(id);
            }
        }
        schedule
    }

    /// Adds one more wanted action without dependencies and dependents among the others.
    pub fn add(&mut self, graph: &ActionGraph, id: ActionId, weight: Weight) {
        let entry = Entry::new(graph, id, weight);
        self.total = self.total.saturating_add(entry.time);
        self.least = match self.entries.is_empty() {
            true => entry.needs,
            false => self.least.zip(entry.needs, u64::min),
        };
        self.entries.insert(id, entry);
        match self.stopped {
            true => self.abandon(id, State::NotStarted),
            false => self.enqueue(id),
        }
    }

    /// Sets the limit of a resource for all running actions; unlimited before the first call.
    pub fn limit(&mut self, resource: Resource, amount: u64) {
        self.pools.limit(resource, amount);
    }

    /// Sets whether the only action on this machine has to find room, too: others hold the resource that it lacks, and
    /// will give it back.
    pub fn let_first_wait(&mut self, waits: bool) {
        self.first_waits = waits;
    }

    /// Returns the memory of the first ready action, if there is room for it.
    pub fn first_that_fits(&self) -> Option<u64> {
        let &(_, first) = self.ready.first().filter(|&&(_, first)| self.has_ready() && self.fits(first))?;
        Some(self.entries[&first].needs[Resource::Memory])
    }

    /// Returns the reason why nothing can start, regardless of needs. After `None`, [`Schedule::take`] may still find
    /// the needs of all ready actions too large.
    pub fn waits(&self) -> Option<Wait> {
        if !self.has_ready() {
            return Some(Wait::Nothing);
        }
        let lack = self.pools.lack(&self.least).filter(|_| self.running_here > 0 || self.first_waits)?;
        self.for_engine().is_none().then_some(Wait::For(lack))
    }

    /// Starts the next ready action, and returns it and its site; `None` when none may start at the moment.
    pub fn take(&mut self) -> Option<(ActionId, Site)> {
        if self.waits().is_some() {
            return None;
        }
        let &(_, first) = self.ready.first()?;
        let (id, site) = if self.fits(first) {
            (first, Site::Here)
        } else if let Some(id) = self.for_engine() {
            (id, Site::Engine)
        } else {
            (self.overtaking(first)?, Site::Here)
        };
        self.dequeue(id);
        if self.reserved.as_ref().is_some_and(|reserved| reserved.action == id) {
            self.reserved = None;
        }
        let entry = self.entries.get_mut(&id)?;
        entry.state = State::Running;
        let needs = match site {
            Site::Here => {
                self.alone = entry.alone;
                self.running_here += 1;
                entry.needs
            }
            Site::Engine => Amounts::engine(),
        };
        entry.taken = Some((site, needs));
        self.pools.take(&needs);
        self.running += 1;
        Some((id, site))
    }

    /// The first ready action for an engine, if that has room.
    fn for_engine(&self) -> Option<ActionId> {
        if self.pools.lack(&Amounts::engine()).is_some() {
            return None;
        }
        let is_portable = |&id: &ActionId| self.entries[&id].is_portable && !self.entries[&id].alone;
        self.ready.iter().map(|&(_, id)| id).find(is_portable)
    }

    /// Whether an action is ready that would start if there were room for it.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// How many actions are ready.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// How many actions run on this machine.
    pub fn running_here(&self) -> usize {
        self.running_here
    }

    /// The estimated memory of all that run, in bytes.
    pub fn memory_used(&self) -> u64 {
        self.pools.used(Resource::Memory)
    }

    /// Whether nothing runs and nothing will.
    pub fn is_finished(&self) -> bool {
        self.running == 0 && !self.has_ready()
    }

    /// The sum of the times of all actions.
    pub fn total_cost(&self) -> u64 {
        self.total
    }

    /// How many actions are wanted.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The estimated time of an action, which is its part of [`Schedule::total_cost`]; 1 for one not wanted.
    pub fn cost(&self, id: ActionId) -> u64 {
        self.entries.get(&id).map_or(1, |entry| entry.time)
    }

    /// Sets new memory estimates of all actions that have not started. Running actions keep theirs until they end.
    pub fn set_memory(&mut self, memory: impl Fn(ActionId) -> u64) {
        for (&id, entry) in &mut self.entries {
            if matches!(entry.state, State::Waiting(_) | State::Ready) {
                entry.needs = Amounts::local(memory(id));
            }
        }
        let entries = &self.entries;
        self.sizes = self.ready.iter().map(|&(_, id)| (entries[&id].needs[Resource::Memory], id)).collect();
        self.least = least_of(entries);
    }

    /// Ends a running action that succeeded; actions that waited for it alone become ready.
    pub fn done(&mut self, id: ActionId) {
        if !self.end(id, State::Done) {
            return;
        }
        for next in self.dependents(id) {
            let Some(entry) = self.entries.get_mut(&next) else { continue };
            match entry.state {
                State::Waiting(1) => {
                    entry.state = State::Ready;
                    self.enqueue(next);
                }
                State::Waiting(count) => entry.state = State::Waiting(count - 1),
                _ => {}
            }
        }
    }

    /// Ends a running action that failed, and skips all that need it. Returns the skipped actions, sorted.
    pub fn failed(&mut self, id: ActionId) -> Vec<ActionId> {
        if !self.end(id, State::Failed) {
            return Vec::new();
        }
        let mut skipped = Vec::new();
        let mut reached = self.dependents(id);
        while let Some(next) = reached.pop() {
            let Some(entry) = self.entries.get(&next) else { continue };
            if let State::Waiting(_) = entry.state {
                self.abandon(next, State::Skipped(id));
                skipped.push(next);
                reached.extend(self.dependents(next));
            }
        }
        if self.policy == Policy::StopAtFirstFailure {
            self.stop();
        }
        skipped.sort_unstable();
        skipped
    }

    /// Returns an action that ended without a result to the queue, before all others and to run alone. False, without a
    /// change, if it has run alone before or nothing more starts.
    pub fn again_alone(&mut self, id: ActionId) -> bool {
        if self.stopped || self.entries.get(&id).is_none_or(|entry| entry.alone) {
            return false;
        }
        if !self.end(id, State::Ready) {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.alone = true;
            entry.priority = u64::MAX;
        }
        self.enqueue(id);
        true
    }

    /// Returns an action that could not be executed at its site to the queue, for this machine. False if nothing more
    /// starts.
    pub fn again_here(&mut self, id: ActionId) -> bool {
        if let Some(entry) = self.entries.get_mut(&id).filter(|_| !self.stopped) {
            entry.is_portable = false;
        }
        self.again(id)
    }

    /// Returns an action that could not be started to the queue, as if it had never been taken. False if nothing more
    /// starts.
    pub fn again(&mut self, id: ActionId) -> bool {
        if self.stopped || !self.end(id, State::Ready) {
            return false;
        }
        self.enqueue(id);
        true
    }

    /// Lets nothing more start.
    pub fn stop(&mut self) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        self.ready.clear();
        self.sizes.clear();
        let is_pending = |(&id, entry): (&ActionId, &Entry)| {
            matches!(entry.state, State::Waiting(_) | State::Ready).then_some(id)
        };
        let pending: Vec<_> = self.entries.iter().filter_map(is_pending).collect();
        pending.into_iter().for_each(|id| self.abandon(id, State::NotStarted));
    }

    /// Returns the actions that will not run, each of them once: those that need a failed one, and, when nothing more
    /// starts, those that had not started.
    pub fn abandoned(&mut self) -> Vec<ActionId> {
        std::mem::take(&mut self.abandoned)
    }

    /// Every wanted action in the graph's order with where it stands.
    pub fn states(&self) -> impl Iterator<Item = (ActionId, State)> + '_ {
        self.entries.iter().map(|(&id, entry)| (id, entry.state))
    }

    fn dependents(&self, id: ActionId) -> Vec<ActionId> {
        self.entries.get(&id).map_or_else(Vec::new, |entry| entry.dependents.clone())
    }

    fn abandon(&mut self, id: ActionId, state: State) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.state = state;
            self.abandoned.push(id);
        }
    }

    /// Returns whether an action may start beside the running ones.
    fn fits(&self, id: ActionId) -> bool {
        let entry = &self.entries[&id];
        let has_room = || self.pools.lack(&entry.needs).is_none();
        match self.running_here {
            0 => !self.first_waits || has_room(),
            _ => !entry.alone && !self.alone && has_room(),
        }
    }

    /// Returns the first action that may overtake this one, which does not fit.
    fn overtaking(&mut self, first: ActionId) -> Option<ActionId> {
        let entry = &self.entries[&first];
        if entry.alone || self.alone {
            return None;
        }
        let lacks = self.pools.lack(&entry.needs)?;
        let mut reserved = self
            .reserved
            .take()
            .filter(|reserved| reserved.action == first && reserved.lacks == lacks)
            .unwrap_or_else(|| Reserved { action: first, lacks, overtaking: BTreeSet::new() });
        let overtaking = reserved.overtaking.iter().map(|id| self.entries[id].needs[lacks]);
        let taken = overtaking.fold(entry.needs[lacks], u64::saturating_add);
        let limit = self.pools.limit_of(lacks);
        let found = limit.checked_sub(taken).and_then(|beside| {
            let most = beside.min(limit.checked_sub(self.pools.used(lacks))?);
            let is_small = |&(smallest, _): &(u64, ActionId)| lacks != Resource::Memory || smallest <= most;
            self.sizes.first().filter(|&smallest| is_small(smallest))?;
            let fits = |&id: &ActionId| self.entries[&id].needs[lacks] <= most && self.fits(id);
            self.ready.iter().map(|&(_, id)| id).skip(1).find(fits)
        });
        reserved.overtaking.extend(found);
        self.reserved = Some(reserved);
        found
    }

    fn enqueue(&mut self, id: ActionId) {
        let entry = &self.entries[&id];
        self.ready.insert((Reverse(entry.priority), id));
        self.sizes.insert((entry.needs[Resource::Memory], id));
    }

    fn dequeue(&mut self, id: ActionId) {
        let entry = &self.entries[&id];
        self.ready.remove(&(Reverse(entry.priority), id));
        self.sizes.remove(&(entry.needs[Resource::Memory], id));
    }

    /// Ends a running action; false when it does not run, after a caller's mistake only.
    fn end(&mut self, id: ActionId, state: State) -> bool {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.state == State::Running) else {
            return false;
        };
        entry.state = state;
        self.running -= 1;
        if let Some((site, needs)) = entry.taken.take() {
            self.pools.give_back(&needs);
            if site == Site::Here {
                self.running_here -= 1;
                self.alone = false;
            }
        }
        if let Some(reserved) = &mut self.reserved {
            reserved.overtaking.remove(&id);
        }
        true
    }
}
