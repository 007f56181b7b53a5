//! Where backends may run but here: options, configuration files, and what is made of them for the executor.
//!
//! Knows nothing of how an action is sent.

pub mod args;
pub mod check;
pub mod config;
pub mod connect;
pub mod settings;
pub mod trust;
pub mod values;
