//! Reads what was linked: the symbols a program defines, and the native objects it was linked from.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use object::{Object, ObjectSymbol, SymbolKind, SymbolSection};

/// The names a linked file defines, static and dynamic, without the hashes of promoted local symbols.
pub fn symbols(path: &Path) -> Result<BTreeSet<String>> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes).with_context(|| format!("{} is no program", path.display()))?;
    let mut names = BTreeSet::new();
    for (table, symbols) in [("static", file.symbols()), ("dynamic", file.dynamic_symbols())] {
        for symbol in symbols {
            let defined = matches!(symbol.section(), SymbolSection::Section(_) | SymbolSection::Absolute);
            if !defined || matches!(symbol.kind(), SymbolKind::File | SymbolKind::Section) {
                continue;
            }
            let name = String::from_utf8_lossy(symbol.name_bytes()?);
            let name = name.split_once(".llvm.").map_or(&*name, |(own, _)| own);
            // In a finished program only the dynamic linker minds whether a definition is weak.
            let weak = if symbol.is_weak() && table == "dynamic" { "weak " } else { "" };
            names.insert(format!("{table} {weak}{name}"));
        }
    }
    Ok(names)
}

/// Every object below a directory with its content, sorted by path; none where the directory is missing.
pub fn objects(dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    files(dir, "o")
}

/// The files below a directory with this extension, by path.
pub fn files(dir: &Path, wanted: &str) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == wanted) {
                let bytes = fs::read(&path)?;
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    Ok(found)
}
