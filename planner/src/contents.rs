//! Contents that the native object of a module has to have, as far as module and shard say so with certainty.
//!
//! Certain are symbols that are live, prevail and are seen by other files, sections with variables that are kept
//! (`llvm.used`), and the list of destructors. A list of constructors may go: LLVM evaluates constructors when it
//! compiles (`GlobalOpt.cpp`, `EvaluateStaticConstructor`), and no summary says whether it can. Does not depend on
//! native formats.

use std::collections::{HashMap, HashSet};

use crate::bitcode::{self, BitcodeError, Item, SubBlock, Walk};
use crate::references::recorded_guids;
use crate::shard::{self, OwnSymbol, OwnSymbols, guid};
use crate::symbol_table::{self, Symbol, SymbolTable};

const MODULE_SECTION_NAME: u64 = 5;
const MODULE_VARIABLE: u64 = 7;
/// Linkage, as modules count it, of a variable that has its definition only for inlining.
const AVAILABLE_EXTERNALLY: u64 = 12;

/// The variables that list functions to be called before and after `main`.
const CONSTRUCTORS: &[u8] = b"llvm.global_ctors";
const DESTRUCTORS: &[u8] = b"llvm.global_dtors";
/// Between file and name of a local symbol: LLVM 18 and later, and before.
const SEPARATORS: [&[u8]; 2] = [b";", b":"];
/// Placeholder for a missing file name.
const NO_SOURCE: &[u8] = b"<unknown>";

/// Requirements on one native object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Symbols that it defines for other files.
    pub symbols: Vec<Required>,
    /// Sections that it has, by name.
    pub sections: Vec<Vec<u8>>,
    /// Whether it lists functions to be called after `main`.
    pub has_destructors: bool,
    /// Functions of the module that are called before `main`; `None` where not even their number is certain.
    pub constructors: Option<Constructors>,
}

/// A symbol of the module, by the name that it had before the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Required {
    /// Mangled for the native object.
    pub name: Vec<u8>,
    /// Whether it was local, so that the link has given it a suffix (`.llvm.NUMBER`).
    pub is_promoted: bool,
    /// Whether every thread has one, which not all targets can give an object.
    pub is_thread_local: bool,
}

/// A module's constructors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constructors {
    /// The module's source file, which is in its native object.
    pub source: Vec<u8>,
    /// Local functions that nothing else refers to: one that is still in the object is in its list too.
    pub alone: HashSet<Vec<u8>>,
}

/// Returns the requirements of a module and its shard; `shard` is `None` for a compilation without one. `own` is the
/// module's path in the shard. Returns `None` if neither has any: a stub of the linker, a module without a symbol
/// table.
pub fn required(module: &[u8], shard: Option<&[u8]>, own: &str) -> Result<Option<Contents>, BitcodeError> {
    let Some(table) = symbol_table::read(module)? else { return Ok(None) };
    let symbols = match shard {
        Some(shard) => match shard::own_symbols(shard, own)? {
            Some(symbols) => Some(symbols),
            None => return Ok(None),
        },
        None => None,
    };
    let linked = LinkedModule::new(&table, symbols.as_ref(), &recorded_guids(module)?);
    Ok(Some(Contents {
        symbols: linked.required_symbols(),
        sections: sections(module, &linked)?,
        has_destructors: linked.listed(DESTRUCTORS).is_some(),
        constructors: linked.constructors(),
    }))
}

/// A module's definitions, with the link's decisions on them.
struct LinkedModule<'a> {
    source: &'a [u8],
    symbols: Vec<LinkedSymbol<'a>>,
    /// `None` without a thin link, which decides nothing.
    own: Option<&'a OwnSymbols>,
}

/// A definition, with the shard's entry for it.
struct LinkedSymbol<'a> {
    symbol: &'a Symbol<'a>,
    own: Option<(u64, &'a OwnSymbol)>,
}

