//! A library preloaded into an unmodified compiler: the process loads once, then forks one child per job.
//!
//! Interposes glibc's `__libc_start_main`, which the executable's `_start` calls after every shared library is
//! relocated and initialised. Without the variable of [`protocol::VARIABLE`] it is transparent. Knows nothing
//! of compilers: a job is an argument list, an environment, a directory and two descriptors.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod heap;
mod huge;
mod job;
mod layout;
mod llvm;
mod program;
#[expect(dead_code, reason = "the client half is compiled into the executor")]
mod protocol;
mod server;
mod socket;
mod start;
mod system;
mod touched;
