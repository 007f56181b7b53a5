//! The names that a bitcode object defines for other files: symbols and COMDAT groups.
//!
//! Reads module-level records and the string table, and passes over all else. Record numbers and operands are those of
//! `LLVMBitCodes.h` and `BitcodeWriter.cpp`. Names in assembly of the module's own are text for an assembler, which is not
//! read here: it is only said that there is such text.

use std::collections::HashSet;

use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};

const MODULE_VERSION: u64 = 1;
const MODULE_ASSEMBLY: u64 = 4;
const GLOBAL_VARIABLE: u64 = 7;
const FUNCTION: u64 = 8;
const COMDAT: u64 = 12;
const ALIAS: u64 = 14;
const INDIRECT_FUNCTION: u64 = 15;
const STRTAB_BLOB: u64 = 1;

/// Linkages of definitions that no other file sees: appending, internal, extern_weak, private, available_externally,
/// and two older codes of private.
const UNSEEN: [u64; 7] = [2, 3, 7, 9, 12, 13, 14];

/// What an object defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleNames {
    /// Symbols and COMDAT groups.
    pub names: HashSet<Vec<u8>>,
    /// Whether it may define others: in assembly, or in a format that has no string table.
    pub others: bool,
}

/// Reads raw bitcode, or bitcode in Darwin's wrapper.
pub fn read(bytes: &[u8]) -> Result<ModuleNames, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut walk = Walk::default();
    let (mut places, mut table, mut others) = (Vec::new(), None, false);
    while let Item::Block(block) = top.next(&mut walk)? {
        match block.id {
            bitcode::MODULE_BLOCK => others |= module(block, &mut walk, &mut places)?,
            bitcode::STRTAB_BLOCK => table = string_table(block, &mut walk)?.or(table),
            _ => {}
        }
    }
    let table = table.unwrap_or_default();
    let name = |(start, length): (u64, u64)| {
        let start = usize::try_from(start).ok()?;
        let name = table.get(start..start.checked_add(usize::try_from(length).ok()?)?)?;
        // LLVM marks names that are not to be mangled.
        Some(name.strip_prefix(b"\x01").unwrap_or(name).to_vec())
    };
    let count = places.len();
    let names: Vec<_> = places.into_iter().filter_map(name).collect();
    Ok(ModuleNames { others: others || names.len() < count, names: names.into_iter().collect() })
}

/// Gathers where the names of one module are in the string table; returns whether it may define others.
fn module(block: SubBlock<'_>, walk: &mut Walk, places: &mut Vec<(u64, u64)>) -> Result<bool, BitcodeError> {
    let mut block = block.open(walk);
    let (mut version, mut others) = (0, false);
    loop {
        match block.next(walk)? {
            Item::Record(MODULE_VERSION) => version = crate::module::number(&mut block)?,
            Item::Record(MODULE_ASSEMBLY) => others = true,
            Item::Record(code @ (GLOBAL_VARIABLE | FUNCTION | ALIAS | INDIRECT_FUNCTION | COMDAT)) => {
                // Offset and length of the name, three that depend on the record, linkage.
                let mut fields = [0; 6];
                let count = block.operands(&mut fields)?;
                let defined = match code {
                    COMDAT => true,
                    GLOBAL_VARIABLE => fields[4] != 0,
                    FUNCTION => fields[4] == 0,
                    _ => true,
                };
                let seen = code == COMDAT || (count == fields.len() && !UNSEEN.contains(&fields[5]));
                if defined && seen {
                    places.push((fields[0], fields[1]));
                }
            }
            Item::End => return Ok(others || version < 2),
            _ => {}
        }
    }
}

fn string_table<'a>(block: SubBlock<'a>, walk: &mut Walk) -> Result<Option<&'a [u8]>, BitcodeError> {
    let mut block = block.open(walk);
    loop {
        match block.next(walk)? {
            Item::Record(STRTAB_BLOB) => return block.blob(),
            Item::End => return Ok(None),
            _ => {}
        }
    }
}
