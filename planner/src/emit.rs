//! The forms of an action graph for other programs: DOT to be drawn, Ninja to be run.
//!
//! Every emitter is a pure function of the graph. Adding a build system is one emitter here; none knows of
//! the front end that the graph came from.

mod command;
pub mod dot;
pub mod ninja;
