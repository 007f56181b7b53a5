//! A shard without what depends on its modules' paths only: the table of paths, and the numbers and order of summaries.
//!
//! LLVM numbers values, and orders the summaries of one module, by hash tables that module paths are keys of. A backend
//! knows values by their GUIDs: it puts summaries into a map of them, and keeps an order only among those of one GUID.
//! So [`Canonical::summaries`] has GUIDs in place of numbers and is sorted by them, where every record is one whose layout is
//! known; else it is the bytes as they are. Layouts: `writeCombinedGlobalValueSummary` in `BitcodeWriter.cpp`, LLVM 14 to 22.

use std::collections::HashMap;

use super::rename::find_table;
use super::{MODULE_ENTRY, MODULE_HASH, REMEDY, SUMMARY_FLAGS, SUMMARY_VERSION};
use crate::bitcode::{self, BitcodeError, Item, ModuleHash, SubBlock, Walk};
use crate::module::{hash, number};

const FUNCTION: u64 = 5;
const VARIABLE: u64 = 6;
const ALIAS: u64 = 8;
/// The GUID that the latest summary's value had before it was promoted.
const ORIGINAL_NAME: u64 = 9;
/// Type tests and checked loads of the next function, all by GUID: 11 to 15.
const TYPES: std::ops::RangeInclusive<u64> = 11..=15;
const VALUE_GUID: u64 = 16;
const BLOCK_COUNT: u64 = 22;
/// Where the references of a function begin, and where their number is.
const FUNCTION_REFERENCES: usize = 9;
const REFERENCE_COUNT: usize = 6;

/// A shard in parts. Two shards with equal parts but for paths give equal objects from equal modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical<'a> {
    /// The bytes before, between and after the table and the summaries, without the lengths that the paths decide.
    pub rest: [&'a [u8]; 4],
    /// The table of paths, in its order, which is that in which a backend imports.
    pub table: Vec<Entry>,
    /// What the summaries say.
    pub summaries: Vec<u8>,
}

/// A line of a shard's table of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What summaries call the module.
    pub number: u64,
    /// The module id, as the linker saw it. Not always UTF-8.
    pub path: Vec<u8>,
    /// The words of the module's hash; zeros when it had none, `None` when the table does not say.
    pub hash: Option<ModuleHash>,
}

/// The canonical form of a shard. Fails on a table of paths with records that are not known, and without summaries; a shard that
/// [`read`](super::read) refuses need not be refused here.
pub fn canonical(bytes: &[u8]) -> Result<Canonical<'_>, BitcodeError> {
    canonical_form(bytes).map_err(|error| BitcodeError { remedy: REMEDY, ..error })
}

fn canonical_form(bytes: &[u8]) -> Result<Canonical<'_>, BitcodeError> {
    let (mut walk, index, table) = find_table(bytes)?;
    let entries = entries(table, walk.clone())?;
    let mut inside = index.open(&walk);
    let summaries = loop {
        match inside.next(&mut walk)? {
            Item::Block(block) if block.id == bitcode::GLOBALVAL_SUMMARY_BLOCK => break block,
            Item::End => return Err(inside.error("no summaries", "an index shard")),
            _ => {}
        }
    };
    let (index, table, place) = (index.body(), table.body(), summaries.body());
    let between = bytes.get(table.end..place.start - 4);
    let Some(between) = between else { return Err(inside.error("summaries before paths", "an index shard")) };
    // The length of a block is the word before its body.
    let rest =
        [&bytes[..index.start - 4], &bytes[index.start..table.start - 4], between, &bytes[place.end..]];
    let summaries = match summaries_of(summaries, walk, bytes.len())? {
        Some(canonical) => canonical,
        None => [b"bytes", &bytes[place]].concat(),
    };
    Ok(Canonical { rest, table: entries, summaries })
}

fn entries(table: SubBlock<'_>, mut walk: Walk) -> Result<Vec<Entry>, BitcodeError> {
    let mut block = table.open(&walk);
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        match block.next(&mut walk)? {
            Item::Record(MODULE_ENTRY) => {
                let number = number(&mut block)?;
                entries.push(Entry { number, path: block.bytes()?, hash: None });
            }
            Item::Record(MODULE_HASH) => match entries.last_mut() {
                Some(entry) if entry.hash.is_none() => entry.hash = Some(hash(&mut block)?),
                _ => return Err(block.error("a hash without a module", "a module's path")),
            },
            Item::End => return Ok(entries),
            Item::Record(_) | Item::Block(_) => {
                return Err(block.error("a record that is not known", "a module's path or hash"));
            }
        }
    }
}

