//! Parses patterns, and has the C++ side keep what they mean.

use std::ffi::{c_char, c_int, c_void};

const PATTERNS: [&str; 5] = ["a+b", r"(?i)str(a|\u{e4})sse", r"^\p{Greek}{2,5}$", "(unclosed", "[a-f&&[^c]]*?"];

extern "C" {
    fn keep(
        database: *mut c_void,
        name: *const c_char,
        name_length: usize,
        text: *const c_char,
        length: usize,
    ) -> c_int;
}

/// How many patterns were kept.
///
/// # Safety
///
/// `database` is one that is open.
#[no_mangle]
pub unsafe extern "C" fn keep_patterns(database: *mut c_void) -> c_int {
    let mut kept = 0;
    for pattern in PATTERNS {
        let Ok(parsed) = regex_syntax::parse(pattern) else { continue };
        let text = format!("{parsed}\n{:?}", parsed.properties());
        let done = unsafe {
            keep(database, pattern.as_ptr().cast(), pattern.len(), text.as_ptr().cast(), text.len())
        };
        kept += c_int::from(done == 0);
    }
    kept
}
