//! What is particular to ELF's linker, ld.lld.

pub mod options;
pub mod shape;
pub mod table;
pub mod thin_link;
