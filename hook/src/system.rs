//! Converts the result of a system call into a `Result`. Independent of the call.

use std::ffi::c_int;
use std::io;

/// The value, or the call's error.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
