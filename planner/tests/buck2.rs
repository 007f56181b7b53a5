//! Buck2's front end against a recorded run, against generated meta files, and against what can be wrong.
//!
//! Paths of a Buck2 action are relative to the project root, so each case runs in a directory of its own.

mod cases;
mod links;
mod project;
mod properties;
mod recorded;
