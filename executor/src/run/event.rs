//! The events of the scheduling thread.

use std::io;

use crate::attempt::JobAttempt;
use crate::schedule::tokens::Slot;
use distlto_planner::graph::ActionId;

/// A message to the scheduling thread from a worker, the job slots, or a caller that adds actions.
pub(super) enum Event {
    /// `worker` is `None` for an action that this thread ran itself.
    Ended {
        worker: Option<usize>,
        action: ActionId,
        attempt: Box<JobAttempt>,
    },
    Token(io::Result<Slot>),
    /// Actions have arrived, or no more will.
    Arrived,
}
