//! The summaries that a shard has of its own module: each symbol's linkage after the thin link, and its references.
//!
//! The thin link writes its decisions there: a definition that does not prevail is available externally, one that
//! nobody else needs is internal (`thinLTOResolvePrevailingInIndex`, `thinLTOInternalizeAndPromoteInIndex`,
//! llvm/lib/LTO/LTO.cpp). Layouts: `writeCombinedGlobalValueSummary` in `BitcodeWriter.cpp`, LLVM 14 to 22. Does not
//! depend on the module itself.

use std::collections::HashMap;

use md5::{Digest, Md5};

use super::read::{
    ALIAS, COMBINED, COMBINED_PROFILE, DECLARATION, FUNCTION_REFERENCES, MODULE_ENTRY, REFERENCE_COUNT,
    SUMMARY_FLAGS, SUMMARY_VERSION, VALUE_GUID, VARIABLE,
};
use super::rename::{find_summaries, find_table};
use crate::bitcode::{self, BitcodeError, Block, Item, SubBlock, Walk};
use crate::module::number;

/// Of a summary's flags: the linkage, and whether something that the link needs refers to the symbol.
const LINKAGE: u64 = 15;
pub(super) const LIVE: u64 = 1 << 5;
/// Index flag: liveness was computed.
const DEAD_STRIPPED: u64 = 1;

/// Linkages as LLVM itself counts them, which is otherwise than they are written in modules.
const EXTERNAL: u64 = 0;
const AVAILABLE_EXTERNALLY: u64 = 1;
const WEAK_ANY: u64 = 4;
const WEAK_ODR: u64 = 5;
const INTERNAL: u64 = 7;
const PRIVATE: u64 = 8;
const COMMON: u64 = 10;

/// Of a variable's own flags: the link only reads it, or only writes it.
const READ_ONLY: u64 = 1;
const WRITE_ONLY: u64 = 2;

/// Where the size of a function is.
const INSTRUCTIONS: usize = 3;
/// Where the references begin in the records of variables and aliases.
const VARIABLE_FLAGS: usize = 3;
const VARIABLE_REFERENCES: usize = 4;
const ALIAS_REFERENCES: usize = 3;

/// A shard's entry for one symbol that its module defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSymbol {
    linkage: u64,
    /// Whether the link needs it.
    pub is_live: bool,
    /// Whether it is a function.
    pub is_function: bool,
    /// Whether it is another name of the symbol that it refers to.
    pub is_alias: bool,
    /// IR instructions of a function.
    pub instructions: u64,
    /// Whether it is a variable that the link only reads, or only writes. Each module that refers to it gets a copy of
    /// its own, regardless of its linkage (`internalizeGVsAfterImport`, llvm/lib/Transforms/IPO/FunctionImport.cpp).
    pub is_copied: bool,
    /// The symbols that its body or initialiser refers to, by [`guid`].
    pub refers_to: Vec<u64>,
}

impl OwnSymbol {
    /// Whether the definition does not count, since another file's does.
    pub fn is_elsewhere(&self) -> bool {
        self.linkage == AVAILABLE_EXTERNALLY
    }

    /// Whether no other file sees it.
    pub fn is_local(&self) -> bool {
        matches!(self.linkage, INTERNAL | PRIVATE)
    }

    /// Returns whether other modules refer to a symbol that was local, so that they see it under another name. Its
    /// linkage is external or available externally, as no linker has said that it prevails.
    pub fn is_promoted(&self) -> bool {
        self.is_live && !self.is_copied && !self.is_local()
    }

    /// Of a symbol that was seen by other files: whether it still is, so that no optimisation may drop it.
    pub fn is_kept(&self) -> bool {
        self.is_live && !self.is_copied && matches!(self.linkage, EXTERNAL | WEAK_ANY | WEAK_ODR | COMMON)
    }
}

/// The symbols of a shard's own module by [`guid`].
pub type OwnSymbols = HashMap<u64, OwnSymbol>;

