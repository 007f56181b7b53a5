//! A library preloaded into unmodified programs: the processes of a link, and compilers.
//!
//! Interposes glibc's `__libc_start_main`, which the executable's `_start` calls after every shared library is
//! relocated and initialised. A compiler that is asked to becomes a fork server ([`fork`]). In every other process it is
//! transparent. Depends on libc alone. Knows nothing of links.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod fork;
mod program;
#[expect(dead_code, reason = "the client half is compiled into the executor")]
mod protocol;
mod socket;
mod start;
mod system;
