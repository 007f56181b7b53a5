//! What modules say of symbols that the final link would not know by itself.
//!
//! lld makes one symbol of all that files say of a name, before it compiles modules: the narrowest visibility counts, and the
//! largest alignment of common symbols, which the code of every module relies on. A module's object no longer speaks of what
//! the optimiser has dropped: of a definition for which another file's counts, or of a symbol that only unused code refers to.
//! Pure.

use std::collections::HashMap;

use distlto_prepare::mentions::{Claim, Visibility};

use crate::load_order::LoadedPart;
use crate::module_names::Symbols;

/// What is said of a symbol.
#[derive(Default)]
struct Said {
    /// By modules.
    modules: Visibility,
    /// By native objects.
    natives: Visibility,
    /// With the definition that tells least; `None` where a shared library or nobody has one.
    kept: Option<Visibility>,
    /// The largest of modules' alignments, and the least of all.
    alignment: Option<(u64, u64)>,
}

impl Said {
    /// What is to be told, if native objects are linked, which may refer to the symbol.
    fn claim<'a>(&self, name: &'a [u8], are_natives: bool) -> Option<Claim<'a>> {
        let visibility = self.modules.min(self.natives);
        let kept = self.kept.or(are_natives.then_some(self.natives))?;
        let alignment = self.alignment.filter(|(largest, least)| least < largest);
        (kept != visibility || alignment.is_some()).then_some(Claim {
            name,
            visibility,
            alignment: alignment.map(|(largest, _)| largest),
        })
    }
}

/// What the final link has to be told, by name.
pub fn claims<'s, N>(parts: &[LoadedPart<N>], symbols: &'s [Symbols]) -> Vec<Claim<'s>> {
    let files = |natives: bool| {
        let of = move |part: &LoadedPart<N>| matches!(part, LoadedPart::Native(_)) == natives;
        parts.iter().zip(symbols).filter(move |(part, _)| of(part)).map(|(_, symbols)| symbols)
    };
    let mut said: HashMap<&[u8], Said> = HashMap::new();
    for symbols in files(false) {
        for (name, visibility) in &symbols.narrowed {
            let said = said.entry(name).or_default();
            said.modules = said.modules.min(*visibility);
        }
        for (name, &alignment) in &symbols.common {
            let said = &mut said.entry(name).or_default().alignment;
            let (largest, least) = said.unwrap_or((alignment, alignment));
            *said = Some((largest.max(alignment), least.min(alignment)));
        }
    }
    if said.is_empty() {
        return Vec::new();
    }
    for symbols in files(true) {
        for (name, visibility) in &symbols.narrowed {
            if let Some(said) = said.get_mut(name.as_slice()) {
                said.natives = said.natives.min(*visibility);
            }
        }
        for (name, &alignment) in &symbols.common {
            if let Some(Said { alignment: Some((_, least)), .. }) = said.get_mut(name.as_slice()) {
                *least = alignment.min(*least);
            }
        }
    }
    for natives in [true, false] {
        for Symbols { names, common, narrowed, .. } in files(natives) {
            for name in names.weak.iter().chain(&names.strong).chain(common.keys()) {
                let Some(said) = said.get_mut(name.as_slice()) else { continue };
                let own = narrowed.get(name).filter(|_| !natives).copied().unwrap_or(Visibility::Default);
                said.kept = said.kept.max(Some(own.min(said.natives)));
            }
        }
    }
    let are_natives = files(true).next().is_some();
    // Others can be in no object.
    let is_name = |name: &[u8]| !name.is_empty() && !name.contains(&0);
    let said = said.iter().filter(|(name, _)| is_name(name));
    let mut claims: Vec<Claim<'s>> = said.filter_map(|(name, said)| said.claim(name, are_natives)).collect();
    claims.sort_unstable_by_key(|claim| claim.name);
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n:f` is a native object that defines `f`, `m:f.h` a module in which `f` is hidden, `m:-f.p` one that refers to a
    /// protected `f`; `m:f.64` has a common `f`.
    fn found(line: &str) -> String {
        let mut parts = Vec::new();
        let mut files = Vec::new();
        for word in line.split(' ') {
            let (kind, mention) = word.split_once(':').expect("a colon");
            parts.push(if kind == "n" { LoadedPart::Native(()) } else { LoadedPart::Module(()) });
            let (name, said) = mention.split_once('.').unwrap_or((mention, ""));
            let bare = name.trim_start_matches('-').as_bytes().to_vec();
            let mut symbols = Symbols::default();
            match said {
                "h" => drop(symbols.narrowed.insert(bare.clone(), Visibility::Hidden)),
                "p" => drop(symbols.narrowed.insert(bare.clone(), Visibility::Protected)),
                "" => {}
                alignment => drop(symbols.common.insert(bare.clone(), alignment.parse().expect("a number"))),
            }
            if bare.len() == name.len() && symbols.common.is_empty() {
                symbols.names.weak.insert(bare);
            }
            files.push(symbols);
        }
        let said = |claim: Claim<'_>| {
            let name = String::from_utf8_lossy(claim.name).into_owned();
            let alignment = claim.alignment.map(|alignment| format!(" {alignment}"));
            format!("{name} {:?}{}", claim.visibility, alignment.unwrap_or_default())
        };
        claims(&parts, &files).into_iter().map(said).collect()
    }

    #[test]
    fn what_dropped_code_has_said_of_a_symbol() {
        assert_eq!(found("n:f m:f.h"), "f Hidden");
        assert_eq!(found("m:f m:-f.h"), "f Hidden");
        assert_eq!(found("m:f m:f.p m:-f.h"), "f Hidden");
        assert_eq!(found("n:f m:-f.p"), "f Protected");
        assert_eq!(found("n:-f m:-f.h"), "f Hidden");
        assert_eq!(found("n:f.8 m:f.64 m:f.16"), "f Default 64");
        assert_eq!(found("m:f.8 m:f.64 n:-f.h"), "f Hidden 64");
    }

    #[test]
    fn what_the_final_link_hears_anyway() {
        assert_eq!(found("m:f.h m:f.h m:-f"), "");
        assert_eq!(found("n:f.h m:f.h"), "");
        assert_eq!(found("n:-f.h m:f m:-f.h"), "");
        assert_eq!(found("n:f m:f"), "");
        assert_eq!(found("n:f.64 n:f.8 m:-f"), "");
        assert_eq!(found("m:f.8 m:f.8"), "");
        assert_eq!(found("m:-f m:-f.h"), "");
        assert_eq!(found("n:-f.h m:-f.h"), "");
    }
}
