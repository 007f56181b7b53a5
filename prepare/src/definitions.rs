//! Names that a native object defines in such a way that the order of files decides whose definition is used.
//!
//! Weak and common symbols, whatever is in a COMDAT group, and the names of the groups. Two other definitions of one
//! name are an error in any order. Knows nothing of links.

use std::collections::HashSet;

use object::read::{File, Object, ObjectComdat, ObjectSection, ObjectSymbol};
use object::{SectionFlags, elf};

/// The names in an object; with `all`, other global definitions too. An object that cannot be read has none: the linker
/// says what is wrong with it.
pub fn competing(bytes: &[u8], all: bool) -> HashSet<Vec<u8>> {
    let Ok(file) = File::parse(bytes) else { return HashSet::new() };
    let grouped: HashSet<_> = file
        .sections()
        .filter(|section| match section.flags() {
            SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_GROUP),
            _ => true,
        })
        .map(|section| section.index())
        .collect();
    let symbols = file
        .symbols()
        .filter(|symbol| symbol.is_global() && !symbol.is_undefined())
        .filter(|symbol| {
            let in_group = symbol.section_index().is_some_and(|index| grouped.contains(&index));
            all || symbol.is_weak() || symbol.is_common() || in_group
        })
        .filter_map(|symbol| Some(symbol.name_bytes().ok()?.to_vec()));
    let groups = file.comdats().filter_map(|comdat| Some(comdat.name_bytes().ok()?.to_vec()));
    symbols.chain(groups).collect()
}
