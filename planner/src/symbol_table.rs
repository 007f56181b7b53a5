//! The symbol table that a bitcode object carries for linkers: each symbol by the name that its native object gives it.
//!
//! Format: `llvm/include/llvm/Object/IRSymtab.h`, version 3 (LLVM 13 to 22), in a block of its own; names lie in the
//! string table of the file. A split unit has one table for its two modules; this module reads the part of the first.
//! Does not depend on the link's use of the symbols.

use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};

/// The version with a known layout.
const VERSION: u32 = 3;
/// The one record of each of the two blocks.
const BLOB: u64 = 1;

/// Places in the header, in words of 32 bits: ranges are a byte offset and a count.
const MODULES: usize = 3;
const SYMBOLS: usize = 7;
const SOURCE: usize = 13;
/// LittleEndianWords of a symbol's entry.
const SYMBOL_WORDS: usize = 6;

/// Flags of a symbol.
const UNDEFINED: u32 = 1 << 3;
const WEAK: u32 = 1 << 4;
const USED: u32 = 1 << 7;
const TLS: u32 = 1 << 8;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;
/// How often a byte of a name is read at most, on average.
const NAME_USES: usize = 8;
/// In place of a COMDAT group's number.
const NO_COMDAT: u32 = u32::MAX;

/// The table of a file's first module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolTable<'a> {
    /// The module's source file, as its bitcode names it.
    pub source: &'a [u8],
    /// In the table's order.
    pub symbols: Vec<Symbol<'a>>,
}

/// A symbol that a module defines or refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// As the native object names it.
    pub name: &'a [u8],
    /// As the module names it; empty for a symbol of its own assembly.
    pub ir_name: &'a [u8],
    /// The number of the COMDAT group that it belongs to.
    pub comdat: Option<u32>,
    flags: u32,
}

impl Symbol<'_> {
    /// Whether the module has a definition that is to become a symbol of the native object.
    pub fn is_defined(&self) -> bool {
        self.flags & (UNDEFINED | FORMAT_SPECIFIC) == 0
    }

    /// Whether other files see it.
    pub fn is_global(&self) -> bool {
        self.flags & GLOBAL != 0
    }

    /// Whether another definition may take its place.
    pub fn is_weak(&self) -> bool {
        self.flags & WEAK != 0
    }

    /// Whether every thread has one.
    pub fn is_thread_local(&self) -> bool {
        self.flags & TLS != 0
    }

    /// Whether it stays without references (`llvm.used`, `llvm.compiler.used`), or is a name that compilers call.
    pub fn is_used(&self) -> bool {
        self.flags & USED != 0
    }
}

/// Reads raw bitcode, or bitcode in Darwin's wrapper. `None` where there is no table, or one of another version.
pub fn read(bytes: &[u8]) -> Result<Option<SymbolTable<'_>>, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut walk = Walk::default();
    let (mut table, mut names) = (None, None);
    while let Item::Block(block) = top.next(&mut walk)? {
        match block.id {
            bitcode::SYMTAB_BLOCK => table = blob(block, &mut walk)?,
            bitcode::STRTAB_BLOCK => names = blob(block, &mut walk)?,
            _ => {}
        }
    }
    Ok(table.zip(names).and_then(|(table, names)| decode(&LittleEndianWords(table), names)))
}

/// The blob of a block's one record.
pub(crate) fn blob<'a>(block: SubBlock<'a>, walk: &mut Walk) -> Result<Option<&'a [u8]>, BitcodeError> {
    let mut block = block.open(walk);
    loop {
        match block.next(walk)? {
            Item::Record(BLOB) => return block.blob(),
            Item::End => return Ok(None),
            _ => {}
        }
    }
}

fn decode<'a>(table: &LittleEndianWords<'_>, names: &'a [u8]) -> Option<SymbolTable<'a>> {
    if table.word(0)? != VERSION {
        return None;
    }
    let text = |place: usize| -> Option<&'a [u8]> {
        let start = table.word(place)? as usize;
        names.get(start..start.checked_add(table.word(place + 1)? as usize)?)
    };
    let modules = table.word(MODULES)? as usize / 4;
    // The first module's entry begins with the numbers of its first symbol and of the one behind its last.
    let (begin, end) = (table.word(modules)? as usize, table.word(modules + 1)? as usize);
    let (symbols, count) = (table.word(SYMBOLS)? as usize / 4, table.word(SYMBOLS + 1)? as usize);
    let symbol = |number: usize| {
        let place = symbols.checked_add(number.checked_mul(SYMBOL_WORDS)?)?;
        let comdat = table.word(place + 4)?;
        Some(Symbol {
            name: text(place)?,
            ir_name: text(place + 2)?,
            comdat: (comdat != NO_COMDAT).then_some(comdat),
            flags: table.word(place + 5)?,
        })
    };
    // A number beyond the table ends this at the first symbol that is not there.
    let symbols: Vec<_> = (begin..end.min(count)).map(symbol).collect::<Option<_>>()?;
    // A writer has each name once, and a symbol refers to two. More is work out of proportion to the file.
    let sum: usize = symbols.iter().map(|symbol| symbol.name.len() + symbol.ir_name.len()).sum();
    let is_whole = sum <= names.len().saturating_mul(NAME_USES);
    is_whole.then_some(SymbolTable { source: text(SOURCE)?, symbols })
}

/// Little-endian words.
struct LittleEndianWords<'a>(&'a [u8]);

impl LittleEndianWords<'_> {
    fn word(&self, place: usize) -> Option<u32> {
        let bytes = self.0.get(place.checked_mul(4)?..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }
}