/// Returns a shard's key for a symbol that other files see (`GlobalValue::getGUID`).
pub fn guid(name: &[u8]) -> u64 {
    let digest = Md5::digest(name);
    digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// The symbols of module `own`; of another module those that are imported from it. `None` if the shard is of a version
/// that is not known, or does not name the module.
pub fn own_symbols(bytes: &[u8], own: &str) -> Result<Option<OwnSymbols>, BitcodeError> {
    let (mut walk, index, table) = find_table(bytes)?;
    let modules = numbers(table, &walk)?;
    let own = modules.iter().rfind(|(_, path)| path == own.as_bytes());
    let Some(own) = own.map(|(number, _)| *number) else { return Ok(None) };
    match find_summaries(index, &mut walk)? {
        Some(block) => summaries(block, &mut walk, own),
        None => Ok(None),
    }
}

/// The modules of the table of paths, by their numbers.
pub(super) fn numbers(table: SubBlock<'_>, walk: &Walk) -> Result<Vec<(u64, Vec<u8>)>, BitcodeError> {
    let mut block = table.open(walk);
    let mut walk = walk.clone();
    let mut found = Vec::new();
    loop {
        match block.next(&mut walk)? {
            Item::Record(MODULE_ENTRY) => found.push((number(&mut block)?, block.bytes()?)),
            Item::End => return Ok(found),
            _ => {}
        }
    }
}

fn summaries(block: SubBlock<'_>, walk: &mut Walk, own: u64) -> Result<Option<OwnSymbols>, BitcodeError> {
    // No record has more operands than its block has bits.
    let limit = block.body().len().saturating_mul(8);
    let mut block = block.open(walk);
    let (mut guids, mut symbols) = (HashMap::new(), Vec::new());
    let (mut is_known, mut is_stripped) = (false, false);
    loop {
        match block.next(walk)? {
            Item::Record(SUMMARY_VERSION) => {
                is_known = bitcode::SUMMARY_VERSIONS.contains(&number(&mut block)?)
            }
            Item::Record(SUMMARY_FLAGS) => is_stripped = number(&mut block)? & DEAD_STRIPPED != 0,
            Item::Record(VALUE_GUID) => {
                let mut fields = [0; 3];
                let guid = match block.operands(&mut fields)? {
                    2 => fields[1],
                    _ => fields[1] << 32 | fields[2],
                };
                guids.insert(fields[0], guid);
            }
            Item::Record(code @ (COMBINED | COMBINED_PROFILE | VARIABLE | ALIAS)) if is_known => {
                symbols.extend(symbol(&mut block, code, own, limit)?);
            }
            Item::End => break,
            _ => {}
        }
    }
    let known = |symbol: SymbolSummary| {
        let SymbolSummary { value, flags, is_function, is_alias, instructions, is_copied, refers_to } =
            symbol;
        let refers_to = refers_to.iter().filter_map(|value| guids.get(value).copied()).collect();
        let is_live = !is_stripped || flags & LIVE != 0;
        let linkage = flags & LINKAGE;
        let own = OwnSymbol { linkage, is_live, is_function, is_alias, instructions, is_copied, refers_to };
        Some((*guids.get(&value)?, own))
    };
    Ok(is_known.then(|| symbols.into_iter().filter_map(known).collect()))
}

/// One summary, by numbers of values.
struct SymbolSummary {
    value: u64,
    flags: u64,
    is_function: bool,
    is_alias: bool,
    instructions: u64,
    is_copied: bool,
    refers_to: Vec<u64>,
}

/// The latest record, if it is a definition of module `own`.
fn symbol(
    block: &mut Block<'_>,
    code: u64,
    own: u64,
    limit: usize,
) -> Result<Option<SymbolSummary>, BitcodeError> {
    let mut head = [0; 3];
    block.operands(&mut head)?;
    let [value, module, flags] = head;
    if module != own || flags & DECLARATION != 0 {
        return Ok(None);
    }
    let rest = block.numbers(limit)?;
    let from = |place: usize| rest.get(place - head.len()..).unwrap_or_default();
    let is_function = matches!(code, COMBINED | COMBINED_PROFILE);
    let refers_to = match code {
        COMBINED_PROFILE => {
            let count = from(REFERENCE_COUNT).first().and_then(|&count| usize::try_from(count).ok());
            let all = from(FUNCTION_REFERENCES);
            let (references, calls) = all.split_at(count.unwrap_or(0).min(all.len()));
            // With each call stands how hot it is.
            references.iter().chain(calls.iter().step_by(2)).copied().collect()
        }
        COMBINED => from(FUNCTION_REFERENCES).to_vec(),
        VARIABLE => from(VARIABLE_REFERENCES).to_vec(),
        _ => from(ALIAS_REFERENCES).to_vec(),
    };
    let of_variable = from(VARIABLE_FLAGS).first().copied().unwrap_or_default();
    let is_copied = code == VARIABLE && of_variable & (READ_ONLY | WRITE_ONLY) != 0;
    let instructions = from(INSTRUCTIONS).first().copied().filter(|_| is_function).unwrap_or_default();
    let is_alias = code == ALIAS;
    Ok(Some(SymbolSummary { value, flags, is_function, is_alias, instructions, is_copied, refers_to }))
}
