//! A note on links that import nothing because their modules are compiled with -O0, as debug builds are.
//!
//! Such a link is right, but gains little from distribution, and no tool reports this. Does not look at links that import.

use std::fs;
use std::path::Path;

use distlto_planner::module;
use distlto_prepare::message::say;

use crate::serve::collected::CollectedLink;

/// Prints the note if no module could import anything.
pub(super) fn note(link: &CollectedLink) {
    let modules = &link.modules;
    if modules.len() < 2 || modules.iter().any(|(_, module)| !module.imports.is_empty()) {
        return;
    }
    // What cannot be read is an error elsewhere.
    let noinline = |file: &str| module::read(&fs::read(Path::new(file)).ok()?).ok()?.noinline;
    let found: Vec<bool> = modules.iter().filter_map(|(_, module)| noinline(&module.file)).collect();
    if found.len() < 2 || found.contains(&false) {
        return;
    }
    say(format_args!(
        "distlto: {}: {} modules import nothing, because -O0 makes every function noinline; compile with -O2 (Bazel: -c opt)",
        link.link.line.output(),
        found.len()
    ));
}
