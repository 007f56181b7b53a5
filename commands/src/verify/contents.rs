//! The content of an object or a program, as far as two of them are compared: sections and symbols.
//!
//! Pure. Addresses and order are left aside.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol, SymbolSection};
use serde::Serialize;

/// The contents of a file; of one that is none of the known formats, nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileContents<'a> {
    /// By name and by the how manieth of that name it is.
    sections: BTreeMap<(String, usize), (u64, &'a [u8])>,
    /// Name, size, and kind with binding, each with how many there are.
    symbols: BTreeMap<(String, u64, String), usize>,
}

/// A section that differs: how long it is by lld and by distlto, and how many bytes differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SectionDifference {
    /// Its name.
    pub name: String,
    /// Absent where there is none.
    pub lld_bytes: Option<u64>,
    /// Absent where there is none.
    pub distlto_bytes: Option<u64>,
    /// Of as many as both have.
    pub differing_bytes: u64,
}

/// How two files differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ContentDifference {
    /// Sections that are not equal.
    pub sections: Vec<SectionDifference>,
    /// Symbols, `NAME (KIND, SIZE)`, that only lld's has.
    pub symbols_of_lld: Vec<String>,
    /// Those that only distlto's has.
    pub symbols_of_distlto: Vec<String>,
}

impl ContentDifference {
    /// Returns the number of differences.
    pub fn rows(&self) -> usize {
        self.sections.len() + self.symbols_of_lld.len() + self.symbols_of_distlto.len()
    }
}

impl<'a> FileContents<'a> {
    /// Of a file.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut contents = Self::default();
        let Ok(file) = object::File::parse(bytes) else { return contents };
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for section in file.sections() {
            let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
            let number = count.entry(name.clone()).or_default();
            // A section that takes no room in the file has none.
            let data = section.data().unwrap_or_default();
            contents.sections.insert((name, *number), (section.size(), data));
            *number += 1;
        }
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let name = String::from_utf8_lossy(symbol.name_bytes().unwrap_or_default()).into_owned();
            let defined = match symbol.section() {
                SymbolSection::Undefined => "undefined",
                _ if symbol.is_weak() => "weak",
                _ if symbol.is_local() => "local",
                _ => "global",
            };
            let kind = format!("{defined} {:?}", symbol.kind()).to_lowercase();
            *contents.symbols.entry((name, symbol.size(), kind)).or_default() += 1;
        }
        contents
    }

    /// The bytes of the first section of a name.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.sections.get(&(name.to_owned(), 0)).map(|(_, data)| *data)
    }

    /// Whether names of `.dwo` files are all that differs: the strings otherwise, and the sections that do not hold or
    /// follow from them. A build id follows from everything.
    pub fn same_but_for_split_names<'s>(&'s self, other: &'s Self) -> bool {
        const FOLLOW: [&str; 5] =
            [".debug_info", ".debug_str", ".debug_str_offsets", ".rela.debug_info", ".note.gnu.build-id"];
        let rest =
            |of: &'s Self| of.sections.iter().filter(|((name, _), _)| !FOLLOW.contains(&name.as_str()));
        let strings = |of: &Self| -> BTreeMap<&'a [u8], usize> {
            let mut found = BTreeMap::new();
            let all = of.section(".debug_str").unwrap_or_default().split(|byte| *byte == 0);
            for string in all.filter(|string| !string.ends_with(b".dwo")) {
                *found.entry(string).or_default() += 1;
            }
            found
        };
        let size = |of: &Self| of.section(".debug_info").map(<[u8]>::len);
        size(self).is_some()
            && size(self) == size(other)
            && rest(self).eq(rest(other))
            && strings(self) == strings(other)
            && self.symbols == other.symbols
    }

    /// How lld's, which this is, and distlto's differ.
    pub fn difference(&self, distlto: &Self) -> ContentDifference {
        let names = self.sections.keys().chain(distlto.sections.keys());
        let names: std::collections::BTreeSet<_> = names.collect();
        let sections = names.into_iter().filter_map(|name| {
            let (one, other) = (self.sections.get(name), distlto.sections.get(name));
            if one == other {
                return None;
            }
            let bytes = one.zip(other).map(|(one, other)| one.1.iter().zip(other.1));
            Some(SectionDifference {
                name: name.0.clone(),
                lld_bytes: one.map(|one| one.0),
                distlto_bytes: other.map(|other| other.0),
                differing_bytes: bytes.map_or(0, |bytes| bytes.filter(|(a, b)| a != b).count() as u64),
            })
        });
        ContentDifference {
            sections: sections.collect(),
            symbols_of_lld: self.symbols_without(distlto),
            symbols_of_distlto: distlto.symbols_without(self),
        }
    }

    fn symbols_without(&self, other: &Self) -> Vec<String> {
        let more = |(key, count): &(&(String, u64, String), &usize)| {
            other.symbols.get(*key).copied().unwrap_or(0) < **count
        };
        let text =
            |((name, size, kind), _): (&(String, u64, String), &usize)| format!("{name} ({kind}, {size})");
        self.symbols.iter().filter(more).map(text).collect()
    }
}

