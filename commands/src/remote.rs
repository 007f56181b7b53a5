//! Places other than this machine where backends may run: options, configuration files, and the executor's settings.
//!
//! Does not depend on how an action is sent.

pub mod args;
pub mod check;
pub mod connect;
pub mod settings;
pub mod values;
