//! The client against a whole server in this process, which errs as each test wants.
//!
//! One program, since it is large to link. No test depends on how fast something is: where order matters, the server holds
//! actions back, or counts what it was asked.

mod connections;
mod credentials;
mod downloads;
mod executions;
mod help;
mod hostile;
mod losses;
mod merkle;
mod tls;
mod uploads;
