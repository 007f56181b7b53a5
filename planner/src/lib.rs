//! From a link line to an action graph.

pub mod graph;
pub mod link_plan;
