//! What planning leaves to be kept, kept while backends run: shards in the order in which they will be needed.
//!
//! A worker that is about to run a backend whose shard is not there yet keeps it itself, so none reads a shard before
//! it is whole (`distlto_planner::pending`). Knows nothing of schedules but that costly actions come first.

use std::cmp::Reverse;

use camino::Utf8Path;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::pending::Pending;
use distlto_prepare::write::IoError;

use crate::up_to_date::Records;
use distlto_executor::cancel::Cancel;

/// The backends of one planned link and what of them is not kept.
pub struct Keeping<'a> {
    pub graph: &'a ActionGraph,
    pub pending: &'a Pending,
    pub records: &'a Records,
}

impl Keeping<'_> {
    /// The backends that have to run. One whose shard is not kept has no object, and is not asked about.
    pub fn out_of_date(&self) -> Result<Vec<ActionId>, IoError> {
        let (first, known): (Vec<_>, Vec<_>) = self
            .of_kinds(&[ActionKind::Opt])
            .partition(|&id| self.shard(id).is_some_and(|shard| self.pending.is_first(shard)));
        let mut wanted = self.records.out_of_date(self.graph, &known)?;
        wanted.extend(first);
        Ok(wanted)
    }

    /// Has the shard of an action be there, and looks at all that the action reads: what changes while it runs is
    /// recorded as it was before.
    pub fn provide(&self, id: ActionId) -> Result<(), IoError> {
        let Some(shard) = self.shard(id) else { return Ok(()) };
        if self.pending.is_first(shard) {
            self.pending.keep(shard)?;
            for input in self.graph.action(id).inputs() {
                self.records.digests().digest(self.graph.path(input))?;
            }
        }
        Ok(())
    }

    /// Keeps everything, and records the steps that planning has taken, for whoever asks later what would run.
    pub fn finish(&self, plan: &LinkPlan, cancel: &Cancel) -> Result<(), IoError> {
        let mut backends: Vec<_> = self.of_kinds(&[ActionKind::Opt]).collect();
        backends.sort_by_key(|&id| Reverse(self.graph.action(id).cost));
        for shard in backends.into_iter().filter_map(|id| self.shard(id)) {
            if cancel.is_cancelled() {
                return Ok(());
            }
            self.pending.keep(shard)?;
        }
        self.pending.finish(plan)?;
        for id in self.of_kinds(&[ActionKind::Prepare, ActionKind::ThinLink]) {
            for id in self.records.out_of_date(self.graph, &[id])? {
                self.records.finished(self.graph, id)?;
            }
        }
        Ok(())
    }

    /// The shard that a backend compilation reads.
    fn shard(&self, id: ActionId) -> Option<&Utf8Path> {
        self.graph.action(id).backend().map(|backend| self.graph.path(backend.shard))
    }

    fn of_kinds(&self, kinds: &[ActionKind]) -> impl Iterator<Item = ActionId> {
        self.graph.actions().filter(|(_, action)| kinds.contains(&action.kind())).map(|(id, _)| id)
    }
}
