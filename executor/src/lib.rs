//! Runs an action graph: schedules, runs and verifies backend compilations.
//!
//! Independent of build systems, link lines and the output of commands. Every link request has become an action graph
//! before.

pub mod action;
pub mod attempt;
pub mod backend_error;
pub mod cache;
pub mod cancel;
pub mod cause;
pub mod describe;
pub mod execute;
pub mod hook;
pub mod import_step;
pub mod job;
pub mod ledger;
pub mod output;
pub mod process_stat;
pub mod program_files;
#[expect(dead_code, reason = "the other half is compiled into the hook")]
pub(crate) mod protocol;
pub mod result;
pub mod run;
pub mod runtime;
pub mod schedule;
pub mod staging;
pub mod trace;
pub mod undeclared;
pub mod variables;
pub mod verify;
