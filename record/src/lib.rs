//! The events of a run as data, and their output: progress, summary, trace, JSON.
//!
//! Knows nothing of processes, of scheduling, and of who asked for the run.

pub mod action;
pub mod cause;
pub mod diff;
pub mod inspect;
pub mod page;
pub mod progress;
pub mod report;
pub mod run;
pub mod trace;
pub mod usage;
pub mod why;
