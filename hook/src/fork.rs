//! The fork server: a program that is loaded once and forks a child for each job.
//!
//! Knows nothing of compilers: a job is an argument list, an environment, a directory and two descriptors.

mod heap;
mod huge;
mod job;
mod layout;
mod llvm;
pub mod server;
