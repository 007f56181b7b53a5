//! Flavours of linkers: the particulars of each.
//!
//! ELF's has the table of the linker's options, the parser of its words, and how this linker finds files. The others
//! are read by the linker's own `--help` (`flavour`, `coff`).

pub mod code_words;
pub mod coff;
pub mod elf;
pub mod flavour;
pub mod help;
pub mod options;

pub use elf::shape::WordShape;
