//! Reads LLVM's bitstream container: magic, wrapper, blocks, abbreviations, records.
//!
//! Does not depend on the meaning of records, on files, or on LLVM. The format is that of LLVM's document "LLVM
//! Bitcode File Format"; block numbers are those of `LLVMBitCodes.h`. Crate `llvm-bitcode` reads the same container.
//! But it allocates by lengths found in the file, recurses once per abbreviation definition, and has no offsets to
//! report. So untrusted bytes are walked here: no recursion, bounded work, bit offsets.

mod abbreviation;
mod block;
mod cursor;
mod error;
pub(crate) mod writer;

pub use block::{Block, Item, SubBlock, Walk};
pub use cursor::Cursor;
pub use error::BitcodeError;

/// Block number: names of the producer and of the format's epoch.
pub const IDENTIFICATION_BLOCK: u64 = 13;
/// Block number: one module, or the body of an index shard.
pub const MODULE_BLOCK: u64 = 8;
/// Block number: the module path table of an index shard.
pub const MODULE_STRTAB_BLOCK: u64 = 19;
/// Block number: ThinLTO summaries.
pub const GLOBALVAL_SUMMARY_BLOCK: u64 = 20;
/// Block number: the string table that all modules of a file share.
pub const STRTAB_BLOCK: u64 = 23;
/// Block number: the symbol table for linkers.
pub const SYMTAB_BLOCK: u64 = 25;
/// Block number: summaries of a module for regular (full) LTO.
pub const FULL_LTO_GLOBALVAL_SUMMARY_BLOCK: u64 = 24;

/// Versions of summary records with a known layout: those of LLVM 14 (9) to LLVM 23 (14).
pub const SUMMARY_VERSIONS: std::ops::RangeInclusive<u64> = 9..=14;

/// The content of a module as its producer hashed it (SHA-1, five words).
pub type ModuleHash = [u32; 5];

pub(crate) const MAGIC: [u8; 4] = [0x42, 0x43, 0xC0, 0xDE];
const WRAPPER_MAGIC: [u8; 4] = [0xDE, 0xC0, 0x17, 0x0B];

/// The top level of a bitstream, after its magic. Accepts raw bitcode and bitcode in Darwin's wrapper.
pub fn open(bytes: &[u8]) -> Result<Block<'_>, BitcodeError> {
    let mut cursor = Cursor::new(bytes);
    if bytes.is_empty() {
        return Err(cursor.error("the file is empty", "the bitcode magic `BC` C0 DE"));
    }
    if bytes.starts_with(&WRAPPER_MAGIC) {
        // Magic, version, offset, size, CPU type: five little-endian words.
        cursor.fixed(32)?;
        cursor.fixed(32)?;
        let offset = cursor.fixed(32)?;
        let size = cursor.fixed(32)?;
        cursor = cursor.window(offset, size)?;
    }
    if !cursor.rest().starts_with(&MAGIC) {
        return Err(cursor.error("other bytes", "the bitcode magic `BC` C0 DE"));
    }
    cursor.fixed(32)?;
    Ok(Block::top(cursor))
}
