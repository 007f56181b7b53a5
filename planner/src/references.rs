//! The references of each definition of a module, by the summary that its compiler has written.
//!
//! Layouts: `writePerModuleGlobalValueSummary` in `BitcodeWriter.cpp`, LLVM 14 to 23. Values are numbered as the
//! module's records name them, and their names lie in the file's string table (`ModuleSummaryIndexBitcodeReader`).
//! Does not depend on links.

use std::collections::HashMap;

use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};
use crate::module::number;
use crate::shard::guid;
use crate::symbol_table::blob;

/// MODULE: variables, functions and aliases, which begin with a place in the string table; the source's name.
const VALUES: [u64; 3] = [7, 8, 14];
const SOURCE_FILENAME: u64 = 16;
/// MODULE: the GUID of each value, in halves, the upper one first; 0 for none. LLVM 23 and later.
const GUIDS: u64 = 20;
/// GLOBALVAL_SUMMARY: functions with the callees alone, and with a number for each call.
const FUNCTION: u64 = 1;
const FUNCTION_PROFILE: u64 = 2;
const FUNCTION_FREQUENCY: u64 = 19;
const VARIABLE: u64 = 3;
const VTABLE: u64 = 23;
const ALIAS: u64 = 7;
const VERSION: u64 = 10;
/// Where the number of a function's references is, and where these begin.
const REFERENCE_COUNT: usize = 4;
const REFERENCES: usize = 7;
/// The same of a virtual table; a plain variable's references begin where that number would be.
const VARIABLE_REFERENCES: usize = 3;
/// Separators between source and name of a local in the text of its GUID: since LLVM 18, and before.
const SEPARATORS: [&[u8]; 2] = [b";", b":"];

/// Flags of a summary: the linkage, and whether the compiler marked the definition as local to the link.
const LINKAGE: u64 = 15;
const DSO_LOCAL: u64 = 1 << 6;
/// Linkages that LLVM keeps alive although no definition prevails: available_externally, linkonce_odr, weak_odr.
const ODR: [u64; 3] = [1, 3, 5];

/// The definitions of a module.
#[derive(Debug, Default)]
pub struct References {
    /// Whether it is compiled by itself, with imports.
    pub is_thin: bool,
    /// The name of each value.
    names: Vec<Vec<u8>>,
    /// By GUID.
    definitions: HashMap<u64, Definition>,
}

/// A definition.
#[derive(Debug, Default, Clone)]
pub struct Definition {
    /// Its own value.
    value: u64,
    flags: u64,
    /// The values that it refers to.
    refers_to: Vec<u64>,
}

impl Definition {
    /// Whether the compiler marked it as local to the link.
    pub fn is_dso_local(&self) -> bool {
        self.flags & DSO_LOCAL != 0
    }

    /// Whether LLVM keeps it alive although no definition prevails.
    pub fn is_odr(&self) -> bool {
        ODR.contains(&(self.flags & LINKAGE))
    }
}

impl References {
    /// The names of all values, defined or referred to.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(Vec::as_slice)
    }

    /// The symbols that a definition refers to.
    pub fn of(&self, guid: u64) -> impl Iterator<Item = &[u8]> {
        let values = self.definitions.get(&guid).map_or(&[][..], |found| &found.refers_to);
        values.iter().filter_map(|value| self.name_of(*value))
    }

    /// The name of a definition.
    pub fn name(&self, guid: u64) -> Option<&[u8]> {
        self.name_of(self.definitions.get(&guid)?.value)
    }

    fn name_of(&self, value: u64) -> Option<&[u8]> {
        self.names.get(usize::try_from(value).ok()?).map(Vec::as_slice)
    }

    /// A definition.
    pub fn definition(&self, guid: u64) -> Option<&Definition> {
        self.definitions.get(&guid)
    }
}

/// Reads a module. Returns `None` without a summary of a known layout.
pub fn read(bytes: &[u8]) -> Result<Option<References>, BitcodeError> {
    let Some(module) = values(bytes, true)? else { return Ok(None) };
    let ModuleValues { source, names, guids, summaries: Some((is_thin, of)), .. } = module else {
        return Ok(None);
    };
    let mut definitions = HashMap::new();
    for (value, definition) in of {
        let Some(at) = usize::try_from(value).ok().filter(|at| *at < names.len()) else { continue };
        if let Some(guid) = guids.get(at).filter(|guid| **guid != 0) {
            definitions.insert(*guid, definition);
            continue;
        }
        let name = &names[at];
        // Whether it is a local its linkage would say; nothing else has such a GUID.
        for separator in SEPARATORS {
            definitions.insert(guid(&[&source, separator, name].concat()), definition.clone());
        }
        definitions.insert(guid(name), definition);
    }
    Ok(Some(References { is_thin, names, definitions }))
}

/// The GUIDs that a module records, by the names of its values. A value may have had another name when it got its own.
pub fn recorded_guids(bytes: &[u8]) -> Result<HashMap<Vec<u8>, u64>, BitcodeError> {
    let module = values(bytes, false)?.unwrap_or_default();
    Ok(module.names.into_iter().zip(module.guids).filter(|(_, guid)| *guid != 0).collect())
}

