//! The order in which the final link takes what the thin link loaded, and what native objects may not define there.
//!
//! lld resolves symbols in the order in which it loads files, and puts the objects that LTO makes after all native ones.
//! A second link has both at once if a native object in front defines nothing for which an earlier module's definition
//! counted: weak symbols and COMDAT groups go to the first file. A group counts even where its module's object lacks it,
//! since another file's symbol won. The object of regular LTO is the first of the modules' objects, as in lld. Pure: knows
//! nothing of files.

use std::collections::HashSet;

use distlto_prepare::definitions::Definitions;

use crate::module_names::Symbols;

/// One loaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadedPart<N> {
    /// A native object: a name of it.
    Native(N),
    /// A module whose code is in the object of regular LTO.
    Merged(N),
    /// A module that a backend compiles.
    Module(N),
}

/// One file of the final link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacedFile<N> {
    /// A native object.
    Native(N),
    /// The object of regular LTO.
    Regular,
    /// A backend's object.
    Module(N),
}

/// What native objects lose to modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostSymbols<N> {
    /// The objects that lose something, and what.
    pub of: Vec<(N, Definitions)>,
    /// Whether others may lose something too, to names of modules that are not known.
    pub unknown: bool,
}

/// Finds what native objects lose to modules that were loaded earlier. `loaded` is in the order of loading, and `symbols`
/// are theirs. With `first_of_many` the first of several definitions of a name counts that would be an error otherwise.
pub fn lost<N: Copy>(loaded: &[LoadedPart<N>], symbols: &[Symbols], first_of_many: bool) -> LostSymbols<N> {
    let mut lost = LostSymbols { of: Vec::new(), unknown: false };
    let mut seen = Definitions::default();
    let mut unknown = false;
    for (part, Symbols { names: own, aside, others, .. }) in loaded.iter().zip(symbols) {
        let LoadedPart::Native(name) = *part else {
            seen.weak.extend(own.weak.difference(aside).cloned());
            seen.strong.extend(own.strong.iter().cloned());
            seen.groups.extend(own.groups.iter().cloned());
            unknown |= others;
            continue;
        };
        let common =
            |own: &HashSet<Vec<u8>>, seen: &HashSet<Vec<u8>>| own.intersection(seen).cloned().collect();
        let mut weak: HashSet<Vec<u8>> = common(&own.weak, &seen.weak);
        weak.extend(own.weak.intersection(&seen.strong).cloned());
        let strong = if first_of_many { common(&own.strong, &seen.strong) } else { HashSet::new() };
        let of = Definitions { weak, strong, groups: common(&own.groups, &seen.groups) };
        lost.unknown |= unknown
            && !(own.weak.is_empty() && own.groups.is_empty() && (own.strong.is_empty() || !first_of_many));
        if !of.is_empty() {
            lost.of.push((name, of));
        }
    }
    lost
}

