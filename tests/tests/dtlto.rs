//! Links through clang and lld with `distlto-distribute` as the distributor: objects, endings, bad input.
//!
//! The oracle is the simplest distributor there can be, `distlto-test-distributor`, which runs the same jobs one after
//! the other.

mod ends;
mod identifiers;
mod inputs;
mod misbehaving;
mod options;
mod programs;
mod small;
