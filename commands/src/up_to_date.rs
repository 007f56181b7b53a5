//! What earlier runs in a state directory read and wrote, and what of it still holds.
//!
//! The files are those of `distlto_planner::freshness`. Records each action as it ends, so that a killed run repeats
//! only what was running. Knows nothing of how actions run.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use distlto_planner::digests::FileDigests;
use distlto_planner::freshness::{self, ActionLog, Reason};
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::state::Place;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::note;
use rayon::prelude::*;

use distlto_executor::run::{Hooks, Made};
use distlto_record::action::{ActionRecord, Fate};
use distlto_record::progress::Reporter;
use distlto_record::why::{Change, Explainer};

/// Actions that have to run, each with the reason.
pub type Stale = Vec<(ActionId, Reason)>;

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
        Self::open_in(directory, Path::new(""))
    }

    /// The same for files whose names begin in the directory `root`.
    pub fn open_in(directory: &Path, root: &Path) -> Result<Self, IoError> {
        let (log, notes) = ActionLog::load(&Place::ActionLog.path(directory))?;
        notes.iter().for_each(note);
        let digests_path = Place::Digests.path(directory);
        // A damaged cache costs time only.
        let (digests, _) = FileDigests::load(&digests_path, root);
        Ok(Self { log, digests, digests_path })
    }

    /// What files hold.
    pub fn digests(&self) -> &FileDigests {
        &self.digests
    }

    /// Those of the actions that have to run, each asked about by itself: what they depend on has run.
    pub fn out_of_date(&self, graph: &ActionGraph, actions: &[ActionId]) -> Result<Stale, IoError> {
        let check = |&id: &ActionId| match freshness::check_action(graph, id, &self.log, &self.digests) {
            Ok(None) => None,
            Ok(Some(reason)) => Some(Ok((id, reason))),
            Err(error) => Some(Err(error)),
        };
        actions.par_iter().with_min_len(16).filter_map(check).collect()
    }

    /// The actions and all that they depend on, each with the reason why it may have to run: it is out of date by itself, or
    /// reads what such an action writes.
    pub fn perhaps_out_of_date(
        &self,
        graph: &ActionGraph,
        actions: &[ActionId],
    ) -> Result<Vec<(ActionId, Option<Reason>)>, IoError> {
        freshness::check(graph, actions, &self.log, &self.digests)
    }

    /// What is known of actions before they run: why they have to, or that they are kept.
    pub fn known(
        &self,
        graph: &ActionGraph,
        actions: impl IntoIterator<Item = (ActionId, Option<Reason>)>,
    ) -> Vec<ActionRecord> {
        let explainer = Explainer::new(graph);
        let known = |(id, reason): (ActionId, Option<Reason>)| {
            let mut action = ActionRecord::of(graph, id);
            for (path, digest) in freshness::last_written(graph, id, &self.log) {
                if let Some(output) = action.outputs.iter_mut().find(|output| output.path == path) {
                    output.before = Some(digest.to_string());
                }
            }
            match reason {
                Some(reason) => action.why = self.why(&explainer, graph, id, &reason),
                None => {
                    action.result = Fate::Kept;
                    action.outputs.iter_mut().for_each(|output| output.after.clone_from(&output.before));
                }
            }
            action
        };
        actions.into_iter().map(known).collect()
    }

    /// Why an action has to run: of inputs that changed, all.
    pub fn why(
        &self,
        explainer: &Explainer<'_>,
        graph: &ActionGraph,
        id: ActionId,
        reason: &Reason,
    ) -> Vec<Change> {
        match reason {
            Reason::InputChanged(_) => {
                let changed = freshness::changed_inputs(graph, id, &self.log, &self.digests);
                explainer.inputs(id, &changed)
            }
            reason => explainer.changes(id, reason),
        }
    }

    /// Records that an action ran.
    pub fn finished(&self, graph: &ActionGraph, action: ActionId) -> Result<(), IoError> {
        freshness::finished(graph, action, &self.log, &self.digests)
    }

    /// Saves the digests for the next run.
    pub fn save(&self) -> Result<(), IoError> {
        self.digests.save(&self.digests_path)
    }
}

/// Records each action of a run as it finishes, and tells what it wrote.
pub struct Recording<'a> {
    graph: &'a ActionGraph,
    records: &'a Records,
    reporter: &'a Reporter,
    error: RefCell<Option<IoError>>,
}

impl<'a> Recording<'a> {
    /// Into these records.
    pub fn new(graph: &'a ActionGraph, records: &'a Records, reporter: &'a Reporter) -> Self {
        Self { graph, records, reporter, error: RefCell::new(None) }
    }

    fn record(&self, action: ActionId) -> Result<(), IoError> {
        self.records.finished(self.graph, action)?;
        let outputs = self.graph.action(action).outputs().map(|output| self.graph.path(output));
        let written =
            outputs.map(|path| Ok((path.to_string(), self.records.digests().digest(path)?.to_string())));
        self.reporter.wrote(action, written.collect::<Result<Vec<_>, IoError>>()?);
        Ok(())
    }

    /// The first record that could not be written.
    pub fn result(self) -> Result<(), IoError> {
        self.error.into_inner().map_or(Ok(()), Err)
    }
}

impl Hooks for Recording<'_> {
    fn finished(&self, action: ActionId, made: &Made<'_>) {
        // The graph does not say what else it depends on, so it runs again each time.
        if !made.undeclared.is_empty() {
            return;
        }
        if let Err(error) = self.record(action) {
            self.error.borrow_mut().get_or_insert(error);
        }
    }
}
