//! Runs an action graph: schedules, runs and verifies backend compilations.
//!
//! Knows nothing of build systems and link lines. Whatever asked for the link ended in an action graph.

pub mod backend_error;
pub mod buck2_index;
pub mod cache;
pub mod cancel;
pub mod capture;
pub mod command;
pub mod distribute;
pub mod estimate;
pub mod forkserver;
pub mod frontend;
pub mod heap;
pub mod history;
pub mod index_command;
pub mod job;
pub mod link;
pub mod loaded;
pub mod local;
pub mod memory;
pub mod module_links;
pub mod opt;
pub mod process;
pub mod progress;
pub mod report;
pub mod response_file;
pub mod run;
pub mod run_args;
pub mod run_command;
pub mod schedule;
pub mod staging;
pub mod tokens;
pub mod tool;
pub mod trace;
pub mod up_to_date;
pub mod variables;
pub mod verify;
