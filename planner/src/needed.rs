//! References that must be met though no native object says so any more.
//!
//! lld makes one symbol of all references to a name, and the symbol must have a definition as soon as one of them says so;
//! that reference may be a module's, in code that the optimiser drops. Where what is left is a native object's reference
//! that can do without, a final link on its own would be content, and lld in one step is not. Pure.

use std::collections::HashSet;

use crate::module_names::Symbols;

/// Names that some file refers to weakly, a module needs, and none defines, in order; `symbols` are those of the loaded
/// files, in which modules were asked for all weak references.
pub fn needed(symbols: &[Symbols]) -> Vec<&str> {
    let needs: HashSet<&Vec<u8>> = symbols.iter().flat_map(|symbols| &symbols.needs).collect();
    let is_defined = |name: &&Vec<u8>| {
        symbols.iter().any(|Symbols { names, .. }| names.weak.contains(*name) || names.strong.contains(*name))
    };
    let undefined = needs.into_iter().filter(|name| !is_defined(name));
    // A word of a line is text; other names are left to the linker.
    let mut found: Vec<&str> = undefined.filter_map(|name| str::from_utf8(name).ok()).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_and_no_file_defines() {
        let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut defines = Symbols::default();
        defines.names.strong = names(&["f"]);
        let of = |needs| vec![Symbols { needs: names(needs), ..Symbols::default() }, defines.clone()];
        assert_eq!(needed(&of(&["h", "f", "g"])), ["g", "h"]);
        assert!(needed(&of(&["f"])).is_empty());
    }
}
