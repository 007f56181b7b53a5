//! The commands that people, build systems and linkers call, each an assembly of planner, executor and record.
//!
//! Does not depend on how an action is scheduled and run. `cli` and `plugin` give these commands their programs.

pub mod action_log;
pub mod backend_command;
pub mod buck2_index;
mod cargo;
mod completion;
pub mod configuration;
pub mod demo;
pub mod diff;
pub mod distribute;
pub mod doctor;
mod dry_run;
pub mod explain;
pub mod header_list;
pub mod index;
pub mod index_only;
pub mod inspect;
pub mod kbuild_archive;
pub mod link;
pub mod link_description;
pub mod linker_flags;
pub mod opt;
pub mod page;
pub mod plan;
pub mod remote;
mod report;
pub mod run;
pub mod run_args;
mod scratch;
mod serve;
pub use serve::static_linker;
pub mod stats;
pub mod store;
pub mod tool;
mod trial;
mod unoptimised;
pub mod verify;
