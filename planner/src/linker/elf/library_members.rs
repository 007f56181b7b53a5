//! Archives with bitcode whose members the linker cannot be given one by one: those of `--exclude-libs`, and those that only an
//! object names.
//!
//! A member on its own belongs to no library, so its symbols would be exported: by a shared library, under
//! `--export-dynamic`, and where a shared library refers to one or defines it too. Such links are refused; in others the
//! option does nothing. An archive that an object names (`.deplibs`) is found again by the final link, which would take a member
//! a second time where a shared library wants a symbol that the member's object no longer has.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use distlto_prepare::definitions::{definitions, definitions_of_library, references};

use crate::fates::ThinLinkOutcome;
use crate::index::error::IndexError;
use crate::inputs::{LinkInputs, UnpackedArchive};
use crate::link_line::{Argument, options};
use crate::module_names;

/// Refuses a line whose output exports what it defines.
pub fn check_line(arguments: &[Argument], inputs: &LinkInputs) -> Result<(), IndexError> {
    let exports =
        options(arguments).any(|option| option.name == "shared" || option.name.starts_with("export-dynamic"));
    match excluded(arguments, inputs).next() {
        Some((libraries, archive)) if exports => {
            Err(IndexError::ExcludeLibs { libraries, archive: archive.path.clone() })
        }
        _ => Ok(()),
    }
}

/// Refuses a link that has loaded a shared library which refers to a symbol of such an archive.
pub fn check_loaded(
    arguments: &[Argument],
    inputs: &LinkInputs,
    outcome: &ThinLinkOutcome,
) -> Result<(), IndexError> {
    let mut wanted: Option<HashSet<Vec<u8>>> = None;
    let loaded: HashSet<&str> = outcome.loaded.iter().map(String::as_str).collect();
    for (libraries, archive) in excluded(arguments, inputs) {
        let wanted = wanted.get_or_insert_with(|| names_of_libraries(&outcome.loaded));
        let mut members = archive.members.iter().filter(|member| loaded.contains(member.path.as_str()));
        if members.any(|member| defines(&member.path, wanted)) {
            return Err(IndexError::ExcludeLibs { libraries, archive: archive.path.clone() });
        }
    }
    Ok(())
}

/// Refuses a link in which a shared library wants a symbol of a loaded member of an archive that only an object names.
/// `noted` are those archives.
pub fn check_noted(
    noted: &HashSet<String>,
    inputs: &LinkInputs,
    outcome: &ThinLinkOutcome,
) -> Result<(), IndexError> {
    let archives: Vec<_> = inputs.archives.iter().filter(|archive| noted.contains(&archive.path)).collect();
    if archives.is_empty() {
        return Ok(());
    }
    let files = outcome.loaded.iter().map(Path::new).filter(|path| path.is_file());
    let wanted: HashSet<Vec<u8>> =
        files.filter_map(|path| fs::read(path).ok()).flat_map(|bytes| references(&bytes)).collect();
    let loaded: HashSet<&str> = outcome.loaded.iter().map(String::as_str).collect();
    for archive in archives {
        let mut members = archive.members.iter().filter(|member| loaded.contains(member.path.as_str()));
        if members.any(|member| defines(&member.path, &wanted)) {
            return Err(IndexError::Noted { archive: archive.path.clone() });
        }
    }
    Ok(())
}

/// The unpacked archives that the line excludes, each with the option's value.
fn excluded<'a>(
    arguments: &'a [Argument],
    inputs: &'a LinkInputs,
) -> impl Iterator<Item = (String, &'a UnpackedArchive)> {
    let values = options(arguments)
        .filter(|option| option.name == "exclude-libs")
        .map(|option| option.value.clone().unwrap_or_default());
    values.flat_map(|libraries| {
        let names = |path: &str| {
            let base = path.rsplit('/').next().unwrap_or(path);
            libraries.split([',', ':']).any(|library| library == "ALL" || library == base)
        };
        let named: Vec<_> = inputs.archives.iter().filter(|archive| names(&archive.path)).collect();
        named.into_iter().map(move |archive| (libraries.clone(), archive))
    })
}

/// The symbols that an output exports if it defines them: shared libraries refer to them, or define them too.
fn names_of_libraries(loaded: &[String]) -> HashSet<Vec<u8>> {
    let files = loaded.iter().map(Path::new).filter(|path| path.is_file());
    let names = |bytes: Vec<u8>| references(&bytes).into_iter().chain(definitions_of_library(&bytes));
    files.filter_map(|path| fs::read(path).ok()).flat_map(names).collect()
}

/// Whether a member defines one of these names, or may do so.
fn defines(member: &str, wanted: &HashSet<Vec<u8>>) -> bool {
    let Ok(bytes) = fs::read(member) else { return false };
    let any = |names: &HashSet<Vec<u8>>| names.iter().any(|name| wanted.contains(name));
    let found = match module_names::read(&bytes, &HashSet::new()) {
        Ok(found) if found.others && !wanted.is_empty() => return true,
        Ok(found) => found.names,
        Err(_) => definitions(&bytes),
    };
    any(&found.weak) || any(&found.strong)
}
