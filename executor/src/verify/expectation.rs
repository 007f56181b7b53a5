//! Requirements on the native object of one backend compilation, known before it runs.

use distlto_planner::contents::Contents;
use distlto_prepare::kind::Native;

/// What an object has to be and to hold. The default is satisfied by any native object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Format and machine; any when `None`.
    pub native: Option<Native>,
    /// What it has to hold, where that is known.
    pub contents: Option<Contents>,
}
