//! The command line of `distlto` as a library, for the program, for the manual pages (`cli/examples/manual`) and for tests.

pub mod arguments;
pub mod cache;
pub mod completions;