/// Whether two programs differ in their build ids alone.
pub fn same_but_for_build_id(one: &[u8], other: &[u8]) -> bool {
    let without = |bytes: &[u8]| -> Option<Vec<u8>> {
        let file = object::File::parse(bytes).ok()?;
        let (at, size) = file.section_by_name(".note.gnu.build-id")?.file_range()?;
        let (at, size) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
        let mut bytes = bytes.to_vec();
        bytes.get_mut(at..at.checked_add(size)?)?.fill(0);
        Some(bytes)
    };
    without(one).is_some_and(|one| Some(one) == without(other))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns an ELF object with this build id.
    fn elf(build_id: &[u8; 4]) -> Vec<u8> {
        const NAMES: &[u8] = b"\0.shstrtab\0.note.gnu.build-id\0";
        let (names, note) = (64, 64 + NAMES.len());
        let sections = note + build_id.len();
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        for (size, value) in [
            (2, 1),
            (2, 62),
            (4, 1),
            (8, 0),
            (8, 0),
            (8, sections),
            (4, 0),
            (2, 64),
            (2, 0),
            (2, 0),
            (2, 64),
            (2, 3),
            (2, 1),
        ] {
            bytes.extend(&value.to_le_bytes()[..size]);
        }
        bytes.extend(NAMES);
        bytes.extend(build_id);
        for (name, kind, at, length) in
            [(0, 0, 0, 0), (1, 3, names, NAMES.len()), (11, 7, note, build_id.len())]
        {
            for (size, value) in
                [(4, name), (4, kind), (8, 0), (8, 0), (8, at), (8, length), (4, 0), (4, 0), (8, 1), (8, 0)]
            {
                bytes.extend(&value.to_le_bytes()[..size]);
            }
        }
        bytes
    }

    #[test]
    fn a_build_id_is_left_aside_and_nothing_else() {
        let (one, mut other) = (elf(b"1234"), elf(b"5678"));
        assert_eq!(FileContents::of(&one).section(".note.gnu.build-id"), Some(&b"1234"[..]));
        assert!(same_but_for_build_id(&one, &other));
        other[24] = 1;
        assert!(!same_but_for_build_id(&one, &other));
        assert!(!same_but_for_build_id(b"", b""), "nothing is known of such files");
    }

    proptest! {
        #[test]
        fn damaged_objects_are_no_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..9),
            end in any::<prop::sample::Index>(),
        ) {
            let whole = elf(b"1234");
            let mut bytes = whole.clone();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(end.index(bytes.len() * 2));
            let contents = FileContents::of(&bytes);
            prop_assert_eq!(contents.difference(&contents), ContentDifference::default());
            let _ = same_but_for_build_id(&bytes, &whole);
        }
    }

    fn contents<'a>(sections: &[(&str, &'a [u8])], symbols: &[(&str, u64)]) -> FileContents<'a> {
        let section = |(name, data): &(&str, &'a [u8])| (((*name).to_owned(), 0), (data.len() as u64, *data));
        let symbol = |(name, size): &(&str, u64)| (((*name).to_owned(), *size, "global text".to_owned()), 1);
        FileContents {
            sections: sections.iter().map(section).collect(),
            symbols: symbols.iter().map(symbol).collect(),
        }
    }

    #[test]
    fn what_differs_is_named() {
        let lld = contents(&[(".text", b"abcd"), (".a", b"x")], &[("f", 4), ("g", 1)]);
        let ours = contents(&[(".text", b"abXXe"), (".b", b"x")], &[("f", 4), ("g", 2)]);
        let found = lld.difference(&ours);
        let named: Vec<_> =
            found.sections.iter().map(|one| (one.name.as_str(), one.differing_bytes)).collect();
        assert_eq!(named, [(".a", 0), (".b", 0), (".text", 2)]);
        assert_eq!(found.symbols_of_lld, ["g (global text, 1)"]);
        assert_eq!(found.symbols_of_distlto, ["g (global text, 2)"]);
        assert_eq!(lld.difference(&lld), ContentDifference::default());
    }
}
