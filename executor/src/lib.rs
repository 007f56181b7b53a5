//! Runs an action graph: schedules, runs and verifies backend compilations.
//!
//! Knows nothing of build systems, of link lines and of what a command prints. Whatever asked for the link ended in an
//! action graph.

pub mod action;
pub mod attempt;
pub mod backend_error;
pub mod cache;
pub mod cancel;
pub mod cause;
pub mod describe;
pub mod execute;
pub mod job;
pub mod ledger;
pub mod loaded;
pub mod output;
pub mod precise;
pub mod process_stat;
pub mod result;
pub mod run;
pub mod runtime;
pub mod schedule;
pub mod staging;
pub mod trace;
pub mod undeclared;
pub mod variables;
pub mod verify;
