//! Whether a server leaves lookups without any answer, so that this machine does what waits for them.
//!
//! Long before such a server counts as lost, its lookups cost more than they give. One lookup stays with it, which shows
//! whether it comes back or is lost. Knows nothing of actions and slots.

use std::time::{Duration, Instant};

use distlto_reapi::Error;
use tokio::task::JoinHandle;

/// A server is silent when lookups have waited for so long and nothing of an answer has come.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lookup that a silent server has.
type Probe = JoinHandle<Result<(), Error>>;

/// What is known of a server's silence.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// How many answers and parts of answers had come at the last look, and when a look last found more of them.
    answers: u64,
    heard: Option<Instant>,
    is_known: bool,
    probe: Option<Probe>,
}

impl Silence {
    /// Whether the server is silent, of which so many answers have come and for which lookups have waited since then. It is
    /// until a lookup comes to an end.
    pub(super) fn lasts(&mut self, answers: u64, since: Option<Instant>) -> bool {
        if self.answers != answers {
            (self.answers, self.heard) = (answers, Some(Instant::now()));
        }
        let begun = since.map(|since| since.max(self.heard.unwrap_or(since)));
        self.is_known |= begun.is_some_and(|begun| begun.elapsed() >= PATIENCE);
        self.is_known
    }

    /// A lookup has come to an end.
    pub(super) fn ends(&mut self) {
        (self.heard, self.is_known) = (Some(Instant::now()), false);
    }

    /// Begins a lookup that stays with the server, unless there is one.
    pub(super) fn probe(&mut self, begin: impl FnOnce() -> Probe) {
        self.probe.get_or_insert_with(begin);
    }

    /// Returns that lookup if it has come to an end.
    pub(super) fn ended_probe(&mut self) -> Option<Probe> {
        self.probe.take_if(|probe| probe.is_finished())
    }
}
