//! A shard without the parts that depend only on its modules' paths: the paths, and the numbers and order of
//! summaries.
//!
//! LLVM numbers values, and orders the summaries of one module, by hash tables with module paths as keys. A backend
//! knows values by their GUIDs: it puts summaries into a map of them, and keeps an order only among those of one GUID.
//! So the canonical form numbers values, and sorts summaries, by GUID if every record has a known layout. Otherwise
//! the summaries stay as they are. Layouts: `writeCombinedGlobalValueSummary` in `BitcodeWriter.cpp`, LLVM 14 to 22.
//! LLVM imports from modules in the order of their paths, which decides the order of code in the object. So a module
//! is named by its rank among them.

use std::collections::HashMap;

use super::read::{
    ALIAS, FLAGS_SPLIT, FUNCTION_REFERENCES, MODULE_ENTRY, REFERENCE_COUNT, REMEDY, SUMMARY_FLAGS,
    SUMMARY_VERSION, VALUE_GUID, VARIABLE,
};
use super::rename::{find_summaries, find_table, new_table, replace, splice};
use crate::bitcode::writer::Writer;
use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};
use crate::digests::Digest;
use crate::module::number;

const FUNCTION: u64 = 5;
/// The GUID that the latest summary's value had before it was promoted.
const ORIGINAL_NAME: u64 = 9;
/// Type tests and checked loads of the next function, all by GUID: 11 to 15.
const TYPES: std::ops::RangeInclusive<u64> = 11..=15;
/// Names of functions that control-flow integrity checks, by their places in the string table.
const CFI_FUNCTIONS: std::ops::RangeInclusive<u64> = 17..=18;
/// The result of whole-program devirtualisation for a type, by the place of the type's name in the string table.
const TYPE_ID: u64 = 21;
const BLOCK_COUNT: u64 = 22;

/// A shard in canonical form. Two shards of one canonical form give equal objects from equal modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    /// The shard: a file that a compiler reads as it reads the original.
    pub bytes: Vec<u8>,
    /// The modules that it names, in the order of its table.
    pub modules: Vec<Renamed>,
}

/// A module of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The module id, as the linker saw it. Not always UTF-8.
    pub path: Vec<u8>,
    /// The module's name in the canonical form.
    pub name: String,
}

/// Returns the canonical form of a shard. Fails on a table of paths with unknown records, and without summaries. A
/// shard that [`read`](super::read) refuses need not be refused here.
pub fn canonical(bytes: &[u8]) -> Result<Canonical, BitcodeError> {
    canonical_form(bytes).map_err(|error| BitcodeError { remedy: REMEDY, ..error })
}

/// The digest of a shard's canonical form: equal for equal decisions about equal modules, wherever these lie.
pub fn digest(bytes: &[u8]) -> Result<String, BitcodeError> {
    canonical(bytes).map(|canonical| Digest::of(&canonical.bytes).hex())
}

/// The digest of a shard without the paths of its modules. It takes a small part of [`digest`]'s time, and may differ for
/// shards of one canonical form.
pub fn digest_without_paths(bytes: &[u8]) -> Result<String, BitcodeError> {
    splice(bytes, |_| Some(Vec::new()), |hash| hash).map(|rest| Digest::of(&rest).hex())
}

/// Returns a canonical form without the hashes of its modules: the thin link's decisions, regardless of the modules'
/// content.
pub fn decisions(canonical: &[u8]) -> Result<Vec<u8>, BitcodeError> {
    splice(canonical, |_| None, |_| [0; 5])
}

/// Whether two shards say the same of the same modules: of one canonical form, or byte for byte. lld may number values
/// otherwise because of a module that neither shard names.
pub fn is_equivalent(one: &[u8], other: &[u8]) -> bool {
    one == other
        || matches!((canonical_form(one), canonical_form(other)), (Ok(one), Ok(other)) if one == other)
}

fn canonical_form(bytes: &[u8]) -> Result<Canonical, BitcodeError> {
    let (mut walk, index, table) = find_table(bytes)?;
    let paths = paths(table, walk.clone())?;
    let mut ranks: Vec<&Vec<u8>> = paths.iter().collect();
    ranks.sort_unstable();
    // As many digits as the order of any number of modules needs.
    let name_of = |path: &[u8]| format!("{:07}.bc", ranks.partition_point(|&other| other.as_slice() < path));
    let new_table = new_table(table, &walk, |path| Some(name_of(path).into_bytes()), |hash| hash)?;
    let Some(summaries) = find_summaries(index, &mut walk)? else {
        return Err(index.error("no summaries", "an index shard"));
    };
    let (index, table, place) = (index.body(), table.body(), summaries.body());
    if place.start < table.end {
        return Err(summaries.error("summaries before paths", "an index shard"));
    }
    let sorted = summaries_of(summaries, walk, bytes.len())?;
    let bodies = [(table, new_table.as_slice()), (place.clone(), sorted.as_deref().unwrap_or(&bytes[place]))];
    let bytes = replace(bytes, index, &bodies)?;
    let modules = paths.iter().map(|path| Renamed { path: path.clone(), name: name_of(path) }).collect();
    Ok(Canonical { bytes, modules })
}

