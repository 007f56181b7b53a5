//! Requirements on the native object of one backend compilation, known before it runs.

use distlto_planner::contents::Contents;
use distlto_prepare::kind::Native;

/// Requirements on an object. The default is satisfied by any native object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Format and machine; any when `None`.
    pub native: Option<Native>,
    /// The required contents, where they are known.
    pub contents: Option<Contents>,
}
