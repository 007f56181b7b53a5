//! What a system call returned, as a `Result`. Knows nothing of which call it was.

use std::ffi::c_int;
use std::io;

/// The value, or the call's error.
pub fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
