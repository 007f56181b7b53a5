//! Paths to numbers, for tens of millions of look-ups: by hash and length alone, all hashes of a list first.
//!
//! A look-up waits for memory, not for the processor, and comparing a path waits longest. Paths in the table are told
//! apart when it is made; another one is taken for one of them once in 2^64 times the table's size, and the seed differs
//! from run to run. Then a plan names one import too many. Knows nothing of what the numbers mean.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A table of paths.
#[derive(Debug, Default)]
pub struct PathTable {
    hasher: DefaultHashBuilder,
    entries: HashTable<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    length: u32,
    value: u32,
}

/// Buffers for looking up one list after another.
#[derive(Debug, Default)]
pub struct Lookup {
    lines: Vec<Line>,
    values: Vec<Option<u32>>,
}

#[derive(Debug)]
struct Line {
    hash: u64,
    length: u32,
    end: usize,
}

impl PathTable {
    /// Makes a table of paths and their values; of several values of one path the last counts.
    pub fn of(paths: &[(&[u8], u32)]) -> Self {
        loop {
            let table = Self { hasher: DefaultHashBuilder::default(), entries: HashTable::new() };
            // Two paths of one hash: another seed tells them apart.
            if let Some(table) = table.filled(paths) {
                return table;
            }
        }
    }

    /// `None` where two paths have one hash.
    fn filled(mut self, paths: &[(&[u8], u32)]) -> Option<Self> {
        self.entries.reserve(paths.len(), |entry| entry.hash);
        // While the table is filled, an entry's value is where its path stands in `paths`.
        for (at, &(path, _)) in (0_u32..).zip(paths) {
            let hash = self.hasher.hash_one(path);
            let entry = Entry { hash, length: length_of(path.len()), value: at };
            match self.entries.find_mut(hash, |entry| entry.hash == hash) {
                Some(earlier) if paths[earlier.value as usize].0 == path => *earlier = entry,
                Some(_) => return None,
                None => {
                    self.entries.insert_unique(hash, entry, |entry| entry.hash);
                }
            }
        }
        for entry in self.entries.iter_mut() {
            entry.value = paths[entry.value as usize].1;
        }
        Some(self)
    }

    /// The value of a path.
    pub fn find(&self, path: &[u8]) -> Option<u32> {
        self.value(self.hasher.hash_one(path), length_of(path.len()))
    }

    fn value(&self, hash: u64, length: u32) -> Option<u32> {
        let same = |entry: &Entry| entry.hash == hash && entry.length == length;
        self.entries.find(hash, same).map(|entry| entry.value)
    }

    /// Calls `each` with every line of a text that is not empty: where it ends, and its value.
    pub fn find_lines<E>(
        &self,
        text: &[u8],
        lookup: &mut Lookup,
        mut each: impl FnMut(usize, Option<u32>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Lookup { lines, values } = lookup;
        lines.clear();
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
            if end > begin {
                let hash = self.hasher.hash_one(&text[begin..end]);
                lines.push(Line { hash, length: length_of(end - begin), end });
            }
            begin = end + 1;
        }
        values.clear();
        values.extend(lines.iter().map(|line| self.value(line.hash, line.length)));
        lines.iter().zip(&*values).try_for_each(|(line, &value)| each(line.end, value))
    }
}

/// A length as it is compared: no path is longer than the 4 kilobytes that a system takes.
fn length_of(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn the_table_is_a_map(
            paths in prop::collection::vec("[ab/]{0,4}", 0..60),
            lines in prop::collection::vec("[ab/]{0,4}", 0..60),
        ) {
            let pairs: Vec<(&[u8], u32)> = paths.iter().map(|path| path.as_bytes()).zip(7..).collect();
            let table = PathTable::of(&pairs);
            let map: HashMap<&[u8], u32> = pairs.iter().copied().collect();
            for line in &lines {
                prop_assert_eq!(table.find(line.as_bytes()), map.get(line.as_bytes()).copied());
            }
            let text = lines.join("\n");
            let mut found = Vec::new();
            let each = |end, value| {
                found.push((end, value));
                Ok::<_, ()>(())
            };
            table.find_lines(text.as_bytes(), &mut Lookup::default(), each).expect("no error");
            let mut begin = 0;
            let mut expected = Vec::new();
            for line in text.split('\n') {
                if !line.is_empty() {
                    expected.push((begin + line.len(), map.get(line.as_bytes()).copied()));
                }
                begin += line.len() + 1;
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn paths_that_differ_in_one_byte_are_told_apart() {
        let names: Vec<String> = (0..200_000).map(|number| format!("d/{number:07}/x.cpp.o")).collect();
        let pairs: Vec<(&[u8], u32)> = names.iter().map(|name| name.as_bytes()).zip(0..).collect();
        let table = PathTable::of(&pairs);
        assert!(pairs.iter().all(|&(path, value)| table.find(path) == Some(value)));
        assert!(
            (200_000..400_000)
                .all(|number| table.find(format!("d/{number:07}/x.cpp.o").as_bytes()).is_none())
        );
    }
}
