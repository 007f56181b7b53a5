//! The progress of one link, shared by the threads that answer its linker, run backends and keep objects.
//!
//! Does not decide what runs.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use distlto_planner::graph::ActionId;
use distlto_prepare::mutex::lock;
use distlto_record::report::Measured;

use super::module::LinkModule;
use super::module_record::RecordedObject;
use super::protocol::Answer;
use super::socket::Connection;
use crate::link::error::LinkError;

/// An object whose compilation printed text, perhaps an error. lld writes an object after an error too, so such objects
/// count only after the linker has succeeded.
pub type PrintedObject = (RecordedObject, Vec<u8>, Measured);

/// The progress of a link.
#[derive(Default)]
pub struct LinkProgress {
    pub modules: Vec<LinkModule>,
    /// The module of each action.
    pub actions: Vec<usize>,
    /// Actions that have been added and have not ended.
    pub open: usize,
    /// The open actions that run.
    pub running: HashSet<ActionId>,
    pub has_failed: bool,
    /// Whether the run has ended: nothing that is asked for will be made.
    pub is_over: bool,
    /// Whether the linker begins anew, without stable names.
    pub is_anew: bool,
    pub printed: Vec<PrintedObject>,
    pub error: Option<LinkError>,
    /// When the linker asked first, and when the last answer was given.
    pub asked: Option<Instant>,
    pub answered: Option<Instant>,
}

/// Ends the run: nothing more is made, and a linker that waits for something ends.
pub fn end_run(progress: &Mutex<LinkProgress>, linker: &Connection) {
    let mut progress = lock(progress);
    progress.is_over = true;
    if let Some(ticket) = progress.modules.iter_mut().find_map(|module| module.ticket.take()) {
        // One that is gone has ended.
        let _ = linker.answer(ticket, Answer::End(1));
    }
}

/// The result of serving a linker.
pub struct LinkResult {
    /// The modules that it asked for.
    pub modules: Vec<LinkModule>,
    pub outcome: Outcome,
    pub asked: Option<Instant>,
    pub answered: Option<Instant>,
    pub printed: Vec<PrintedObject>,
}

/// How serving a linker ended.
#[derive(Debug)]
pub enum Outcome {
    /// The linker has got each object that it asked for.
    Complete,
    /// The linker begins anew without stable names, so that nothing of this counts.
    Anew,
    /// A backend failed; the exit code of the run.
    Failed(u8),
    /// Serving itself failed.
    Broken(LinkError),
}

impl LinkResult {
    /// The result of a link that serving has failed.
    pub fn broken(error: LinkError) -> Self {
        Self {
            modules: Vec::new(),
            outcome: Outcome::Broken(error),
            asked: None,
            answered: None,
            printed: Vec::new(),
        }
    }

    /// The result of a run with this exit code. `is_reported` if the linker has reported the failure.
    pub fn of(progress: LinkProgress, code: u8, is_reported: bool) -> Self {
        let LinkProgress { modules, is_anew, printed, error, asked, answered, .. } = progress;
        let outcome = match (error, code) {
            _ if is_anew => Outcome::Anew,
            (Some(error), _) => Outcome::Broken(error),
            (None, 0) => Outcome::Complete,
            (None, _) if is_reported => Outcome::Complete,
            (None, code) => Outcome::Failed(code),
        };
        Self { modules, outcome, asked, answered, printed }
    }
}
