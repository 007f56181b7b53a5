//! A library preloaded into unmodified programs: the processes of a link, and compilers.
//!
//! Interposes glibc's `__libc_start_main`, which the executable's `_start` calls after every shared library is
//! relocated and initialised. A compiler that is asked to becomes a fork server ([`fork`]); a linker that finds a service
//! asks it for its objects ([`linker`]). In every other process it is transparent. Depends on libc alone. Knows nothing of links.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod exec;
mod files;
mod fork;
mod linker;
mod program;
#[expect(dead_code, reason = "the other half is compiled into the executor")]
mod protocol;
mod service;
mod socket;
mod start;
mod system;
mod trace;
