//! From a link line to an action graph.

pub mod backend_flags;
pub mod bitcode;
pub mod digests;
pub mod driver;
pub mod emit;
pub mod freshness;
pub mod front;
pub mod graph;
pub mod invocation;
pub mod link_line;
pub mod link_plan;
pub mod lld_options;
pub mod module;
pub mod plan_command;
pub mod response;
pub mod runner;
pub mod search;
pub mod shard;
pub mod words;
pub mod inputs;
pub mod alias;
pub mod index;
pub mod compile_jobs;
pub mod rewrite;
pub mod thin_link;
pub mod scratch;
