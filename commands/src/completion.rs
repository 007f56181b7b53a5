//! Completes shards: adds the symbols that their modules refer to and that stay within the link.
//!
//! With these declarations ([`shard::complete`]) a compiler makes the same object as the linker. A symbol stays within the link
//! if the linker resolved each of its bitcode definitions so, or the compiler marked it `dso_local` (`propagateAttributes` in
//! `ModuleSummaryIndex.cpp`; `addThinLTO` in `LTO.cpp`). Knows nothing of how a linker is asked.

use std::collections::{HashMap, HashSet};

use distlto_planner::bitcode::BitcodeError;
use distlto_planner::references::References;
use distlto_planner::resolution::Resolutions;
use distlto_planner::shard::{self, guid};

/// Reads the summary of a module. `None` without one, or if the module cannot be read; its own backend reports that error.
pub type Reader<'r> = &'r mut dyn FnMut(&str) -> Option<References>;

/// What is known of the symbols of a link.
pub struct Completion<'t> {
    resolutions: Resolutions<'t>,
    /// Symbols that a module defines, or native code, where a module may have a definition too.
    defined: HashSet<&'t [u8]>,
    /// The modules that name each symbol, once that is asked for.
    named: Option<HashMap<&'t [u8], Vec<Named<'t>>>>,
    /// Whether a symbol is within what is linked.
    known: HashMap<&'t [u8], bool>,
    modules: Modules,
}

/// A module that defines a symbol or refers to it.
#[derive(Clone, Copy)]
struct Named<'t> {
    module: &'t [u8],
    /// Whether the linker has resolved the symbol there to be within what it links.
    is_final: bool,
}

/// The modules that were looked at.
#[derive(Default)]
struct Modules {
    known: HashMap<Vec<u8>, Option<References>>,
}

impl Modules {
    fn get(&mut self, module: &[u8], reader: Reader<'_>) -> Option<&References> {
        if !self.known.contains_key(module) {
            let id = std::str::from_utf8(module).ok();
            self.known.insert(module.to_owned(), id.and_then(reader));
        }
        self.known.get(module)?.as_ref()
    }
}

impl<'t> Completion<'t> {
    /// By what a linker has written of its symbols.
    pub fn of(resolutions: &'t [u8]) -> Self {
        let resolutions = Resolutions::read(resolutions);
        let all = resolutions.modules().flat_map(|module| resolutions.of(module));
        let defined = all.filter(|found| found.prevails || found.is_final || found.is_native);
        let defined = defined.map(|found| found.symbol).collect();
        Self { resolutions, defined, named: None, known: HashMap::new(), modules: Modules::default() }
    }

    /// The shard of a module, completed.
    pub fn complete(&mut self, bytes: &[u8], own: &str, reader: Reader<'_>) -> Result<Vec<u8>, BitcodeError> {
        shard::complete(bytes, own.as_bytes(), |module, definitions| {
            let all = || self.resolutions.of(module).map(|found| found.symbol.to_vec()).collect();
            // Of another module only what its imported definitions refer to counts.
            let symbols: HashSet<Vec<u8>> = match module == own.as_bytes() {
                true => all(),
                false => self.modules.get(module, reader).map_or_else(all, |references| {
                    definitions.iter().flat_map(|guid| references.of(*guid)).map(<[u8]>::to_vec).collect()
                }),
            };
            let within = symbols.iter().filter(|symbol| self.is_within(symbol, reader));
            within.map(|symbol| guid(symbol)).collect()
        })
    }

    /// Whether the linker knows a symbol to be within what it links.
    fn is_within(&mut self, symbol: &[u8], reader: Reader<'_>) -> bool {
        if let Some(known) = self.known.get(symbol) {
            return *known;
        }
        let Some(symbol) = self.defined.get(symbol).copied() else { return false };
        // Of a definition that does not count another module may still have one, be it weak.
        let named = self.named.get_or_insert_with(|| named(&self.resolutions));
        let named = named.get(symbol).into_iter().flatten();
        let found = named.filter_map(|named| self.modules.is_within(*named, symbol, reader));
        let found: Vec<bool> = found.collect();
        let is_within = !found.is_empty() && found.iter().all(|&is_within| is_within);
        self.known.insert(symbol, is_within);
        is_within
    }
}

impl Modules {
    /// Whether a module's definition of a symbol is known to be within what is linked. `None` where the module has no definition.
    fn is_within(&mut self, named: Named<'_>, symbol: &[u8], reader: Reader<'_>) -> Option<bool> {
        let module = self.get(named.module, reader)?;
        let found = module.definition(guid(symbol))?;
        // The linker says it to ThinLTO modules alone.
        Some(found.is_dso_local() || (module.is_thin && named.is_final))
    }
}

/// The modules that name each symbol.
fn named<'t>(resolutions: &Resolutions<'t>) -> HashMap<&'t [u8], Vec<Named<'t>>> {
    let mut named: HashMap<_, Vec<_>> = HashMap::new();
    for module in resolutions.modules() {
        for found in resolutions.of(module) {
            named.entry(found.symbol).or_default().push(Named { module, is_final: found.is_final });
        }
    }
    named
}
