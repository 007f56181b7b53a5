//! Links that import nothing because their modules are compiled with -O0, as debug builds are.
//!
//! Such a link is right, but gains little from distribution, and no tool reports this.

use std::fs;
use std::path::Path;

use distlto_planner::module;

/// So many modules stand for all of a link.
const SAMPLE: usize = 16;

/// Whether these modules of a link without imports have functions that can be imported nowhere, since all are noinline.
pub fn are_unoptimised<'m>(files: impl Iterator<Item = &'m str>) -> bool {
    // What cannot be read is an error elsewhere.
    let noinline = |file: &str| module::read(&fs::read(Path::new(file)).ok()?).ok()?.noinline;
    let found: Vec<bool> = files.filter_map(noinline).take(SAMPLE).collect();
    found.len() > 1 && !found.contains(&false)
}
