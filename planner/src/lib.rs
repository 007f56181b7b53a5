//! From a link line to an action graph.

pub mod alias;
pub mod backend_flags;
pub mod bitcode;
pub mod compile_jobs;
pub mod driver;
pub mod front;
pub mod graph;
pub mod index;
pub mod inputs;
pub mod invocation;
pub mod link_line;
pub mod link_plan;
pub mod lld_options;
pub mod module;
pub mod response;
pub mod rewrite;
pub mod runner;
pub mod scratch;
pub mod search;
pub mod shard;
pub mod thin_link;
pub mod words;
