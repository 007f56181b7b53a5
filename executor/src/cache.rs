//! Results of actions, kept for other runs.
//!
//! Knows keys and files. How keys come from commands and inputs is not decided by what keeps the results.

pub mod store;
