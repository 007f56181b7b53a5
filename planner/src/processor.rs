//! The processors that a module's functions name as their targets.
//!
//! A compiler applies the processor of its command to a function that names none, and adds that processor's features
//! to a function that names a processor but no features, as rustc's do. ld.lld's own LTO does only the former. Reads
//! attribute groups and function records (`LLVMBitCodes.h`). Does not depend on files and compilers.

use std::collections::{BTreeSet, HashMap};

use crate::bitcode::{self, BitcodeError, Block, Item, MODULE_BLOCK, SubBlock, Walk};

/// Lists of attribute groups, one for each combination that a function or call has.
const PARAMATTR_BLOCK: u64 = 9;
const PARAMATTR_GROUP_BLOCK: u64 = 10;
const PARAMATTR_ENTRY: u64 = 2;
const PARAMATTR_GROUP_ENTRY: u64 = 3;
const MODULE_VERSION: u64 = 1;
const MODULE_FUNCTION: u64 = 8;
/// The parameter index by which a group belongs to the function itself.
const OF_THE_FUNCTION: u64 = 0xFFFF_FFFF;

/// The processors in the functions that a module defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processors {
    /// Some function names no processor.
    pub unnamed: bool,
    /// The processors of functions that list no features.
    pub without_features: BTreeSet<String>,
}

/// The target of one attribute group.
#[derive(Debug, Clone, Default)]
struct Group {
    processor: Option<String>,
    features: bool,
}

#[derive(Default)]
struct ProcessorReader {
    walk: Walk,
    version: u64,
    groups: HashMap<u64, Group>,
    lists: Vec<Vec<u64>>,
    found: Processors,
}

/// Reads raw or wrapped bitcode of LLVM 14 or later.
pub fn read(bytes: &[u8]) -> Result<Processors, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut reader = ProcessorReader::default();
    while let Item::Block(block) = top.next(&mut reader.walk)? {
        if block.id == MODULE_BLOCK {
            // A split unit holds two modules, each with groups and lists of its own.
            reader.groups.clear();
            reader.lists.clear();
            reader.module(block)?;
        }
    }
    Ok(reader.found)
}

impl ProcessorReader {
    fn module(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        loop {
            match block.next(&mut self.walk)? {
                Item::Block(inner) if inner.id == PARAMATTR_GROUP_BLOCK => self.groups(inner)?,
                Item::Block(inner) if inner.id == PARAMATTR_BLOCK => self.lists(inner)?,
                Item::Record(MODULE_VERSION) => {
                    let mut version = [0];
                    block.operands(&mut version)?;
                    [self.version] = version;
                }
                Item::Record(MODULE_FUNCTION) => self.function(&mut block)?,
                Item::End => return Ok(()),
                _ => {}
            }
        }
    }

    fn groups(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        loop {
            match block.next(&mut self.walk)? {
                Item::Record(PARAMATTR_GROUP_ENTRY) => {
                    let mut head = [0; 2];
                    block.operands(&mut head)?;
                    if head[1] == OF_THE_FUNCTION {
                        let group = group(&mut block)?;
                        self.groups.insert(head[0], group);
                    }
                }
                Item::End => return Ok(()),
                _ => {}
            }
        }
    }

    fn lists(&mut self, block: SubBlock<'_>) -> Result<(), BitcodeError> {
        let mut block = block.open(&self.walk);
        loop {
            match block.next(&mut self.walk)? {
                Item::Record(PARAMATTR_ENTRY) => {
                    let mut list = Vec::new();
                    while let Some(group) = next(&mut block)? {
                        list.push(group);
                    }
                    self.lists.push(list);
                }
                Item::End => return Ok(()),
                _ => {}
            }
        }
    }

    /// Name (two fields, from version 2 on), type, calling convention, declared only, linkage, attribute list from 1.
    fn function(&mut self, block: &mut Block<'_>) -> Result<(), BitcodeError> {
        let mut fields = [0; 7];
        let at = if self.version >= 2 { 2 } else { 0 };
        if block.operands(&mut fields[..at + 5])? < at + 5 {
            return Err(block.error("a shorter record", "a function"));
        }
        let (declared, list) = (fields[at + 2] != 0, fields[at + 4]);
        if declared {
            return Ok(());
        }
        let list = usize::try_from(list).ok().and_then(|list| self.lists.get(list.checked_sub(1)?));
        let groups = list.into_iter().flatten().filter_map(|group| self.groups.get(group));
        let mut said = Group::default();
        for group in groups {
            said.processor = group.processor.clone().or(said.processor);
            said.features |= group.features;
        }
        match said.processor {
            None => self.found.unnamed = true,
            Some(processor) if !said.features => {
                self.found.without_features.insert(processor);
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// The attributes of a group, after its number and parameter.
fn group(block: &mut Block<'_>) -> Result<Group, BitcodeError> {
    let mut group = Group::default();
    while let Some(kind) = next(block)? {
        match kind {
            // A known attribute, alone or with a number.
            0 => drop(expect(block)?),
            1 => drop((expect(block)?, expect(block)?)),
            3 => drop(string(block)?),
            4 => {
                let (name, value) = (string(block)?, string(block)?);
                match name.as_slice() {
                    b"target-cpu" if !value.is_empty() => {
                        group.processor = Some(String::from_utf8_lossy(&value).into_owned());
                    }
                    b"target-features" => group.features |= !value.is_empty(),
                    _ => {}
                }
            }
            // Types and ranges belong to parameters and results.
            _ => return Err(block.error(format!("attribute kind {kind}"), "an attribute of a function")),
        }
    }
    Ok(group)
}

fn next(block: &mut Block<'_>) -> Result<Option<u64>, BitcodeError> {
    let mut value = [0];
    Ok((block.operands(&mut value)? == 1).then_some(value[0]))
}

fn expect(block: &mut Block<'_>) -> Result<u64, BitcodeError> {
    next(block)?.ok_or_else(|| block.error("the end of a record", "the rest of an attribute"))
}

/// A string that ends with zero.
fn string(block: &mut Block<'_>) -> Result<Vec<u8>, BitcodeError> {
    let mut bytes = Vec::new();
    loop {
        match u8::try_from(expect(block)?) {
            Ok(0) => return Ok(bytes),
            Ok(byte) => bytes.push(byte),
            Err(_) => return Err(block.error("a number above 255 in a string", "a byte")),
        }
    }
}
