//! A library preloaded into unmodified programs: the processes of a link, and compilers.
//!
//! Interposes glibc's `__libc_start_main`, which the executable's `_start` calls after every shared library is
//! relocated and initialised. A linker that finds a service requests its objects from it ([`linker`]). A compiler notes
//! its reads. In every other process the library is transparent. Depends on libc alone,
//! and not on the other parts of a link.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod driver;
mod exec;
mod files;
mod import;
mod linker;
mod program;
#[expect(dead_code, reason = "the other half is compiled into the executor")]
mod protocol;
mod service;
mod socket;
mod start;
mod system;
mod trace;
