//! Settings of an engine: its servers, their use, and the requirements on workers.
//!
//! Knows nothing of where that is configured.

use std::time::Duration;

use distlto_reapi::Options;

use crate::ledger::Ledger;

/// How an engine is used.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The server that executes actions, if one does.
    pub execution: Option<Options>,
    /// The server with the action cache. Without it, the cache of `execution` is read.
    pub cache: Option<ActionCache>,
    /// How many actions run there at once.
    pub slots: usize,
    /// Platform properties that a worker must have.
    pub platform: Vec<(String, String)>,
    /// How long an action may be queued.
    pub queue_time: Duration,
    /// How long it may run; for ever if `None`.
    pub run_time: Option<Duration>,
    /// How long a run waits for results on their way to the action cache.
    pub upload_time: Duration,
    /// Where it is noted that a server did not answer; nowhere when `None`.
    pub ledger: Option<Ledger>,
    /// Whether workers get the compiler as an input; else they have it.
    pub uploads_toolchain: bool,
    /// Whether this machine runs the actions that the engine does not.
    pub falls_back: bool,
}

/// A server that is used as an action cache.
#[derive(Debug, Clone)]
pub struct ActionCache {
    /// Where it is.
    pub server: Options,
    /// Whether results are kept in it too, and not only taken from it.
    pub is_written: bool,
}
