//! The events of the scheduling thread.

use std::io;

use distlto_planner::graph::ActionId;
use jobserver::Acquired;

use crate::attempt::JobAttempt;

/// A message to the scheduling thread from a worker, the jobserver, or a caller that adds actions.
pub(super) enum Event {
    /// `worker` is `None` for an action that this thread ran itself.
    Ended {
        worker: Option<usize>,
        action: ActionId,
        attempt: Box<JobAttempt>,
    },
    Token(io::Result<Acquired>),
    /// Actions have arrived, or no more will.
    Arrived,
}
