//! Completes a shard with declarations of more symbols that the link defines.
//!
//! A shard has summaries of its module's definitions and imports, but not of mere references. The linker's own
//! backends have the whole index, so they know the symbols that the linked output defines: references to these need no
//! indirection. A declaration marked as the module's own gives a backend just this fact (`processGlobalForThinLTO`,
//! `FunctionImportUtils.cpp`). The backend imports nothing for it and reads no file (`initImportList`, `LTO.cpp`).
//! Layouts: `writeCombinedGlobalValueSummary` in `BitcodeWriter.cpp`.
//!
//! `-mllvm -import-declaration` is no substitute: lld then declares called symbols only, not mere references, and makes
//! their modules inputs of the backend. Completion makes shards 16 % larger (libgit2).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::own::{LIVE, numbers};
use super::rename::{find_summaries, find_table, replace};
use super::{
    ALIAS, COMBINED, COMBINED_PROFILE, DECLARATION, FUNCTION_REFERENCES, REMEDY, SUMMARY_VERSION, VALUE_GUID,
    VARIABLE,
};
use crate::bitcode::writer::Writer;
use crate::bitcode::{self, BitcodeError, Item};
use crate::module::number;

/// Flag of a summary: the definition is within the linked output.
const DSO_LOCAL: u64 = 1 << 6;

/// Returns the shard of module `own` with a declaration for each symbol, by [`guid`](super::guid), that lacks a
/// summary. Returns it unchanged if no symbol lacks one, if it does not name the module, or if its version is unknown.
/// `symbols` gets a module of the shard and that module's definitions in the shard, and returns the symbols to
/// declare.
pub fn complete(
    bytes: &[u8],
    own: &[u8],
    symbols: impl FnMut(&[u8], &[u64]) -> Vec<u64>,
) -> Result<Vec<u8>, BitcodeError> {
    completed(bytes, own, symbols).map_err(|error| BitcodeError { remedy: REMEDY, ..error })
}

fn completed(
    bytes: &[u8],
    own: &[u8],
    mut symbols: impl FnMut(&[u8], &[u64]) -> Vec<u64>,
) -> Result<Vec<u8>, BitcodeError> {
    let (mut walk, index, table) = find_table(bytes)?;
    let modules = numbers(table, &walk)?;
    let Some(own) = modules.iter().find(|(_, path)| *path == own).map(|(number, _)| *number) else {
        return Ok(bytes.to_vec());
    };
    let Some(summaries) = find_summaries(index, &mut walk)? else { return Ok(bytes.to_vec()) };
    let mut block = summaries.open(&walk);
    let mut version = 0;
    let mut guids = HashMap::new();
    let mut definitions: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut summarised = Vec::new();
    let end = loop {
        match block.next(&mut walk)? {
            Item::Record(SUMMARY_VERSION) => version = number(&mut block)?,
            Item::Record(VALUE_GUID) => {
                let value = number(&mut block)?;
                let guid = match *block.numbers(2)?.as_slice() {
                    [guid] => guid,
                    [high, low] => high << 32 | low & u64::from(u32::MAX),
                    _ => return Err(block.error("a value without a GUID", "one")),
                };
                guids.insert(value, guid);
            }
            Item::Record(COMBINED | COMBINED_PROFILE | VARIABLE | ALIAS) => {
                // Value, module, flags, and more.
                let mut fields = [0; 3];
                block.operands(&mut fields)?;
                let [value, module, flags] = fields;
                summarised.push(value);
                if flags & DECLARATION == 0 {
                    definitions.entry(module).or_default().push(value);
                }
            }
            Item::End => break block.bit() - u64::from(summaries.width()),
            _ => {}
        }
    };
    if !bitcode::SUMMARY_VERSIONS.contains(&version) {
        return Ok(bytes.to_vec());
    }
    let known =
        |values: &[u64]| values.iter().filter_map(|value| guids.get(value).copied()).collect::<Vec<_>>();
    let mut missing = BTreeSet::new();
    for (number, path) in &modules {
        let definitions = definitions.get(number).map_or(&[][..], Vec::as_slice);
        missing.extend(symbols(path, &known(definitions)));
    }
    for guid in known(&summarised) {
        missing.remove(&guid);
    }
    if missing.is_empty() {
        return Ok(bytes.to_vec());
    }
    let body = summaries.body();
    let mut out = Writer::after(&bytes[body.clone()], end - 8 * body.start as u64, summaries.width());
    let mut next = guids.keys().max().map_or(0, |last| last.saturating_add(1));
    // A mere reference has a number too. A second one for it would hide that two shards say the same.
    let numbers: HashMap<u64, u64> = guids.iter().map(|(value, guid)| (*guid, *value)).collect();
    for guid in missing {
        let value = numbers.get(&guid).copied().unwrap_or(next);
        if value == next {
            out.record(VALUE_GUID, &guid_operands(value, guid, version));
            next = next.saturating_add(1);
        }
        let mut summary = [0; FUNCTION_REFERENCES];
        summary[..3].copy_from_slice(&[value, own, DECLARATION | DSO_LOCAL | LIVE]);
        out.record(COMBINED_PROFILE, &summary);
    }
    replace(bytes, index.body(), &[(body, &out.end())])
}

/// A value's number and its GUID: in halves since version 11.
fn guid_operands(value: u64, guid: u64, version: u64) -> Vec<u64> {
    match version {
        ..11 => vec![value, guid],
        _ => vec![value, guid >> 32, guid & u64::from(u32::MAX)],
    }
}
