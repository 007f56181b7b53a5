//! Tests of the action graph: its JSON against the published schema, its orders, its emitters against real
//! Ninja and a real shell.

#[path = "graph/check.rs"]
mod check;
#[path = "graph/dot.rs"]
mod dot;
#[path = "graph/json.rs"]
mod json;
#[path = "graph/ninja.rs"]
mod ninja;
#[path = "graph/ninja_build.rs"]
mod ninja_build;
#[path = "graph/samples.rs"]
mod samples;
#[path = "graph/shell.rs"]
mod shell;
#[path = "graph/summary.rs"]
mod summary;
