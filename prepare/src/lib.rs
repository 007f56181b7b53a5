//! Turns what a linker is given into files that a ThinLTO backend can open.
//!
//! Knows file formats (bitcode, native objects, FatLTO, archives of every kind) and one rule for names;
//! knows nothing of links and plans.

mod archive;
pub mod command;
mod directory;
pub mod error;
pub mod exit;
pub mod input;
pub mod kind;
pub mod manifest;
pub mod names;
mod native;
pub mod peek;
pub mod prune;
mod record;
pub mod store;
mod universal;
pub mod unpack;
pub mod write;