impl LinkedSymbol<'_> {
    fn is_elsewhere(&self) -> bool {
        // No linker says of a local symbol that it prevails.
        self.symbol.is_global() && self.own.is_some_and(|(_, own)| own.is_elsewhere())
    }

    fn is_kept(&self, is_linked: bool) -> bool {
        let symbol = self.symbol;
        match self.own {
            Some((_, own)) if symbol.is_global() => own.is_kept(),
            Some((_, own)) => own.is_promoted(),
            // Symbols of assembly are outside of the link's decisions.
            None => (symbol.ir_name.is_empty() || !is_linked) && symbol.is_global() && !symbol.is_weak(),
        }
    }

    /// Whether nothing may drop the definition.
    fn stays(&self, is_linked: bool) -> bool {
        let is_live = self.own.map_or(!is_linked, |(_, own)| own.is_live);
        self.symbol.is_used() && self.symbol.comdat.is_none() && is_live && !self.is_elsewhere()
    }
}

impl<'a> LinkedModule<'a> {
    fn new(
        table: &'a SymbolTable<'a>,
        own: Option<&'a OwnSymbols>,
        recorded: &HashMap<Vec<u8>, u64>,
    ) -> Self {
        let source = table.source;
        let find = |symbol: &Symbol<'_>| {
            let own = own.filter(|_| !symbol.ir_name.is_empty())?;
            let recorded = recorded.get(plain_name(symbol)).copied();
            let mut guids = recorded.into_iter().chain(guids(source, symbol));
            guids.find_map(|guid| Some((guid, own.get(&guid)?)))
        };
        let defined = table.symbols.iter().filter(|symbol| symbol.is_defined());
        let symbols = defined.map(|symbol| LinkedSymbol { symbol, own: find(symbol) }).collect();
        Self { source, symbols, own }
    }

    fn required_symbols(&self) -> Vec<Required> {
        // An assembler may give a symbol another name (`.symver`).
        let is_version = |symbol: &Symbol<'_>| symbol.ir_name.is_empty() && symbol.name.contains(&b'@');
        if self.symbols.iter().any(|linked| is_version(linked.symbol)) {
            return Vec::new();
        }
        // With the symbol that a group is named by its other members go.
        let lost = self.symbols.iter().filter(|linked| linked.is_elsewhere());
        let lost_groups: HashSet<u32> = lost.filter_map(|linked| linked.symbol.comdat).collect();
        let required = self.symbols.iter().filter(|linked| linked.is_kept(self.own.is_some()));
        let required = required.map(|linked| linked.symbol);
        let required =
            required.filter(|symbol| symbol.comdat.is_none_or(|group| !lost_groups.contains(&group)));
        let required = required.map(|symbol| Required {
            name: symbol.name.to_vec(),
            is_promoted: !symbol.is_global(),
            is_thread_local: symbol.is_thread_local(),
        });
        required.collect()
    }

    /// Returns the functions in a list of the module; `None` unless all are functions of its own, and at least one is.
    /// An entry that depends on a variable is dropped with that variable.
    fn listed(&self, list: &[u8]) -> Option<&'a [u64]> {
        let own = self.own?;
        let listed = own.get(&guid(list))?.refers_to.as_slice();
        let is_function = |guid: &u64| own.get(guid).is_some_and(|symbol| symbol.is_function);
        (!listed.is_empty() && listed.iter().all(is_function)).then_some(listed)
    }

    fn constructors(&self) -> Option<Constructors> {
        let own = self.own?;
        let listed: HashSet<u64> = self.listed(CONSTRUCTORS)?.iter().copied().collect();
        let list = guid(CONSTRUCTORS);
        let others = own.iter().filter(|(guid, _)| **guid != list);
        let referred: HashSet<u64> = others.flat_map(|(_, symbol)| &symbol.refers_to).copied().collect();
        let is_alone = |guid: u64| {
            listed.contains(&guid)
                && !referred.contains(&guid)
                && own.get(&guid).is_some_and(OwnSymbol::is_local)
        };
        let alone = self.symbols.iter().filter(|linked| linked.own.is_some_and(|(guid, _)| is_alone(guid)));
        let alone = alone.map(|linked| linked.symbol.name.to_vec()).collect();
        Some(Constructors { source: self.source.to_vec(), alone })
    }
}

