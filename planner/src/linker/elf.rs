//! What is particular to ELF's linker, ld.lld: its options, how it finds files, and what a link in two steps has to know of it.

pub(crate) mod library_members;
pub mod script;
pub(crate) mod script_objects;
pub mod search;
pub mod shape;
pub mod table;
pub mod thin_link;
pub(crate) mod wrapped;
