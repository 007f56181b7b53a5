//! Fail closed: the one place that decides whether a backend compilation may run and whether its result counts.
//!
//! Used by every path: local runs, caches, remote execution, the DTLTO distributor. clang exits 0 with an empty
//! object when a shard or an import is missing or damaged (LLVM issue 75441), lld links empty objects, and a
//! module under another path than its shard says loses its functions; so nothing is taken on trust.
//! Knows nothing of how a command is run.

mod contents;
mod inputs;
mod outputs;
mod refusal;
mod versions;
mod zeros;

use distlto_planner::contents::Contents;
use distlto_prepare::kind::Native;

pub(crate) use inputs::NO_SHARD;
pub use inputs::{Backend, Modules};
pub use outputs::{check_object, check_result};
pub use refusal::{Refusal, Refused};

/// Requirements on the native object of one backend compilation, known before it runs. The default is satisfied by any native object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Format and machine; any when `None`.
    pub native: Option<Native>,
    /// The required contents, where they are known.
    pub contents: Option<Contents>,
}
