//! Converts the result of a system call into a `Result`, and defines the size of huge pages. Independent of the call.

use std::ffi::c_int;
use std::io;

/// Size and alignment of a huge page on x86-64 and, with 4 KiB base pages, on AArch64.
pub const HUGE: usize = 2 << 20;

/// The value, or the call's error.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
