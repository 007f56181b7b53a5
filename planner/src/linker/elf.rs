//! What is particular to ELF's linker, ld.lld: its options, and how it finds files.

pub mod script;
pub mod search;
pub mod shape;
pub mod table;
