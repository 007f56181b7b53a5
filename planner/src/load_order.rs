//! The order in which the final link takes what the thin link loaded.
//!
//! lld resolves symbols in the order in which it loads files, and puts the objects that LTO makes after all native ones.
//! A second link can have both at once only where they agree. So native objects come first, but none before a module whose
//! definition of a name beat the object's own by having been loaded earlier: weak symbols and COMDAT groups go to the first
//! file, and a native object in front would win. Native objects among themselves and modules among themselves keep the
//! order of loading, so nothing else can change. The object of regular LTO is the first of the modules' objects, as in
//! lld. Pure: knows nothing of files.

use std::collections::{HashMap, HashSet};

/// One loaded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<N> {
    /// A native object: a name of it.
    Native(N),
    /// A module whose code is in the object of regular LTO.
    Merged(N),
    /// A module that a backend compiles.
    Module(N),
}

/// What a module defines that others see.
#[derive(Debug, Clone, Default)]
pub struct Defined {
    /// The names.
    pub names: HashSet<Vec<u8>>,
    /// Whether it may define names that are not known.
    pub others: bool,
}

/// One file of the final link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed<N> {
    /// A native object.
    Native(N),
    /// The object of regular LTO.
    Regular,
    /// A backend's object.
    Module(N),
}

/// The order, and whether it is that of lld's sections: all native objects before all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order<N> {
    /// The files.
    pub files: Vec<Placed<N>>,
    /// Whether some native object had to stay behind a module.
    pub native_behind: bool,
}

/// Puts files in order. `loaded` is in the order of loading; `competing` gives the names of a native object whose
/// definition depends on the order, and `defined` those of a module; they are asked no more than is needed. `regular` says
/// that there is an object of regular LTO.
pub fn natives_first<N: Copy>(
    loaded: &[Part<N>],
    regular: bool,
    competing: impl Fn(N) -> HashSet<Vec<u8>>,
    defined: impl Fn(&[N]) -> Vec<Defined>,
) -> Order<N> {
    let bound = bound_natives(loaded, regular, &competing, defined);
    let mut modules: Vec<Placed<N>> = regular.then_some(Placed::Regular).into_iter().collect();
    modules.extend(loaded.iter().filter_map(|part| match part {
        Part::Module(name) => Some(Placed::Module(*name)),
        _ => None,
    }));
    let mut files = Vec::with_capacity(loaded.len() + 1);
    let mut next = 0;
    for (at, part) in loaded.iter().enumerate() {
        let Part::Native(name) = part else { continue };
        if let Some(&before) = bound.get(&at) {
            files.extend(modules.iter().take(before).skip(next));
            next = next.max(before);
        }
        files.push(Placed::Native(*name));
    }
    files.extend(modules.iter().skip(next));
    Order { files, native_behind: next > 0 }
}

/// For each native object that must stay behind modules, by its place in the order of loading: behind how many of the
/// modules' objects.
fn bound_natives<N: Copy>(
    loaded: &[Part<N>],
    regular: bool,
    competing: &impl Fn(N) -> HashSet<Vec<u8>>,
    defined: impl Fn(&[N]) -> Vec<Defined>,
) -> HashMap<usize, usize> {
    let is_native = |part: &Part<N>| matches!(part, Part::Native(_));
    let first_module = loaded.iter().position(|part| !is_native(part)).unwrap_or(loaded.len());
    let mut natives: HashMap<usize, HashSet<Vec<u8>>> = HashMap::new();
    for (at, part) in loaded.iter().enumerate().skip(first_module) {
        if let Part::Native(name) = part {
            natives.insert(at, competing(*name));
        }
    }
    natives.retain(|_, names| !names.is_empty());
    let Some(&last) = natives.keys().max() else { return HashMap::new() };
    let named = loaded[..last].iter().filter_map(|part| match part {
        Part::Module(name) | Part::Merged(name) => Some(*name),
        Part::Native(_) => None,
    });
    let mut defined = defined(&named.collect::<Vec<N>>()).into_iter();
    // By name, how many objects there are up to the one that holds the module's code.
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut unknown = None;
    let mut objects = usize::from(regular);
    let mut bound = HashMap::new();
    for (at, part) in loaded.iter().enumerate().take(last + 1) {
        let count = match part {
            Part::Native(_) => {
                let names = natives.remove(&at).unwrap_or_default();
                let behind = names.iter().filter_map(|name| seen.get(name).copied());
                let unknown = unknown.filter(|_| !names.is_empty());
                bound.extend(behind.chain(unknown).max().map(|behind| (at, behind)));
                continue;
            }
            Part::Merged(_) => usize::from(regular),
            Part::Module(_) => {
                objects += 1;
                objects
            }
        };
        let Some(module) = defined.next() else { break };
        unknown = module.others.then_some(count).max(unknown);
        for name in module.names {
            let known = seen.entry(name).or_default();
            *known = count.max(*known);
        }
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `m1:f,g` is a module with names, `r1:f` one for regular LTO, `n1:f` a native object; `?` an unknown name.
    fn order(line: &str) -> String {
        let names = |word: &str| -> HashSet<Vec<u8>> {
            let (_, names) = word.split_once(':').unwrap_or_default();
            names.split(',').filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect()
        };
        let parts: Vec<Part<&str>> = line
            .split(' ')
            .map(|word| match &word[..1] {
                "m" => Part::Module(word),
                "r" => Part::Merged(word),
                _ => Part::Native(word),
            })
            .collect();
        let regular = parts.iter().any(|part| matches!(part, Part::Merged(_)));
        let defined = |words: &[&str]| {
            let of = |word: &&str| Defined { names: names(word), others: names(word).contains(&b"?"[..]) };
            words.iter().map(of).collect()
        };
        let order = natives_first(&parts, regular, names, defined);
        let files: Vec<&str> = order
            .files
            .iter()
            .map(|file| match file {
                Placed::Native(word) | Placed::Module(word) => word.split(':').next().unwrap_or(word),
                Placed::Regular => "lto",
            })
            .collect();
        format!("{}{}", files.join(" "), if order.native_behind { " !" } else { "" })
    }

    #[test]
    fn native_objects_come_first() {
        assert_eq!(order("n1 m1:f n2 m2:g n3:h"), "n1 n2 n3 m1 m2");
        assert_eq!(order("n1 r1:f m1 n2 r2:g"), "n1 n2 lto m1");
        assert_eq!(order("n1:f m1:f"), "n1 m1");
    }

    #[test]
    fn a_native_object_stays_behind_the_module_that_beat_it_and_no_other() {
        assert_eq!(order("m1 n1 m2:f n2:f m3 n3"), "n1 m1 m2 n2 n3 m3 !");
        assert_eq!(order("m1:f n1:f m2:f n2 m3"), "m1 n1 n2 m2 m3 !");
        assert_eq!(order("r1:f m1 n1:f n2"), "lto n1 n2 m1 !");
        assert_eq!(order("m1:f r1 n1:f m2:g n2:g"), "lto m1 n1 m2 n2 !");
        assert_eq!(order("m1 r1:f n1:f"), "lto n1 m1 !");
    }

    #[test]
    fn unknown_names_may_be_any() {
        assert_eq!(order("n1:f m1:? n2 n3:f m2"), "n1 n2 m1 n3 m2 !");
    }
}
