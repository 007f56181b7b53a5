//! The fork server: a program that is loaded once and forks a child for each job.
//!
//! Independent of compilers: a job is an argument list, an environment, a directory and descriptors.

mod heap;
mod huge;
mod job;
mod layout;
mod llvm;
pub mod server;