/// The name of a symbol in its module, which may say that it is not to be changed.
fn plain_name<'s>(symbol: &Symbol<'s>) -> &'s [u8] {
    symbol.ir_name.strip_prefix(b"\x01").unwrap_or(symbol.ir_name)
}

/// Returns the GUIDs by which a shard may know a symbol of a source file.
fn guids<'s>(source: &'s [u8], symbol: &Symbol<'s>) -> impl Iterator<Item = u64> {
    let name = plain_name(symbol);
    let is_global = symbol.is_global();
    let source = if source.is_empty() { NO_SOURCE } else { source };
    let local = SEPARATORS.iter().filter(move |_| !is_global);
    let local = local.map(move |separator| guid(&[source, separator, name].concat()));
    is_global.then(|| guid(name)).into_iter().chain(local)
}

/// Names of the sections that hold variables which nothing may drop.
fn sections(module: &[u8], linked: &LinkedModule<'_>) -> Result<Vec<Vec<u8>>, BitcodeError> {
    let mut top = bitcode::open(module)?;
    let mut walk = Walk::default();
    let (mut placed, mut strings) = (None, None);
    while let Item::Block(block) = top.next(&mut walk)? {
        match block.id {
            bitcode::MODULE_BLOCK if placed.is_none() => placed = Some(placed_variables(block, &mut walk)?),
            bitcode::STRTAB_BLOCK => strings = symbol_table::blob(block, &mut walk)?,
            _ => {}
        }
    }
    let Some(((sections, variables), strings)) = placed.zip(strings) else { return Ok(Vec::new()) };
    let used = linked.symbols.iter().filter(|symbol| symbol.stays(linked.own.is_some()));
    let used: HashSet<&[u8]> = used.map(|linked| linked.symbol.ir_name).collect();
    let section = |variable: PlacedVariable| {
        let start = usize::try_from(variable.name).ok()?;
        let name = strings.get(start..start.checked_add(usize::try_from(variable.length).ok()?)?)?;
        let section = sections.get(usize::try_from(variable.section).ok()?.checked_sub(1)?)?;
        // Sections with such names are for LLVM itself.
        (used.contains(name) && !section.starts_with(b"llvm.") && !section.starts_with(b".llvm"))
            .then(|| section.clone())
    };
    let mut found: Vec<_> = variables.into_iter().filter_map(section).collect();
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// A variable defined in a section of its own choice: the place of its name in the string table, and the section's
/// number.
struct PlacedVariable {
    name: u64,
    length: u64,
    section: u64,
}

/// The names of a module's sections, and the variables in them.
fn placed_variables(
    block: SubBlock<'_>,
    walk: &mut Walk,
) -> Result<(Vec<Vec<u8>>, Vec<PlacedVariable>), BitcodeError> {
    let mut block = block.open(walk);
    let (mut sections, mut variables) = (Vec::new(), Vec::new());
    loop {
        match block.next(walk)? {
            Item::Record(MODULE_SECTION_NAME) => sections.push(block.bytes()?),
            Item::Record(MODULE_VARIABLE) => {
                // Name's offset and length, type, flags, initialiser, linkage, alignment, section.
                let mut fields = [0; 8];
                block.operands(&mut fields)?;
                let [name, length, _, _, initialiser, linkage, _, section] = fields;
                if initialiser != 0 && linkage != AVAILABLE_EXTERNALLY && section != 0 {
                    variables.push(PlacedVariable { name, length, section });
                }
            }
            Item::End => return Ok((sections, variables)),
            _ => {}
        }
    }
}
