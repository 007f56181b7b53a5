//! What an action graph is written as for other programs: DOT to be drawn, Ninja, Make and a shell script to be run,
//! a list of commands for tools.
//!
//! Every emitter is a pure function of the graph. Adding a build system is one emitter here; none knows of
//! the front end that the graph came from.

mod command;
pub mod compile_commands;
pub mod dot;
pub mod make;
pub mod ninja;
pub mod shell;
