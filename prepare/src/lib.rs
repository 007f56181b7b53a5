//! Turns what a linker is given into files that a ThinLTO backend can open.
//!
//! Knows file formats (bitcode, native objects, FatLTO, archives of every kind) and one rule for names;
//! knows nothing of links and plans.

pub mod exit;
pub mod write;
