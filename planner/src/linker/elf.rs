//! Particulars of ELF's linker, ld.lld: its options, and its search for files.

pub mod script;
pub mod search;
pub mod shape;
pub mod table;
