//! What a mistake of ours has to say: a panic's message, kept for the linker instead of printed over its output.
//!
//! The hook is that of this library's own copy of Rust's runtime, which nothing else in the process uses.

use std::panic;
use std::sync::{Mutex, Once, PoisonError};

static LAST: Mutex<Option<String>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// Has panics of this library keep quiet.
pub fn keep_quiet() {
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|info| {
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string());
        }));
    });
}

/// The message of the last panic, once.
pub fn last() -> Option<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).take()
}
