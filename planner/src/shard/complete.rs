//! Completes a shard with declarations of more symbols that the link defines.
//!
//! A dead definition is in the shard with its own flag only. The linker's own backends take the flag of the link's first
//! definition, so the dead one gets that flag.
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
use super::read::{
    ALIAS, COMBINED, COMBINED_PROFILE, DECLARATION, FUNCTION_REFERENCES, REMEDY, SUMMARY_VERSION, VALUE_GUID,
    VARIABLE,
};
use super::rename::{find_summaries, find_table, replace};
use crate::bitcode::writer::Writer;
use crate::bitcode::{self, BitcodeError, Item};
use crate::module::number;

/// Flag of a summary: the definition is within the linked output.
const DSO_LOCAL: u64 = 1 << 6;

/// Returns the shard of module `own` in which each symbol, by [`guid`](super::guid), is within the linked output. Symbols
/// without a summary get a declaration; dead definitions get the flag. Returns the shard unchanged if no symbol needs
/// either, if it does not name the module, or if its version is unknown. `symbols` gets a module of the shard and that
/// module's definitions in the shard, and returns the symbols.
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
    let (mut summarised, mut dead) = (Vec::new(), Vec::new());
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
            Item::Record(code @ (COMBINED | COMBINED_PROFILE | VARIABLE | ALIAS)) => {
                let start = block.record_start();
                // Value, module, flags, and more.
                let mut fields = block.numbers(bytes.len())?;
                let &[value, module, flags, ..] = fields.as_slice() else {
                    return Err(block.error("a summary without flags", "a value, its module and flags"));
                };
                summarised.push(value);
                if flags & DECLARATION == 0 {
                    definitions.entry(module).or_default().push(value);
                }
                if module == own && flags & (DSO_LOCAL | LIVE) == 0 {
                    fields[2] |= DSO_LOCAL;
                    dead.push((start..block.bit(), value, code, fields));
                }
            }
            Item::End => break block.record_start(),
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
    dead.retain(|(_, value, ..)| guids.get(value).is_some_and(|guid| missing.contains(guid)));
    for guid in known(&summarised) {
        missing.remove(&guid);
    }
    if missing.is_empty() && dead.is_empty() {
        return Ok(bytes.to_vec());
    }
    let body = summaries.body();
    let mut out = Writer::new(summaries.width());
    let mut copied = 8 * body.start as u64;
    for (place, _, code, fields) in dead {
        out.copy(bytes, copied..place.start)?;
        out.record(code, &fields);
        copied = place.end;
    }
    out.copy(bytes, copied..end)?;
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