fn paths(table: SubBlock<'_>, mut walk: Walk) -> Result<Vec<Vec<u8>>, BitcodeError> {
    let mut block = table.open(&walk);
    let mut paths = Vec::new();
    loop {
        match block.next(&mut walk)? {
            Item::Record(MODULE_ENTRY) => {
                number(&mut block)?;
                paths.push(block.bytes()?);
            }
            Item::End => return Ok(paths),
            _ => {}
        }
    }
}

/// One record.
type Record = (u64, Vec<u64>);

/// Returns the body of the block of summaries, by GUID; `None` if a record has no known layout.
fn summaries_of(block: SubBlock<'_>, mut walk: Walk, limit: usize) -> Result<Option<Vec<u8>>, BitcodeError> {
    let width = block.width();
    let mut block = block.open(&walk);
    let mut records: Vec<Record> = Vec::new();
    loop {
        match block.next(&mut walk)? {
            Item::Record(code) => records.push((code, block.numbers(limit)?)),
            Item::Block(_) => return Ok(None),
            Item::End => return Ok(canonical_records(records).map(|records| body(width, &records))),
        }
    }
}

fn body(width: u32, records: &[Record]) -> Vec<u8> {
    let mut out = Writer::new(width);
    records.iter().for_each(|(code, operands)| out.record(*code, operands));
    out.end()
}

fn canonical_records(records: Vec<Record>) -> Option<Vec<Record>> {
    let (SUMMARY_VERSION, version) = records.first()? else { return None };
    if !bitcode::SUMMARY_VERSIONS.contains(version.first()?) {
        return None;
    }
    let guids = values(&records)?;
    let mut sorted: Vec<u64> = guids.values().copied().collect();
    sorted.sort_unstable();
    // Two numbers of one value would make two different shards one.
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let rank = |guid: &u64| Some(sorted.binary_search(guid).ok()? as u64);
    let ranks: HashMap<u64, u64> =
        guids.iter().map(|(number, guid)| Some((*number, rank(guid)?))).collect::<Option<_>>()?;
    let mut head: Vec<Record> = Vec::new();
    let mut values: Vec<Vec<u64>> = Vec::new();
    let mut groups: Vec<(u64, Vec<Record>)> = Vec::new();
    let mut types = Vec::new();
    let mut tail: Vec<Record> = Vec::new();
    for (code, mut operands) in records {
        match code {
            VALUE_GUID => {
                let number = operands.first_mut()?;
                *number = *ranks.get(number)?;
                values.push(operands);
            }
            // Any module of the link changes them. A thin link that splits some modules refuses the type tests for
            // which a backend would look at them; lld's own keys do without.
            SUMMARY_FLAGS => {
                *operands.first_mut()? &= !FLAGS_SPLIT;
                head.push((code, operands));
            }
            SUMMARY_VERSION | BLOCK_COUNT => head.push((code, operands)),
            FUNCTION | VARIABLE | ALIAS => {
                for place in places(code, &operands)? {
                    let operand = operands.get_mut(place)?;
                    *operand = *ranks.get(operand)?;
                }
                let value = *operands.first()?;
                let mut group = std::mem::take(&mut types);
                group.push((code, operands));
                groups.push((value, group));
            }
            ORIGINAL_NAME if types.is_empty() => groups.last_mut()?.1.push((code, operands)),
            code if TYPES.contains(&code) => types.push((code, operands)),
            code if code == TYPE_ID || CFI_FUNCTIONS.contains(&code) => tail.push((code, operands)),
            _ => return None,
        }
    }
    if !types.is_empty() {
        return None;
    }
    values.sort_unstable();
    // Stable: among summaries of one value the order counts.
    groups.sort_by_key(|(value, _)| *value);
    let values = values.into_iter().map(|operands| (VALUE_GUID, operands));
    let groups = groups.into_iter().flat_map(|(_, group)| group);
    Some(head.into_iter().chain(values).chain(groups).chain(tail).collect())
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
            // A callee, then the properties of the call.
            if !(operands.len() - calls).is_multiple_of(2) {
                return None;
            }
            places.extend((calls..operands.len()).step_by(2));
        }
        _ => return None,
    }
    Some(places)
}
