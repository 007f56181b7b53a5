//! The names that a bitcode object defines for other files, symbols and COMDAT groups, those it wants of them, and how far
//! it lets them be seen.
//!
//! Reads module-level records and the string table, and passes over all else. Record numbers and operands are those of
//! `LLVMBitCodes.h` and `BitcodeWriter.cpp`. Names in assembly of the module's own are text for an assembler, which is not
//! read here: it is only said that there is such text.

use std::collections::{HashMap, HashSet};

use distlto_prepare::definitions::Definitions;
use distlto_prepare::mentions::Visibility;

use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};
use crate::symbol_table;

const MODULE_VERSION: u64 = 1;
const MODULE_ASSEMBLY: u64 = 4;
const GLOBAL_VARIABLE: u64 = 7;
const FUNCTION: u64 = 8;
const COMDAT: u64 = 12;
const ALIAS: u64 = 14;
const INDIRECT_FUNCTION: u64 = 15;

/// Linkages of definitions that no other file sees: appending, internal, private, and two older codes of private.
const UNSEEN: [u64; 5] = [2, 3, 9, 13, 14];
/// A definition that is there to be inlined: another file has the one that counts.
const AVAILABLE_EXTERNALLY: u64 = 12;
/// A reference that may stay without a definition.
const EXTERN_WEAK: u64 = 7;
/// Linkages of definitions that stand aside for no other: external, and three older codes of it.
const STRONG: [u64; 4] = [0, 5, 6, 15];
/// Visibilities.
const DEFAULT: u64 = 0;
const HIDDEN: u64 = 1;
const PROTECTED: u64 = 2;
/// A definition in C that others of its name are one with.
const COMMON: u64 = 8;
/// The kind of a COMDAT group of which every file keeps its own.
const NO_DEDUPLICATION: u64 = 4;

/// What a file defines and refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Definitions, by how they compete; common symbols are weak ones here, as they are for those that come later.
    pub names: Definitions,
    /// Weak definitions of a module that do not count, as the thin link decided: a linker that takes symbols one by one (lld before
    /// 15) loads a file for one of them, whose definitions come before those that the module lists later.
    pub aside: HashSet<Vec<u8>>,
    /// Whether it may define others: in assembly, or in a format that has no string table.
    pub others: bool,
    /// Of the names that were asked for, those that it refers to and that must have a definition.
    pub needs: HashSet<Vec<u8>>,
    /// Names that it refers to, with or without a definition.
    pub weakly: HashSet<Vec<u8>>,
    /// Names that it defines or refers to and that not everybody may see.
    pub narrowed: HashMap<Vec<u8>, Visibility>,
    /// Common symbols with their alignments; those of a native object are not among its [`names`](Self::names).
    pub common: HashMap<Vec<u8>, u64>,
}

/// Which of the names something is.
#[derive(Clone, Copy)]
enum Kind {
    Weak,
    Strong,
    Group,
    Needed,
    Weakly,
    Narrowed(Visibility),
    Common(u64),
}

/// Where a name is in the string table.
struct Place {
    kind: Kind,
    start: u64,
    length: u64,
}

/// Reads raw bitcode, or bitcode in Darwin's wrapper. Of the references only those `asked` for are kept.
pub fn read(bytes: &[u8], asked: &HashSet<Vec<u8>>) -> Result<Symbols, BitcodeError> {
    let mut top = bitcode::open(bytes)?;
    let mut walk = Walk::default();
    let (mut places, mut table, mut found) = (Vec::new(), None, Symbols::default());
    while let Item::Block(block) = top.next(&mut walk)? {
        match block.id {
            bitcode::MODULE_BLOCK => found.others |= module(block, &mut walk, &mut places)?,
            bitcode::STRTAB_BLOCK => table = symbol_table::blob(block, &mut walk)?.or(table),
            _ => {}
        }
    }
    let table = table.unwrap_or_default();
    for Place { kind, start, length } in places {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        let Some(name) = table.get(start..end) else {
            found.others = true;
            continue;
        };
        // LLVM marks names that are not to be mangled.
        let name = name.strip_prefix(b"\x01").unwrap_or(name);
        let names = match kind {
            Kind::Narrowed(visibility) => {
                found.narrowed.insert(name.to_vec(), visibility);
                continue;
            }
            Kind::Common(alignment) => {
                found.common.insert(name.to_vec(), alignment);
                &mut found.names.weak
            }
            Kind::Weak => &mut found.names.weak,
            Kind::Strong => &mut found.names.strong,
            Kind::Group => &mut found.names.groups,
            Kind::Weakly => &mut found.weakly,
            Kind::Needed if asked.contains(name) => &mut found.needs,
            Kind::Needed => continue,
        };
        names.insert(name.to_vec());
    }
    Ok(found)
}

/// Gathers where the names of one module are in the string table; returns whether it may define others.
fn module(block: SubBlock<'_>, walk: &mut Walk, places: &mut Vec<Place>) -> Result<bool, BitcodeError> {
    let mut block = block.open(walk);
    let (mut version, mut others) = (0, false);
    loop {
        match block.next(walk)? {
            Item::Record(MODULE_VERSION) => version = crate::module::number(&mut block)?,
            Item::Record(MODULE_ASSEMBLY) => others = true,
            Item::Record(code @ (GLOBAL_VARIABLE | FUNCTION | ALIAS | INDIRECT_FUNCTION | COMDAT)) => {
                // Offset and length of the name; of a group its kind; else three that depend on the record, linkage, and
                // among the others visibility.
                let mut fields = [0; 10];
                let count = block.operands(&mut fields)?;
                let kind = match code {
                    COMDAT => (fields[2] != NO_DEDUPLICATION).then_some(Kind::Group),
                    _ if count < 6 => None,
                    _ if fields[5] == EXTERN_WEAK => Some(Kind::Weakly),
                    _ if fields[5] == AVAILABLE_EXTERNALLY => Some(Kind::Needed),
                    GLOBAL_VARIABLE if fields[4] == 0 => Some(Kind::Needed),
                    FUNCTION if fields[4] != 0 => Some(Kind::Needed),
                    _ if UNSEEN.contains(&fields[5]) => None,
                    _ if STRONG.contains(&fields[5]) => Some(Kind::Strong),
                    GLOBAL_VARIABLE if fields[5] == COMMON => Some(Kind::Common(alignment(fields[6]))),
                    _ => Some(Kind::Weak),
                };
                let visibility = match code {
                    GLOBAL_VARIABLE => fields[8],
                    FUNCTION => fields[9],
                    COMDAT => DEFAULT,
                    _ => fields[6],
                };
                let narrowed = match visibility {
                    HIDDEN => Some(Kind::Narrowed(Visibility::Hidden)),
                    PROTECTED => Some(Kind::Narrowed(Visibility::Protected)),
                    _ => None,
                };
                let kinds = kind.into_iter().chain(narrowed.filter(|_| kind.is_some()));
                places.extend(kinds.map(|kind| Place { kind, start: fields[0], length: fields[1] }));
            }
            Item::End => return Ok(others || version < 2),
            _ => {}
        }
    }
}

/// An alignment as it is recorded: none, or one more than its logarithm.
fn alignment(field: u64) -> u64 {
    field.checked_sub(1).and_then(|shift| 1_u64.checked_shl(u32::try_from(shift).ok()?)).unwrap_or(1)
}
