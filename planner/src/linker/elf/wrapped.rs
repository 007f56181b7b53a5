//! `--wrap=f` in two steps: how strong `f` is tells the linker how strong `__wrap_f` is, or `__real_f`, and it looks at that before
//! it compiles modules, in one step, and at their objects, in two.
//!
//! Where a module calls `__real_f` and nothing that is loaded defines `f`, one of them may link what the other refuses or loads
//! more for. What a module defines is weak in its object, so that nobody takes it for what is called; then nothing would demand
//! a `__wrap_f`. Reads symbol tables: a linker that is asked of a symbol (`--trace-symbol`) takes it for one that some file names,
//! and loads other members than before.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use distlto_prepare::definitions::definitions_of_library;
use rayon::prelude::*;

use crate::index::error::IndexError;
use crate::link_line::{Argument, options};
use crate::loaded::{Loaded, LoadedFiles};
use crate::module_names::Symbols;

/// The wrappers that the final link has to demand by itself, where nothing that is loaded defines them; `trace` are the names of
/// all files that are. Refuses a link of the first kind.
pub fn demanded(
    arguments: &[Argument],
    loaded: &LoadedFiles,
    trace: &[String],
) -> Result<Vec<String>, IndexError> {
    let wraps = options(arguments).filter(|option| option.name == "wrap");
    let wrapped: Vec<&str> = wraps.filter_map(|option| option.value.as_deref()).collect();
    if wrapped.is_empty() {
        return Ok(Vec::new());
    }
    let asked: HashSet<Vec<u8>> = wrapped.iter().map(|name| real(name)).collect();
    let files: Vec<Symbols> = loaded.files.par_iter().map(|file| loaded.symbols(file, &asked)).collect();
    let defines = |name: &str| {
        let text = name.as_bytes();
        files.iter().any(|file| file.names.weak.contains(text) || file.names.strong.contains(text))
    };
    let lacks = |name: &&&str| {
        files.iter().any(|file| file.needs.contains(&real(name)))
            && !defines(name)
            && !trace.iter().any(|path| library_defines(Path::new(path), name.as_bytes()))
    };
    if let Some(&symbol) = wrapped.iter().find(lacks) {
        return Err(IndexError::Wrapped { symbol: symbol.to_owned() });
    }
    let is_of_module = |name: &&&str| {
        let mut modules =
            loaded.files.iter().zip(&files).filter(|(file, _)| matches!(file, Loaded::Module(_)));
        modules.any(|(_, symbols)| symbols.names.strong.contains(name.as_bytes()))
    };
    let wrappers = wrapped.iter().filter(is_of_module).map(|name| format!("__wrap_{name}"));
    Ok(wrappers.filter(|wrapper| !defines(wrapper)).collect())
}

fn library_defines(path: &Path, name: &[u8]) -> bool {
    path.is_file() && fs::read(path).is_ok_and(|bytes| definitions_of_library(&bytes).contains(name))
}

fn real(name: &str) -> Vec<u8> {
    format!("__real_{name}").into_bytes()
}
