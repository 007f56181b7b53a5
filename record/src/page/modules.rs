//! The modules of a link as blocks of the page: their names, their numbers, and the imports between them.
//!
//! Columns one after the other, since equal kinds of numbers deflate best together.

use crate::inspect::{Inspection, ModuleFacts};
use crate::page::block::PageBlock;
use crate::page::treemap::{Area, Map};

/// The names of the modules, then those of the directories of the map, a line each.
pub(super) fn names(inspection: &Inspection, map: &Map) -> String {
    let mut block = PageBlock::default();
    inspection.modules.iter().for_each(|module| block.line(&module.label));
    map.directories.iter().for_each(|directory| block.line(&directory.name));
    block.packed()
}

/// Returns the numbers of each module and its place on the map; then depth and place of each directory.
pub(super) fn columns(inspection: &Inspection, map: &Map) -> String {
    let mut block = PageBlock::default();
    let modules = &inspection.modules;
    modules.iter().for_each(|module| block.number(module.own_instructions));
    modules.iter().for_each(|module| block.number(module.imported_instructions));
    modules.iter().for_each(|module| block.known(module.cpu_us));
    modules.iter().for_each(|module| block.known(module.took_us));
    modules.iter().for_each(|module| block.known(module.peak_memory));
    places(&mut block, &map.modules);
    map.directories.iter().for_each(|directory| block.number(directory.depth as u64));
    places(&mut block, &map.directories.iter().map(|directory| directory.area).collect::<Vec<_>>());
    block.packed()
}

fn places(block: &mut PageBlock, areas: &[Area]) {
    for side in 0..4 {
        areas.iter().for_each(|area| block.number(area.0[side].into()));
    }
}

/// For each module how many it imports from, then for each the distances from one to the next of them, sorted.
pub(super) fn imports(inspection: &Inspection) -> String {
    let mut block = PageBlock::default();
    let modules = || inspection.modules.iter();
    let sorted = |module: &ModuleFacts| {
        let mut imports = module.imports.clone();
        imports.sort_unstable();
        imports.dedup();
        imports
    };
    modules().for_each(|module| block.number(sorted(module).len() as u64));
    for module in modules() {
        let mut before = 0;
        for import in sorted(module) {
            block.number(u64::from(import - before));
            before = import;
        }
    }
    block.packed()
}
