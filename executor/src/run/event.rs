//! What the thread that schedules waits for.

use std::io;

use distlto_planner::graph::ActionId;
use jobserver::Acquired;

use crate::attempt::JobAttempt;

/// What workers, the jobserver and those who add actions tell the thread that schedules.
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
