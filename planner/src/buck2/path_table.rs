//! Paths to numbers, for many look-ups at once: first all hashes, then all entries, then all comparisons.
//!
//! A look-up waits for memory, not for the processor. Done one kind of step at a time, the waits of a whole list
//! overlap. Knows nothing of what the numbers mean.

use std::hash::BuildHasher;
use std::hint::black_box;

use hashbrown::{DefaultHashBuilder, HashTable};

/// What stands for "no number".
const NONE: u32 = u32::MAX;

/// A table of paths.
#[derive(Debug, Default)]
pub struct PathTable<'p> {
    hasher: DefaultHashBuilder,
    /// Upper half of a path's hash, and its number in `paths`.
    entries: HashTable<(u32, u32)>,
    paths: Vec<(&'p [u8], usize)>,
}

/// Buffers for looking up one list after another.
#[derive(Debug, Default)]
pub struct Lookup {
    lines: Vec<(usize, usize, u64)>,
    found: Vec<u32>,
}

impl<'p> PathTable<'p> {
    /// An empty table with room.
    pub fn with_room(paths: usize) -> Self {
        Self { entries: HashTable::with_capacity(paths), paths: Vec::with_capacity(paths), ..Self::default() }
    }

    /// Gives a path a value; returns the value it had.
    pub fn insert(&mut self, path: &'p [u8], value: usize) -> Option<usize> {
        let hash = self.hasher.hash_one(path);
        let paths = &mut self.paths;
        let same = |&(tag, at): &(u32, u32)| tag == tag_of(hash) && paths[at as usize].0 == path;
        if let Some(&(_, at)) = self.entries.find(hash, same) {
            return Some(std::mem::replace(&mut paths[at as usize].1, value));
        }
        // Beyond that the table holds no path; such a link would need hundreds of gigabytes for its meta file.
        let at = u32::try_from(paths.len()).ok().filter(|&at| at != NONE)?;
        paths.push((path, value));
        let hasher = &self.hasher;
        self.entries
            .insert_unique(hash, (tag_of(hash), at), |&(_, at)| hasher.hash_one(paths[at as usize].0));
        None
    }

    /// The value of a path.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        let hash = self.hasher.hash_one(path);
        let same = |&(tag, at): &(u32, u32)| tag == tag_of(hash) && self.paths[at as usize].0 == path;
        self.entries.find(hash, same).map(|&(_, at)| self.paths[at as usize].1)
    }

    /// Calls `each` with every line of a text that is not empty, where it ends, and the line's value.
    pub fn find_lines<E>(
        &self,
        text: &[u8],
        lookup: &mut Lookup,
        mut each: impl FnMut(usize, Option<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Lookup { lines, found } = lookup;
        lines.clear();
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
            if end > begin {
                lines.push((begin, end, self.hasher.hash_one(&text[begin..end])));
            }
            begin = end + 1;
        }
        found.clear();
        found.extend(lines.iter().map(|&(_, _, hash)| {
            self.entries.find(hash, |&(tag, _)| tag == tag_of(hash)).map_or(NONE, |&(_, at)| at)
        }));
        // Comparing waits for one path after another; a look at each beforehand does not.
        black_box(found.iter().fold(0, |seen, &at| seen ^ self.paths.get(at as usize).map_or(0, ends)));
        for (&(begin, end, _), &at) in lines.iter().zip(&*found) {
            let line = &text[begin..end];
            let value = match self.paths.get(at as usize) {
                Some(&(path, value)) if path == line => Some(value),
                // Another path with half of the hash.
                Some(_) => self.find(line),
                None => None,
            };
            each(end, value)?;
        }
        Ok(())
    }
}

/// Both ends of a path and its middle: with these, all of it has come from memory, for paths of usual length.
fn ends(&(path, _): &(&[u8], usize)) -> u8 {
    let at = |at: usize| path.get(at).copied().unwrap_or_default();
    at(0) ^ at(path.len() / 2) ^ at(path.len().wrapping_sub(1))
}

fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn the_table_is_a_map(paths in prop::collection::vec("[ab/]{0,4}", 0..60), lines in prop::collection::vec("[ab/]{0,4}", 0..60)) {
            let (mut table, mut map) = (PathTable::with_room(2), HashMap::new());
            for (value, path) in paths.iter().enumerate() {
                prop_assert_eq!(table.insert(path.as_bytes(), value), map.insert(path.as_str(), value));
            }
            for line in &lines {
                prop_assert_eq!(table.find(line.as_bytes()), map.get(line.as_str()).copied());
            }
            let text = lines.join("\n");
            let mut found = Vec::new();
            table
                .find_lines(text.as_bytes(), &mut Lookup::default(), |end, value| {
                    found.push((end, value));
                    Ok::<_, ()>(())
                })
                .expect("no error");
            let mut end = 0;
            let expected: Vec<_> = text
                .split('\n')
                .map(|line| {
                    end += line.len() + 1;
                    (end - 1, line)
                })
                .filter(|(_, line)| !line.is_empty())
                .map(|(end, line)| (end, map.get(line).copied()))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
