//! Completes shards: adds the symbols that their modules use and that are local to the link.
//!
//! With these declarations ([`shard::complete`]) a compiler makes the same object as the linker. A definition is local if the
//! linker resolved it so or the compiler marked it `dso_local` (`addThinLTO` in `LTO.cpp`). A symbol is local if all of its
//! bitcode definitions are (`propagateAttributes` in `ModuleSummaryIndex.cpp`). Where no definition prevails and none is ODR, LLVM
//! takes all for dead and does not compare them (`computeDeadSymbolsAndUpdateIndirectCalls` in `FunctionImport.cpp`): then the
//! first one decides. Does not ask the linker.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use distlto_planner::bitcode::BitcodeError;
use distlto_planner::references::References;
use distlto_planner::resolution::Resolutions;
use distlto_planner::shard::{self, guid};
use miette::Diagnostic;
use thiserror::Error;

/// Why shards cannot be completed.
#[derive(Debug, Error, Diagnostic)]
pub enum CompletionError {
    /// lld has not written its symbol resolution.
    #[error("{} is not there, by which shards are completed", path.display())]
    #[diagnostic(
        code(distlto::usage),
        help(
            "add -Wl,--save-temps=resolution to the link line, or /lldsavetemps:resolution for Windows, or leave out \
                 --complete-shards"
        )
    )]
    NotResolved {
        /// The file.
        path: PathBuf,
    },
    /// A module's summary is of another LLVM.
    #[error("{module} has no summary of a known layout, by which its shard is completed")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "link without distlto: for Windows a program that imports a symbol of its own may crash without the completion"
        )
    )]
    NoSummary {
        /// The module.
        module: String,
    },
}

/// Reads the summary of a module. `None` without one, or if the module cannot be read; its own backend reports that error.
pub type Reader<'r> = &'r mut dyn FnMut(&str) -> Option<References>;

/// Decides which symbols are local to a link.
pub struct Completion<'t> {
    resolutions: Resolutions<'t>,
    /// Symbols that may have a definition in bitcode.
    defined: HashSet<&'t [u8]>,
    /// The modules that name each symbol, in link order; made at the first question.
    named: Option<HashMap<&'t [u8], Vec<Named<'t>>>>,
    /// Symbols already decided: whether each is local.
    known: HashMap<&'t [u8], bool>,
    modules: Modules,
}

/// A module that defines a symbol or refers to it.
#[derive(Clone, Copy)]
struct Named<'t> {
    module: &'t [u8],
    /// Whether this module's definition prevails.
    prevails: bool,
    /// Whether the linker resolved the symbol as local to the link.
    is_final: bool,
}

/// A definition of a symbol in bitcode.
struct Found {
    is_local: bool,
    is_odr: bool,
}

/// The summaries read so far.
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
    /// From the text of the linker's resolution file, for a format in which symbols begin with this.
    pub fn of(resolutions: &'t [u8], prefix: &'static str) -> Self {
        let resolutions = Resolutions::read(resolutions, prefix);
        let all = resolutions.modules().flat_map(|module| resolutions.of(module));
        let defined = all.filter(|found| found.prevails || found.is_final || found.is_native);
        let defined = defined.map(|found| found.symbol).collect();
        Self { resolutions, defined, named: None, known: HashMap::new(), modules: Modules::default() }
    }

    /// The shard of a module, completed.
    pub fn complete(&mut self, bytes: &[u8], own: &str, reader: Reader<'_>) -> Result<Vec<u8>, BitcodeError> {
        shard::complete(bytes, own.as_bytes(), |module, definitions| {
            let all = || self.resolutions.of(module).map(|found| found.symbol.to_vec()).collect();
            // From another module, only the symbols that its imported definitions use matter.
            let symbols: HashSet<Vec<u8>> = match module == own.as_bytes() {
                true => all(),
                false => self.modules.get(module, reader).map_or_else(all, |references| {
                    definitions.iter().flat_map(|guid| references.of(*guid)).map(<[u8]>::to_vec).collect()
                }),
            };
            let local = symbols.iter().filter(|symbol| self.is_local(symbol, reader));
            local.map(|symbol| guid(symbol)).collect()
        })
    }

    /// Whether a symbol is local to the link.
    fn is_local(&mut self, symbol: &[u8], reader: Reader<'_>) -> bool {
        if let Some(known) = self.known.get(symbol) {
            return *known;
        }
        let Some(symbol) = self.defined.get(symbol).copied() else { return false };
        let named = self.named.get_or_insert_with(|| named(&self.resolutions));
        let named = named.get(symbol).map_or(&[][..], Vec::as_slice);
        // A definition that does not prevail counts too.
        let found = named.iter().filter_map(|named| self.modules.definition(*named, symbol, reader));
        let found: Vec<Found> = found.collect();
        let is_live = named.iter().any(|named| named.prevails) || found.iter().any(|found| found.is_odr);
        let compared = if is_live { &found[..] } else { &found[..found.len().min(1)] };
        let is_local = !compared.is_empty() && compared.iter().all(|found| found.is_local);
        self.known.insert(symbol, is_local);
        is_local
    }
}

impl Modules {
    /// A module's definition of a symbol, if it has one.
    fn definition(&mut self, named: Named<'_>, symbol: &[u8], reader: Reader<'_>) -> Option<Found> {
        let module = self.get(named.module, reader)?;
        let found = module.definition(guid(symbol))?;
        // The linker's resolution reaches the summaries of ThinLTO modules alone.
        let is_local = found.is_dso_local() || (module.is_thin && named.is_final);
        Some(Found { is_local, is_odr: found.is_odr() })
    }
}

/// The modules that name each symbol, in link order.
fn named<'t>(resolutions: &Resolutions<'t>) -> HashMap<&'t [u8], Vec<Named<'t>>> {
    let mut named: HashMap<_, Vec<_>> = HashMap::new();
    for module in resolutions.modules() {
        for found in resolutions.of(module) {
            let one = Named { module, prevails: found.prevails, is_final: found.is_final };
            named.entry(found.symbol).or_default().push(one);
        }
    }
    named
}

/// The modules of a resolution in link order.
pub fn modules(resolutions: &[u8]) -> Vec<String> {
    let modules = Resolutions::read(resolutions, "");
    modules.modules().map(|module| String::from_utf8_lossy(module).into_owned()).collect()
}

/// The resolution of a link for Windows, with the names that modules have for symbols: the linker's own depend on the calling
/// convention, and a symbol from a DLL has the prefix `__imp_`. Here a definition is local to the link if its compiler says so,
/// whichever prevails. A module that is compiled needs a summary.
pub fn of_modules<'m>(
    modules: impl Iterator<Item = &'m str>,
    is_compiled: &dyn Fn(&str) -> bool,
    read: Reader<'_>,
) -> Result<Vec<u8>, CompletionError> {
    let mut text = Vec::new();
    for id in modules {
        let references = match read(id) {
            None if is_compiled(id) => return Err(CompletionError::NoSummary { module: id.to_owned() }),
            references => references.unwrap_or_default(),
        };
        let module = id.as_bytes();
        text.extend([module, b"\n"].concat());
        for name in references.names() {
            text.extend([b"-r=", module, b",", name, b",p\n"].concat());
        }
    }
    Ok(text)
}
