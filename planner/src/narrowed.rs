//! Symbols that are seen less far than the final link would know by itself.
//!
//! lld makes one symbol of all that files say of a name, before it compiles modules, and the narrowest visibility counts. A
//! module's object no longer speaks of what the optimiser has dropped: of a definition for which another file's counts, or of
//! a symbol that only unused code refers to. Pure.

use std::collections::HashMap;

use distlto_prepare::visibility::Visibility;

use crate::load_order::LoadedPart;
use crate::module_names::Symbols;

/// What is said of a symbol.
struct Said {
    /// By modules.
    modules: Visibility,
    /// By native objects.
    natives: Visibility,
    /// With the definition that tells least.
    kept: Option<Visibility>,
}

/// Symbols that are defined, and for which the final link might not hear of their visibility; in order.
pub fn narrowed<'s, N>(parts: &[LoadedPart<N>], symbols: &'s [Symbols]) -> Vec<(&'s [u8], Visibility)> {
    let files =
        || parts.iter().zip(symbols).map(|(part, symbols)| (matches!(part, LoadedPart::Native(_)), symbols));
    let mut said: HashMap<&[u8], Said> = HashMap::new();
    for (_, symbols) in files().filter(|(is_native, _)| !is_native) {
        for (name, visibility) in &symbols.narrowed {
            let nothing = Said { modules: Visibility::Default, natives: Visibility::Default, kept: None };
            let said = said.entry(name).or_insert(nothing);
            said.modules = said.modules.min(*visibility);
        }
    }
    if said.is_empty() {
        return Vec::new();
    }
    for (_, symbols) in files().filter(|(is_native, _)| *is_native) {
        for (name, visibility) in &symbols.narrowed {
            if let Some(said) = said.get_mut(name.as_slice()) {
                said.natives = said.natives.min(*visibility);
            }
        }
    }
    for (is_native, Symbols { names, common, narrowed, .. }) in files() {
        for name in names.weak.iter().chain(&names.strong).chain(common) {
            let Some(said) = said.get_mut(name.as_slice()) else { continue };
            let own = narrowed.get(name).filter(|_| !is_native).copied().unwrap_or(Visibility::Default);
            said.kept = said.kept.max(Some(own.min(said.natives)));
        }
    }
    let narrowed = said.into_iter().filter_map(|(name, said)| {
        let visibility = said.modules.min(said.natives);
        (said.kept? != visibility).then_some((name, visibility))
    });
    let mut found: Vec<_> = narrowed.collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n:f` is a native object that defines `f`, `m:f.h` a module in which `f` is hidden, `m:-f.p` one that refers to a
    /// protected `f`.
    fn found(line: &str) -> String {
        let mut parts = Vec::new();
        let mut files = Vec::new();
        for word in line.split(' ') {
            let (kind, mention) = word.split_once(':').unwrap();
            parts.push(if kind == "n" { LoadedPart::Native(()) } else { LoadedPart::Module(()) });
            let (name, visibility) = mention.split_once('.').unwrap_or((mention, ""));
            let bare = name.trim_start_matches('-').as_bytes().to_vec();
            let mut symbols = Symbols::default();
            if bare.len() == name.len() {
                symbols.names.weak.insert(bare.clone());
            }
            let visibility = [("h", Visibility::Hidden), ("p", Visibility::Protected)]
                .into_iter()
                .find(|(letter, _)| *letter == visibility);
            symbols.narrowed.extend(visibility.map(|(_, visibility)| (bare, visibility)));
            files.push(symbols);
        }
        let found = narrowed(&parts, &files);
        found
            .iter()
            .map(|(name, visibility)| format!("{} {visibility:?}", str::from_utf8(name).unwrap()))
            .collect()
    }

    #[test]
    fn what_dropped_code_has_said_of_a_symbol() {
        assert_eq!(found("n:f m:f.h"), "f Hidden");
        assert_eq!(found("m:f m:-f.h"), "f Hidden");
        assert_eq!(found("m:f m:f.p m:-f.h"), "f Hidden");
        assert_eq!(found("n:f m:-f.p"), "f Protected");
    }

    #[test]
    fn what_the_final_link_hears_anyway() {
        assert_eq!(found("m:f.h m:f.h m:-f"), "");
        assert_eq!(found("n:f.h m:f.h"), "");
        assert_eq!(found("n:-f.h m:f m:-f.h"), "");
        assert_eq!(found("n:f m:f"), "");
        // Nothing defines it.
        assert_eq!(found("n:-f m:-f.h"), "");
    }
}
