//! Programs with the address sanitizer in a library of its own, as gcc's and clang's `-shared-libasan` have it.
//!
//! They refuse to run where another library is loaded before the sanitizer's, as this one is. The sanitizer asks the program
//! for its default options by this function; a program that has one of its own is asked instead. Variables of the build come
//! after the defaults.

use core::ffi::{CStr, c_char};

const OPTIONS: &CStr = c"verify_asan_link_order=0";

/// Called by the sanitizer's library.
#[unsafe(no_mangle)]
pub extern "C" fn __asan_default_options() -> *const c_char {
    OPTIONS.as_ptr()
}