/// One record.
type Record = (u64, Vec<u64>);

/// The summaries by GUID. `None` where a record is not one whose layout is known.
fn summaries_of(block: SubBlock<'_>, mut walk: Walk, limit: usize) -> Result<Option<Vec<u8>>, BitcodeError> {
    let mut block = block.open(&walk);
    let mut records: Vec<Record> = Vec::new();
    loop {
        match block.next(&mut walk)? {
            Item::Record(code) => records.push((code, block.numbers(limit)?)),
            Item::Block(_) => return Ok(None),
            Item::End => return Ok(canonical_records(records)),
        }
    }
}

fn canonical_records(records: Vec<Record>) -> Option<Vec<u8>> {
    let version = records.iter().find(|(code, _)| *code == SUMMARY_VERSION)?.1.first()?;
    if !bitcode::SUMMARY_VERSIONS.contains(version) {
        return None;
    }
    let values = values(&records)?;
    let mut guids: Vec<u64> = values.values().copied().collect();
    guids.sort_unstable();
    // Two numbers of one value would make two different shards one.
    if guids.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let mut head: Vec<Record> = vec![(VALUE_GUID, guids)];
    let mut groups: Vec<(u64, Vec<Record>)> = Vec::new();
    let mut types = Vec::new();
    for (code, mut operands) in records {
        match code {
            VALUE_GUID => {}
            SUMMARY_VERSION | SUMMARY_FLAGS | BLOCK_COUNT => head.push((code, operands)),
            FUNCTION | VARIABLE | ALIAS => {
                for place in places(code, &operands)? {
                    let operand = operands.get_mut(place)?;
                    *operand = *values.get(operand)?;
                }
                let guid = *operands.first()?;
                let mut group = std::mem::take(&mut types);
                group.push((code, operands));
                groups.push((guid, group));
            }
            ORIGINAL_NAME if types.is_empty() => groups.last_mut()?.1.push((code, operands)),
            code if TYPES.contains(&code) => types.push((code, operands)),
            _ => return None,
        }
    }
    if !types.is_empty() {
        return None;
    }
    // Stable: among summaries of one value the order counts.
    groups.sort_by_key(|(guid, _)| *guid);
    let all = head.into_iter().chain(groups.into_iter().flat_map(|(_, group)| group));
    let mut bytes = b"values".to_vec();
    for (code, operands) in all {
        for number in [code, operands.len() as u64].into_iter().chain(operands) {
            bytes.extend(number.to_le_bytes());
        }
    }
    Some(bytes)
}

/// The GUID of each value's number.
fn values(records: &[Record]) -> Option<HashMap<u64, u64>> {
    let mut values = HashMap::new();
    for (_, operands) in records.iter().filter(|(code, _)| *code == VALUE_GUID) {
        let (value, guid) = match *operands.as_slice() {
            [value, guid] => (value, guid),
            [value, high, low] if high >> 32 == 0 && low >> 32 == 0 => (value, high << 32 | low),
            _ => return None,
        };
        if values.insert(value, guid).is_some() {
            return None;
        }
    }
    Some(values)
}

/// Which operands of a summary are numbers of values.
fn places(code: u64, operands: &[u64]) -> Option<Vec<usize>> {
    let mut places = vec![0];
    match code {
        ALIAS if operands.len() == 4 => places.push(3),
        VARIABLE if operands.len() >= 4 => places.extend(4..operands.len()),
        FUNCTION if operands.len() >= FUNCTION_REFERENCES => {
            let references = usize::try_from(operands[REFERENCE_COUNT]).ok()?;
            let calls =
                FUNCTION_REFERENCES.checked_add(references).filter(|&calls| calls <= operands.len())?;
            places.extend(FUNCTION_REFERENCES..calls);
            // A callee, then what is known of the call.
            if !(operands.len() - calls).is_multiple_of(2) {
                return None;
            }
            places.extend((calls..operands.len()).step_by(2));
        }
        _ => return None,
    }
    Some(places)
}
