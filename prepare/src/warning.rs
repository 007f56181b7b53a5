//! Warnings on standard error, all in one style whichever of the programs gives them.
//!
//! Knows nothing of what they are about.

use std::fmt::Display;

use crate::message::show;

/// A warning as a line.
pub fn line(what: impl Display) -> String {
    format!("distlto: warning: {what}\n")
}

/// Tells of something that goes on, but not as it was asked for. A standard error that is gone is no reason to fail.
pub fn warn(what: impl Display) {
    show(line(what).as_bytes());
}