/// The values of a module, and their names.
fn values(bytes: &[u8], with_summaries: bool) -> Result<Option<ModuleValues>, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut walk = Walk::default();
    let (mut found, mut names) = (None, None);
    while let Item::Block(block) = top.next(&mut walk)? {
        match block.id {
            // Of a split unit the second is no ThinLTO module.
            bitcode::MODULE_BLOCK if found.is_none() => {
                found = Some(module(block, &mut walk, with_summaries)?)
            }
            bitcode::STRTAB_BLOCK => names = blob(block, &mut walk)?,
            _ => {}
        }
    }
    let (Some(mut module), Some(names)) = (found, names) else { return Ok(None) };
    let name = |&(start, length): &(u64, u64)| {
        let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        let name = names.get(start..start.checked_add(length)?)?;
        // It says that the name is not to be changed.
        Some(name.strip_prefix(&[1]).unwrap_or(name).to_vec())
    };
    module.names = module.places.iter().map(|place| name(place).unwrap_or_default()).collect();
    Ok(Some(module))
}

type Summaries = HashMap<u64, Definition>;

/// A module's content by value numbers.
#[derive(Default)]
struct ModuleValues {
    source: Vec<u8>,
    /// Where the name of each value is.
    places: Vec<(u64, u64)>,
    names: Vec<Vec<u8>>,
    guids: Vec<u64>,
    /// Its definitions, and whether they are a ThinLTO module's.
    summaries: Option<(bool, Summaries)>,
}

fn module(block: SubBlock<'_>, walk: &mut Walk, with_summaries: bool) -> Result<ModuleValues, BitcodeError> {
    // No record has more operands than its block has bits.
    let limit = block.body().len().saturating_mul(8);
    let mut block = block.open(walk);
    let mut module = ModuleValues::default();
    loop {
        match block.next(walk)? {
            Item::Record(code) if VALUES.contains(&code) => {
                let mut place = [0; 2];
                block.operands(&mut place)?;
                module.places.push(place.into());
            }
            Item::Record(SOURCE_FILENAME) => module.source = block.bytes()?,
            Item::Record(GUIDS) => {
                let halves = block.numbers(limit)?;
                module.guids = halves.chunks_exact(2).map(|half| half[0] << 32 | half[1]).collect();
            }
            Item::Block(inner)
                if with_summaries
                    && [bitcode::GLOBALVAL_SUMMARY_BLOCK, bitcode::FULL_LTO_GLOBALVAL_SUMMARY_BLOCK]
                        .contains(&inner.id) =>
            {
                let is_thin = inner.id == bitcode::GLOBALVAL_SUMMARY_BLOCK;
                module.summaries = summaries(inner, walk)?.map(|of| (is_thin, of));
            }
            Item::End => return Ok(module),
            _ => {}
        }
    }
}

fn summaries(block: SubBlock<'_>, walk: &mut Walk) -> Result<Option<Summaries>, BitcodeError> {
    // No record has more operands than its block has bits.
    let limit = block.body().len().saturating_mul(8);
    let mut block = block.open(walk);
    let (mut is_known, mut of, mut aliases) = (false, Summaries::new(), Vec::new());
    loop {
        match block.next(walk)? {
            Item::Record(VERSION) => is_known = bitcode::SUMMARY_VERSIONS.contains(&number(&mut block)?),
            Item::Record(ALIAS) => aliases.push(block.numbers(limit)?),
            Item::Record(code @ (FUNCTION | FUNCTION_PROFILE | FUNCTION_FREQUENCY | VARIABLE | VTABLE)) => {
                let record = block.numbers(limit)?;
                let Some(refers_to) = refers_to(code, &record) else {
                    return Err(block.error("a shorter record", "a summary"));
                };
                let (value, flags) = (record[0], record[1]);
                of.insert(value, Definition { value, flags, refers_to });
            }
            Item::End => break,
            _ => {}
        }
    }
    for alias in aliases {
        if let [value, flags, aliasee] = alias[..] {
            let of_aliasee = of.get(&aliasee).map_or(&[][..], |found| &found.refers_to);
            let refers_to = [&[aliasee], of_aliasee].concat();
            of.insert(value, Definition { value, flags, refers_to });
        }
    }
    Ok(is_known.then_some(of))
}

/// The values that a record of a function or a variable names.
fn refers_to(code: u64, record: &[u64]) -> Option<Vec<u64>> {
    let counted = |count: usize, first: usize| {
        let end = first.checked_add(usize::try_from(*record.get(count)?).ok()?)?;
        Some((record.get(first..end)?, record.get(end..)?))
    };
    record.get(1)?;
    Some(match code {
        VARIABLE => record.get(VARIABLE_REFERENCES..)?.to_vec(),
        VTABLE => counted(VARIABLE_REFERENCES, VARIABLE_REFERENCES + 1)?.0.to_vec(),
        _ => {
            let (references, calls) = counted(REFERENCE_COUNT, REFERENCES)?;
            let step = if code == FUNCTION { 1 } else { 2 };
            references.iter().chain(calls.iter().step_by(step)).copied().collect()
        }
    })
}
