//! What planning leaves to be kept, kept while backends run: shards in the order in which they will be needed.
//!
//! A worker that is about to run a backend whose shard is not there yet keeps it itself, so none reads a shard before
//! it is whole (`distlto_planner::pending`). Knows nothing of schedules but that costly actions come first.

use std::cmp::Reverse;
use std::collections::HashMap;

use camino::Utf8Path;
use distlto_planner::freshness::Reason;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_planner::link_plan::{LinkPlan, ObjectPlan};
use distlto_planner::pending::Pending;
use distlto_prepare::io_error::IoError;

use crate::up_to_date::{Records, Stale};
use distlto_executor::cancel::Cancel;
use distlto_record::action::{ActionRecord, Instructions};

/// The backends of one planned link and what of them is not kept.
pub struct Keeping<'a> {
    pub graph: &'a ActionGraph,
    pub plan: &'a LinkPlan,
    pub pending: &'a Pending,
    pub records: &'a Records,
}

impl Keeping<'_> {
    /// The backends that have to run. One whose shard is not kept has no object, and is not asked about.
    pub fn out_of_date(&self) -> Result<Stale, IoError> {
        let (first, known): (Vec<_>, Vec<_>) = self
            .of_kinds(&[ActionKind::Opt])
            .partition(|&id| self.shard(id).is_some_and(|shard| self.pending.is_first(shard)));
        let mut wanted = self.records.out_of_date(self.graph, &known)?;
        wanted.extend(first.into_iter().map(|id| (id, self.records.without_output(self.graph, id))));
        Ok(wanted)
    }

    /// What is known of all backends, of which these have to run.
    pub fn known(&self, wanted: &Stale) -> Vec<ActionRecord> {
        let mut reasons: HashMap<ActionId, &Reason> =
            wanted.iter().map(|(id, reason)| (*id, reason)).collect();
        let backends = self.of_kinds(&[ActionKind::Opt]).map(|id| (id, reasons.remove(&id).cloned()));
        let mut known = self.records.known(self.graph, backends);
        let modules: HashMap<&str, &ObjectPlan> =
            self.plan.modules.iter().map(|module| (module.id.as_str(), module)).collect();
        for action in &mut known {
            action.instructions = modules.get(action.label.as_str()).map(|module| Instructions {
                own: module.own_instructions,
                imported: module.imported_instructions,
            });
        }
        known
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
    pub fn finish(&self, cancel: &Cancel) -> Result<(), IoError> {
        let mut backends: Vec<_> = self.of_kinds(&[ActionKind::Opt]).collect();
        backends.sort_by_key(|&id| Reverse(self.graph.action(id).cost));
        for shard in backends.into_iter().filter_map(|id| self.shard(id)) {
            if cancel.is_cancelled() {
                return Ok(());
            }
            self.pending.keep(shard)?;
        }
        self.pending.finish(self.plan)?;
        for id in self.of_kinds(&[ActionKind::Prepare, ActionKind::ThinLink]) {
            for (id, _) in self.records.out_of_date(self.graph, &[id])? {
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