/// Puts files in order: as lld's sections are, if native objects may stand in front, or as they were loaded. `regular` says
/// that there is an object of regular LTO.
pub fn ordered<N: Copy>(loaded: &[LoadedPart<N>], regular: bool, natives_first: bool) -> Vec<PlacedFile<N>> {
    let placed = |part: &LoadedPart<N>| match *part {
        LoadedPart::Native(name) => Some(PlacedFile::Native(name)),
        LoadedPart::Module(name) => Some(PlacedFile::Module(name)),
        LoadedPart::Merged(_) => None,
    };
    let is_native = |part: &&LoadedPart<N>| matches!(part, LoadedPart::Native(_));
    let natives = if natives_first { loaded.len() } else { loaded.iter().take_while(is_native).count() };
    let (front, rest) = loaded.split_at(natives);
    let first = front.iter().filter(is_native);
    let modules = front.iter().filter(|part| !is_native(part));
    first
        .filter_map(placed)
        .chain(regular.then_some(PlacedFile::Regular))
        .chain(modules.chain(rest).filter_map(placed))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `m1:f,+g,(h)` is a module with a weak, a strong symbol and a group, `r1:f` one for regular LTO, `n1:f` a native object;
    /// `?` an unknown name, `-f` a weak symbol that does not count.
    fn parts(line: &str) -> Vec<LoadedPart<&str>> {
        line.split(' ')
            .map(|word| match &word[..1] {
                "m" => LoadedPart::Module(word),
                "r" => LoadedPart::Merged(word),
                _ => LoadedPart::Native(word),
            })
            .collect()
    }

    fn definitions(word: &str) -> Definitions {
        let mut found = Definitions::default();
        let names = word.split_once(':').map_or("", |(_, names)| names);
        for name in names.split(',').filter(|name| !name.is_empty() && *name != "?") {
            let set = match &name[..1] {
                "+" => &mut found.strong,
                "(" => &mut found.groups,
                _ => &mut found.weak,
            };
            set.insert(name.trim_matches(['+', '-', '(', ')']).as_bytes().to_vec());
        }
        found
    }

    fn losses(line: &str, first_of_many: bool) -> String {
        let parts = parts(line);
        let aside = |word: &str| {
            let names = word.split([':', ',']).filter_map(|name| name.strip_prefix('-'));
            names.map(|name| name.as_bytes().to_vec()).collect()
        };
        let symbols = |word: &str| Symbols {
            names: definitions(word),
            aside: aside(word),
            others: word.contains('?'),
            ..Symbols::default()
        };
        let symbols: Vec<Symbols> = line.split(' ').map(symbols).collect();
        let lost = lost(&parts, &symbols, first_of_many);
        let mut words: Vec<String> = Vec::new();
        for (native, Definitions { weak, strong, groups }) in lost.of {
            let native = native.split(':').next().unwrap_or(native);
            let mut of: Vec<String> =
                weak.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            of.extend(strong.iter().map(|name| format!("+{}", String::from_utf8_lossy(name))));
            of.extend(groups.iter().map(|name| format!("({})", String::from_utf8_lossy(name))));
            of.sort();
            words.push(format!("{native}:{}", of.join(",")));
        }
        format!("{}{}", words.join(" "), if lost.unknown { " ?" } else { "" })
    }

    fn order(line: &str, natives_first: bool) -> String {
        let parts = parts(line);
        let regular = parts.iter().any(|part| matches!(part, LoadedPart::Merged(_)));
        let word = |placed| match placed {
            PlacedFile::Native(word) | PlacedFile::Module(word) => word,
            PlacedFile::Regular => "lto",
        };
        ordered(&parts, regular, natives_first).into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_native_object_loses_what_an_earlier_module_defines() {
        assert_eq!(losses("n1:f m1:f,+g n2:f,g,h m2:h n3:h", false), "n2:f,g n3:h");
        assert_eq!(losses("m1:(f) n1:f n2:(f),f r1:+k n3:k", false), "n2:(f) n3:k");
        assert_eq!(losses("m1:f n1:+f n2", false), "");
        assert_eq!(losses("m1:f n1 m2:g", false), "");
        assert_eq!(losses("n1:f m1:f", false), "");
        assert_eq!(losses("m1:-f,g n1:f,g m2:f n2:f", false), "n1:g n2:f");
    }

    #[test]
    fn of_many_definitions_the_first_strong_one_counts() {
        assert_eq!(losses("m1:f n1:+f m2:+f n2:+f", true), "n2:+f");
        assert_eq!(losses("m2:+f n2:+f", false), "");
    }

    #[test]
    fn unknown_names_may_be_any() {
        assert_eq!(losses("m1:? n1:f", false), " ?");
        assert_eq!(losses("n1:f m1:? n2 n3:+f", false), "");
        assert_eq!(losses("n1:f m1:? n3:+f", true), " ?");
    }

    #[test]
    fn native_objects_come_first_or_where_they_were_loaded() {
        assert_eq!(order("n1 m1 n2 m2 n3", true), "n1 n2 n3 m1 m2");
        assert_eq!(order("n1 r1 m1 n2 r2", true), "n1 n2 lto m1");
        assert_eq!(order("n1 m1 r1 n2 m2", false), "n1 lto m1 n2 m2");
    }
}
