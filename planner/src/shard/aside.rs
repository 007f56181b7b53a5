//! Which definitions of its own module a shard says do not count, since another file's do.
//!
//! The thin link makes them available externally (`thinLTOResolvePrevailingInIndex`, llvm/lib/LTO/LTO.cpp). A summary begins with
//! its value, its module and its flags, of which the linkage is the last four bits (`getEncodedGVSummaryFlags`). Layouts:
//! `writeCombinedGlobalValueSummary` in `BitcodeWriter.cpp`, LLVM 14 to 22.

use std::collections::{HashMap, HashSet};

use md5::{Digest, Md5};

use super::rename::find_table;
use super::{ALIAS, COMBINED, COMBINED_PROFILE, MODULE_ENTRY, SUMMARY_VERSION, VALUE_GUID, VARIABLE};
use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};
use crate::module::number;

const LINKAGE: u64 = 15;
/// As LLVM itself counts linkages, which is otherwise than they are written in modules.
const AVAILABLE_EXTERNALLY: u64 = 1;

/// By what a shard knows a symbol that other files see (`GlobalValue::getGUID`).
pub fn guid(name: &[u8]) -> u64 {
    let digest = Md5::digest(name);
    digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// The symbols of module `own` whose definitions there do not count, by [`guid`]; none in a shard of a version that is not known.
pub fn stand_aside(bytes: &[u8], own: &str) -> Result<HashSet<u64>, BitcodeError> {
    let (mut walk, index, table) = find_table(bytes)?;
    let Some(own) = number_of(table, &mut walk, own)? else { return Ok(HashSet::new()) };
    let mut inside = index.open(&walk);
    loop {
        match inside.next(&mut walk)? {
            Item::Block(block) if block.id == bitcode::GLOBALVAL_SUMMARY_BLOCK => {
                return aside_in(block, &mut walk, own);
            }
            Item::End => return Ok(HashSet::new()),
            _ => {}
        }
    }
}

/// The number of a module in the table of paths.
fn number_of(table: SubBlock<'_>, walk: &mut Walk, own: &str) -> Result<Option<u64>, BitcodeError> {
    let mut block = table.open(walk);
    let mut found = None;
    loop {
        match block.next(walk)? {
            Item::Record(MODULE_ENTRY) => {
                let number = number(&mut block)?;
                if block.bytes()? == own.as_bytes() {
                    found = Some(number);
                }
            }
            Item::End => return Ok(found),
            _ => {}
        }
    }
}

fn aside_in(block: SubBlock<'_>, walk: &mut Walk, own: u64) -> Result<HashSet<u64>, BitcodeError> {
    let mut block = block.open(walk);
    let (mut guids, mut aside, mut is_known) = (HashMap::new(), Vec::new(), false);
    loop {
        let mut fields = [0; 3];
        match block.next(walk)? {
            Item::Record(SUMMARY_VERSION) => {
                is_known = bitcode::SUMMARY_VERSIONS.contains(&number(&mut block)?)
            }
            Item::Record(VALUE_GUID) => {
                let guid = match block.operands(&mut fields)? {
                    2 => fields[1],
                    _ => fields[1] << 32 | fields[2],
                };
                guids.insert(fields[0], guid);
            }
            Item::Record(COMBINED | COMBINED_PROFILE | VARIABLE | ALIAS) if is_known => {
                block.operands(&mut fields)?;
                let [value, module, flags] = fields;
                if module == own && flags & LINKAGE == AVAILABLE_EXTERNALLY {
                    aside.push(value);
                }
            }
            Item::End => break,
            _ => {}
        }
    }
    Ok(aside.into_iter().filter_map(|value| guids.get(&value).copied()).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn guids_are_those_of_llvm() {
        // As `llvm-bcanalyzer` shows that of a module that defines `main`.
        assert_eq!(super::guid(b"main"), 15_822_663_052_811_949_562);
    }
}
