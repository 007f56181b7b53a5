//! `--wrap=f` where a module calls `__real_f` and nothing that is loaded defines `f`.
//!
//! The linker makes `f` as strong as the reference to `__real_f` is: before it compiles modules, in one step, and of their
//! objects, in two. So one of them may link what the other refuses or loads more for. Reads symbol tables: a linker that is
//! asked of a symbol (`--trace-symbol`) takes it for one that some file names, and loads other members than before.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use distlto_prepare::definitions::definitions_of_library;
use rayon::prelude::*;

use crate::index::error::IndexError;
use crate::link_line::{Argument, options};
use crate::loaded::LoadedFiles;
use crate::module_names::Symbols;

/// Refuses such a link; `trace` are the names of all files that are loaded.
pub fn check_loaded(
    arguments: &[Argument],
    loaded: &LoadedFiles,
    trace: &[String],
) -> Result<(), IndexError> {
    let wraps = options(arguments).filter(|option| option.name == "wrap");
    let wrapped: Vec<&str> = wraps.filter_map(|option| option.value.as_deref()).collect();
    if wrapped.is_empty() {
        return Ok(());
    }
    let asked: HashSet<Vec<u8>> = wrapped.iter().map(|name| real(name)).collect();
    let files: Vec<Symbols> = loaded.files.par_iter().map(|file| loaded.symbols(file, &asked)).collect();
    let lacks = |name: &&&str| {
        let text = name.as_bytes();
        files.iter().any(|file| file.needs.contains(&real(name)))
            && !files.iter().any(|file| file.names.weak.contains(text) || file.names.strong.contains(text))
            && !trace.iter().any(|path| library_defines(Path::new(path), text))
    };
    match wrapped.iter().find(lacks) {
        Some(&symbol) => Err(IndexError::Wrapped { symbol: symbol.to_owned() }),
        None => Ok(()),
    }
}

fn library_defines(path: &Path, name: &[u8]) -> bool {
    path.is_file() && fs::read(path).is_ok_and(|bytes| definitions_of_library(&bytes).contains(name))
}

fn real(name: &str) -> Vec<u8> {
    format!("__real_{name}").into_bytes()
}
