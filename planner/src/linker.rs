//! Flavours of linkers: what is particular to one lies in a folder of its own, and ends in a [`Flavour`].
//!
//! A folder holds the table of the linker's options, the parser of its words, and how this linker finds files.

pub mod elf;
pub mod options;

pub use elf::shape::WordShape;

use crate::options::Opt;

/// What is asked of a flavour.
#[derive(Debug)]
pub struct Flavour {
    /// The linker's options, and what they do.
    pub options: &'static [Opt],
    /// How one word of a link line is to be read.
    pub shape: fn(&[u8]) -> WordShape,
}

/// ld.lld.
pub const ELF: Flavour = Flavour { options: elf::table::OPTIONS, shape: elf::shape::shape };
