//! `distlto index` as Buck2's planner, on stock linkers: the command lines that the prelude's rules run.
//!
//! Expectations are those of a recorded run, of lld's own trace, or of the program that the plans lead to.

mod darwin;
mod failures;
mod kinds;
mod loaded;
mod recorded;
mod rule;
