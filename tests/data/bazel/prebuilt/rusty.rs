//! A crate for programs of C, which needs nothing of Rust's own.
#![no_std]

/// Imported by main.c.
#[unsafe(no_mangle)]
pub extern "C" fn rusty(x: i32) -> i32 {
    x.wrapping_add(500)
}
