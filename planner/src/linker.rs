//! Flavours of linkers: the particulars of each lie in a folder of its own, and end in a [`Flavour`].
//!
//! A folder holds the table of the linker's options, the parser of its words, and how this linker finds files.

pub mod elf;
pub mod options;

pub use elf::shape::WordShape;

use crate::options::Opt;

/// The interface of a flavour.
#[derive(Debug)]
pub struct Flavour {
    /// The linker's options and their effects.
    pub options: &'static [Opt],
    /// How one word of a link line is to be read.
    pub shape: fn(&[u8]) -> WordShape,
}

/// ld.lld.
pub const ELF: Flavour = Flavour { options: elf::table::OPTIONS, shape: elf::shape::shape };
