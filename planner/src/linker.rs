//! Flavours of linkers: what is particular to one lies in a folder of its own, and ends in a [`Flavour`].
//!
//! A folder holds the table of the linker's options and what they do, how a word of its lines is read, and how it is told to
//! do a thin link; these know nothing of who asks. Beside them lies what only this linker has, which reads the inputs of a
//! link.

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
    /// The words that make of a link line a thin link.
    pub thin_link: fn(&ThinLinkPlaces<'_>) -> Vec<String>,
}

/// ld.lld.
pub const ELF: Flavour =
    Flavour { options: elf::table::OPTIONS, shape: elf::shape::shape, thin_link: elf::thin_link::words };

/// Where a thin link is to write.
#[derive(Debug, Clone, Copy)]
pub struct ThinLinkPlaces<'a> {
    /// The list of the modules that have shards.
    pub index: &'a str,
    /// What is put before a module id for the module's shard and import list; ends in a slash.
    pub prefix: &'a str,
    /// An output, which nobody reads.
    pub output: &'a str,
    /// The object with the code of regular LTO, if there may be any.
    pub regular: Option<&'a str>,
}
