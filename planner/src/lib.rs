//! From a link line to an action graph.

pub mod backend_flags;
pub mod bitcode;
pub mod driver;
pub mod front;
pub mod graph;
pub mod invocation;
pub mod link_line;
pub mod link_plan;
pub mod lld_options;
pub mod module;
pub mod response;
pub mod runner;
pub mod search;
pub mod shard;
pub mod words;
