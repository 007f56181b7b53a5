//! The library that all processes of a build inherit, and the rule by which it finds linkers and their drivers.
//!
//! This source is compiled twice. As the library ([`LIBRARY`], built by `build.rs`) it replaces the functions that start
//! programs ([`preload`]), and depends on nothing but a libc. As a crate it holds that library's bytes. Does not depend on
//! the service or its messages.

#![cfg_attr(library, no_std)]

pub mod environment;
pub mod kind;
#[cfg(library)]
mod preload;
#[cfg(library)]
mod sanitizer;

/// The library, as a file holds it. Empty where there is none for the system.
#[cfg(not(library))]
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libdistlto_exec.so"));
