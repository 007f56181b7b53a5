//! Tests of the action graph: its JSON against the published schema, its orders, its emitters against real
//! Ninja and a real shell.

mod check;
mod dot;
mod json;
mod ninja;
mod samples;
mod summary;
