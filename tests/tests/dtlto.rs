//! Links through clang and lld with `distlto-distribute` as the distributor: objects, endings, bad input, saved jobs.
//!
//! The oracle is the simplest distributor there can be, `distlto-test-distributor`, which runs the same jobs one after
//! the other.

#[path = "dtlto/ends.rs"]
mod ends;
#[path = "dtlto/identifiers.rs"]
mod identifiers;
#[path = "dtlto/inputs.rs"]
mod inputs;
#[path = "dtlto/misbehaving.rs"]
mod misbehaving;
#[path = "dtlto/options.rs"]
mod options;
#[path = "dtlto/programs.rs"]
mod programs;
#[path = "dtlto/saved.rs"]
mod saved;
#[path = "dtlto/small.rs"]
mod small;
