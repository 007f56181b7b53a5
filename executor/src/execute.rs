//! How a command runs on this machine: its words made fit, a process of its own or a fork server's child, its output.
//!
//! Knows nothing of caches, of schedules and of what a result has to be.

pub mod capture;
pub mod cc1;
pub mod drivers;
pub mod forkserver;
pub mod heap;
pub mod process;
pub mod response_file;
pub mod spawn;
