//! Warnings on standard error, in one style for all programs.
//!
//! Does not depend on the subject of a warning.

use std::fmt::Display;

use crate::message::show;

/// A warning as a line.
pub fn line(what: impl Display) -> String {
    format!("distlto: warning: {what}\n")
}

/// Warns of something that goes on, but not as it was asked for. A standard error that is gone is no reason to fail.
pub fn warn(what: impl Display) {
    show(line(what).as_bytes());
}
