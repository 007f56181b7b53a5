//! `distlto index` as Buck2's planner, on stock linkers: the command lines that the prelude's rules run.
//!
//! Expectations are those of a recorded run, of lld's own trace, or of the program that the plans lead to.

#[path = "buck2_index/darwin.rs"]
mod darwin;
#[path = "buck2_index/failures.rs"]
mod failures;
#[path = "buck2_index/kinds.rs"]
mod kinds;
#[path = "buck2_index/loaded.rs"]
mod loaded;
#[path = "buck2_index/recorded.rs"]
mod recorded;
#[path = "buck2_index/rule.rs"]
mod rule;
