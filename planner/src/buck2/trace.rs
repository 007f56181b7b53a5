//! `index.full` from a linker's trace: every file that it has loaded, in the order of loading.
//!
//! Pure but for asking whether a traced name is a file. lld names each file on standard output as it loads it, a lazy
//! one when it is extracted, members as `archive(member)`. The list has bitcode files below the index directory, and
//! archives once and not by member. The final link takes files as they are listed, none lazy: in the order of the link
//! line, another weak definition could win than in the thin link.

use std::collections::HashSet;

use super::index_directory::IndexDirectory;
use super::listing::lines;
use super::places::{LinePlaces, archives};
use crate::words::{Word, path_of};

/// A trace in two parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Files in the order of loading, each once; archives for their members.
    pub loaded: Vec<Word>,
    /// Everything else on standard output.
    pub messages: Vec<u8>,
}

impl Trace {
    /// Reads a linker's standard output. `known` says whether a name is on the link line.
    pub fn read(stdout: &[u8], known: &dyn Fn(&[u8]) -> bool) -> Self {
        let mut trace = Self::default();
        let mut seen: HashSet<&[u8]> = HashSet::new();
        let is_file = |name: &[u8]| path_of(name).is_file();
        for line in stdout.split_inclusive(|&byte| byte == b'\n') {
            let name = line.strip_suffix(b"\n").unwrap_or(line);
            let is = |test: &dyn Fn(&[u8]) -> bool| {
                if test(name) { Some(name) } else { archives(name).find(|archive| test(archive)) }
            };
            match is(known).or_else(|| is(&is_file)) {
                Some(file) => {
                    if seen.insert(file) {
                        trace.loaded.push(file.to_vec());
                    }
                }
                None => trace.messages.extend_from_slice(line),
            }
        }
        trace
    }

    /// The text of `index.full`; `index` is the linker's list of bitcode files.
    pub fn full_index(&self, places: &LinePlaces, index: &[u8], directory: &IndexDirectory) -> Vec<u8> {
        let bitcode: HashSet<&[u8]> = lines(index).filter_map(|line| directory.module_of(line)).collect();
        // A file that is not on the line, because a note in an object asked for it, goes with the one before it.
        let mut given = true;
        let mut kept: Vec<&[u8]> = Vec::with_capacity(self.loaded.len());
        for file in &self.loaded {
            given = places.find(file).map_or(given, |(_, place)| place.given);
            if given {
                kept.push(file);
            }
        }
        let mut text = Vec::new();
        for file in kept {
            if bitcode.contains(file) {
                text.extend_from_slice(directory.path().as_bytes());
                text.push(b'/');
            }
            text.extend_from_slice(file);
            text.push(b'\n');
        }
        text
    }

    /// Which files of the link line may be linker scripts: those that were not loaded themselves, objects apart.
    pub fn may_be_script(&self) -> impl Fn(&[u8]) -> bool + '_ {
        let loaded: HashSet<&[u8]> = self.loaded.iter().map(Vec::as_slice).collect();
        move |name: &[u8]| !name.ends_with(b".o") && !loaded.contains(name)
    }
}
