//! Chooses the processor for a backend compilation, so that each function is compiled for its own one.
//!
//! The bitcode of a function may name a processor but list no features, as rustc's does. Clang then adds the features
//! of its own processor; ld.lld does not. So clang gets the link's processor only if it reaches no such function, and
//! otherwise none. Without one, a function that names none is compiled for the least processor of its target, as by
//! ld.lld.

use std::fs;

use camino::Utf8Path;
use distlto_planner::clang::driver::changes;
use distlto_planner::options::Code;
use distlto_planner::processor::{self, Processors};
use distlto_planner::shard;
use miette::Diagnostic;
use thiserror::Error;

/// Compiler arguments for "no processor": the last `-target-cpu` counts.
const NONE: [&str; 4] = ["-Xclang", "-target-cpu", "-Xclang", ""];

/// A processor that clang cannot be given for some functions alone.
#[derive(Debug, Error, Diagnostic)]
#[error(
    "{module}: {option} would be for functions that name no processor, but clang adds its features to functions for {own}, too"
)]
#[diagnostic(
    code(distlto::untranslatable),
    help("compile everything with {option}, or remove it from the flags of the link")
)]
pub struct ProcessorConflict {
    /// The module.
    module: String,
    /// The option of the link.
    option: String,
    /// The processor that some functions name.
    own: String,
}

/// Whether an argument names a processor.
pub fn is_named_by(argument: &str) -> bool {
    changes(argument.as_bytes(), Code::Processor)
}

/// The compiler arguments about the processor. `named` are those that the link has; the last one of a kind counts.
pub fn arguments(
    named: &[String],
    module: &Utf8Path,
    index: &Utf8Path,
) -> Result<Vec<String>, ProcessorConflict> {
    let none = NONE.map(str::to_owned).to_vec();
    let Some(option) = named.last() else { return Ok(none) };
    let said = said_in_all(module, index);
    if !said.unnamed {
        return Ok(none);
    }
    let (_, name) = option.split_once('=').unwrap_or_default();
    match said.without_features.into_iter().find(|own| own != name) {
        Some(own) => Err(ProcessorConflict { module: module.to_string(), option: option.clone(), own }),
        None => Ok(named.to_vec()),
    }
}

/// Returns the processors that the functions of a module and of all its possible imports name. A file that cannot be
/// read adds none: that is reported in full before the compiler runs.
fn said_in_all(module: &Utf8Path, index: &Utf8Path) -> Processors {
    let mut said = said_in(module.as_str());
    let shard = fs::read(index).ok().and_then(|bytes| shard::read(&bytes).ok());
    for import in shard.iter().flat_map(|shard| shard.imported_from(module.as_str())) {
        let imported = std::str::from_utf8(&import.path).map(said_in).unwrap_or_default();
        said.unnamed |= imported.unnamed;
        said.without_features.extend(imported.without_features);
    }
    said
}

fn said_in(path: &str) -> Processors {
    fs::read(path).ok().and_then(|bytes| processor::read(&bytes).ok()).unwrap_or_default()
}
