//! What earlier runs in a state directory read and wrote, and what of it still holds.
//!
//! The files are those of `distlto_planner::freshness`. Records each action as it ends, so that a killed run repeats
//! only what was running. Knows nothing of how actions run.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use distlto_planner::digests::FileDigests;
use distlto_planner::freshness::{self, ActionLog};
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::state::Place;
use distlto_prepare::write::IoError;
use rayon::prelude::*;

use distlto_executor::run::Hooks;
use distlto_record::report::Measured;

/// The records of a state directory that this process holds the lock of.
#[derive(Debug)]
pub struct Records {
    log: ActionLog,
    digests: FileDigests,
    digests_path: PathBuf,
}

impl Records {
    /// Reads them. What cannot be used is told, and costs only time.
    pub fn open(directory: &Path) -> Result<Self, IoError> {
        let (log, notes) = ActionLog::load(&Place::ActionLog.path(directory))?;
        notes.iter().for_each(|note| eprintln!("distlto: note: {note}"));
        let digests_path = Place::Digests.path(directory);
        // A damaged cache costs time only.
        let (digests, _) = FileDigests::load(&digests_path, Path::new(""));
        Ok(Self { log, digests, digests_path })
    }

    /// What files hold.
    pub fn digests(&self) -> &FileDigests {
        &self.digests
    }

    /// Those of the actions that have to run, each asked about by itself: what they depend on has run.
    pub fn out_of_date(&self, graph: &ActionGraph, actions: &[ActionId]) -> Result<Vec<ActionId>, IoError> {
        let check = |&id: &ActionId| match freshness::check_action(graph, id, &self.log, &self.digests) {
            Ok(None) => None,
            Ok(Some(_)) => Some(Ok(id)),
            Err(error) => Some(Err(error)),
        };
        actions.par_iter().with_min_len(16).filter_map(check).collect()
    }

    /// Those of the actions and of all that they depend on that may have to run: out of date by themselves, or reading
    /// what such an action writes.
    pub fn perhaps_out_of_date(
        &self,
        graph: &ActionGraph,
        actions: &[ActionId],
    ) -> Result<Vec<ActionId>, IoError> {
        let found = freshness::check(graph, actions, &self.log, &self.digests)?;
        Ok(found.into_iter().filter_map(|(id, reason)| reason.map(|_| id)).collect())
    }

    /// Records that an action ran.
    pub fn finished(&self, graph: &ActionGraph, action: ActionId) -> Result<(), IoError> {
        freshness::finished(graph, action, &self.log, &self.digests)
    }

    /// Records those of the actions whose record does not hold. All have run, and nothing has written their outputs since the
    /// digests of those were first asked for.
    pub fn record(&self, graph: &ActionGraph, actions: &[ActionId]) -> Result<(), IoError> {
        let stale = self.out_of_date(graph, actions)?;
        stale.into_iter().try_for_each(|id| freshness::record(graph, id, &self.log, &self.digests))
    }

    /// Saves the digests for the next run.
    pub fn save(&self) -> Result<(), IoError> {
        self.digests.save(&self.digests_path)
    }
}

/// Records each action of a run as it finishes.
#[derive(Debug)]
pub struct Recording<'a> {
    graph: &'a ActionGraph,
    records: &'a Records,
    error: RefCell<Option<IoError>>,
}

impl<'a> Recording<'a> {
    /// Into these records.
    pub fn new(graph: &'a ActionGraph, records: &'a Records) -> Self {
        Self { graph, records, error: RefCell::new(None) }
    }

    /// The first record that could not be written.
    pub fn result(self) -> Result<(), IoError> {
        self.error.into_inner().map_or(Ok(()), Err)
    }
}

impl Hooks for Recording<'_> {
    fn finished(&self, action: ActionId, _: Measured) {
        if let Err(error) = self.records.finished(self.graph, action) {
            self.error.borrow_mut().get_or_insert(error);
        }
    }
}
