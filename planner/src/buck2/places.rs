//! Positions of loaded files on a link line, and whether the link's argument file brings them.
//!
//! The final link's command repeats every word outside the argument file, the driver's additions included. A word
//! counts as the argument file's if that file holds it, so a library named in both places stays in the list. Reads
//! files only to find libraries and to parse linker scripts.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::link_command::LinkCommandError;
use crate::link_line::{Argument, parse};
use crate::linker::elf::script;
use crate::linker::elf::search::Search;
use crate::words::{Word, lossy, path_of};

/// How deep scripts may name scripts.
const MAX_DEPTH: usize = 8;
/// No script that stands for a library is longer.
const LONGEST_SCRIPT: u64 = 1 << 20;

/// A place on the link line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    /// Which word, and which file that it brings.
    pub at: (usize, usize),
    /// Whether the link's argument file brings it.
    pub given: bool,
}

/// Files by name, as the linker names them when it loads them.
#[derive(Debug, Default)]
pub struct LinePlaces {
    found: HashMap<Word, LinePlace>,
    /// The words of the line that bring files, by their place on it.
    words: HashMap<usize, Word>,
}

impl LinePlaces {
    /// The places of everything on a link line. `given` are the words of the argument file. Only where `script` says so
    /// is a file looked into as a linker script.
    pub fn of(
        line: &[Word],
        given: &HashSet<Word>,
        script: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Self, LinkCommandError> {
        let arguments = parse(line.to_vec())?;
        let mut walk = LineWalk {
            search: Search::of(&arguments),
            only_static: false,
            pushed: Vec::new(),
            script,
            places: Self::default(),
        };
        for (at, argument) in arguments.iter().enumerate() {
            match argument {
                Argument::Input(word) => {
                    walk.places.words.insert(at, word.clone());
                    walk.file(word, at, given.contains(word));
                }
                Argument::Library(name) => {
                    let word = format!("-l{name}").into_bytes();
                    let given = given.contains(&word);
                    walk.places.words.insert(at, word);
                    walk.library(name, at, given, 0);
                }
                Argument::Option(option) => match (option.name.as_str(), &option.value) {
                    ("Bstatic", _) => walk.only_static = true,
                    ("Bdynamic", _) => walk.only_static = false,
                    ("push-state", _) => walk.pushed.push(walk.only_static),
                    ("pop-state", _) => walk.only_static = walk.pushed.pop().unwrap_or(walk.only_static),
                    // ld64's options take values as words of their own, which for ELF are inputs, and the other way
                    // round: a value may be a file.
                    (_, Some(value)) if option.name != "output" => {
                        walk.file(value.as_bytes(), at, given.contains(value.as_bytes()));
                    }
                    _ => {}
                },
            }
        }
        Ok(walk.places)
    }

    /// Whether a name stands there.
    pub fn has(&self, name: &[u8]) -> bool {
        self.found.contains_key(name)
    }

    /// Returns whether the final link's command itself brings a file: one outside the argument file, or one named by a
    /// flag. `flags` are the words of all flags.
    pub fn brings(&self, file: &[u8], flags: &HashSet<Word>) -> bool {
        self.find(file).is_some_and(|(_, place)| {
            !place.given || self.words.get(&place.at.0).is_some_and(|word| flags.contains(word))
        })
    }

    /// Returns the name and place of a file on the line; for an archive member, those of its archive.
    pub fn find<'f>(&self, traced: &'f [u8]) -> Option<(&'f [u8], LinePlace)> {
        if let Some(&place) = self.found.get(traced) {
            return Some((traced, place));
        }
        archives(traced).find_map(|archive| Some((archive, *self.found.get(archive)?)))
    }
}

/// Returns the candidate archives of `archive(member)`: names may hold parentheses.
pub fn archives(traced: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_member = traced.ends_with(b")");
    let opening =
        move |(at, &byte): (usize, &u8)| (is_member && byte == b'(' && at > 0).then(|| &traced[..at]);
    traced.iter().enumerate().filter_map(opening)
}

struct LineWalk<'a> {
    search: Search,
    only_static: bool,
    pushed: Vec<bool>,
    script: &'a dyn Fn(&[u8]) -> bool,
    places: LinePlaces,
}

impl LineWalk<'_> {
    fn file(&mut self, name: &[u8], at: usize, given: bool) {
        self.bring(name, at, given, 0);
    }

    fn library(&mut self, name: &str, at: usize, given: bool, depth: usize) {
        if let Some(file) = self.search.library(name, self.only_static).file {
            self.bring(file.as_os_str().as_bytes(), at, given, depth);
        }
    }

    fn bring(&mut self, name: &[u8], at: usize, given: bool, depth: usize) {
        let place = LinePlace { at: (at, self.places.found.len()), given };
        match self.places.found.get_mut(name) {
            Some(earlier) if earlier.given || !given => return,
            Some(earlier) => *earlier = place,
            None => {
                self.places.found.insert(name.to_vec(), place);
            }
        }
        if depth == MAX_DEPTH || !(self.script)(name) {
            return;
        }
        let script = path_of(name);
        let Some(text) = script_text(&script) else { return };
        for input in script::inputs(&text) {
            match input.strip_prefix("-l") {
                Some(library) => self.library(library, at, given, depth + 1),
                None => {
                    let file = self.named_by(&script, &input);
                    self.bring(file.as_os_str().as_bytes(), at, given, depth + 1);
                }
            }
        }
    }

    /// A file that a script names: beside the script, in the working directory, or found like a library.
    fn named_by(&self, script: &Path, name: &str) -> PathBuf {
        if name.starts_with('/') {
            return PathBuf::from(name);
        }
        let beside = script.parent().unwrap_or(Path::new("")).join(name);
        if beside.exists() {
            return beside;
        }
        let here = PathBuf::from(name);
        if here.exists() {
            return here;
        }
        self.search.library(&format!(":{name}"), false).file.unwrap_or(here)
    }
}

/// A file's text, if it is text.
fn script_text(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    let mut file = File::open(path).ok()?.take(LONGEST_SCRIPT);
    let mut first = [0; 4];
    file.read_exact(&mut first).ok()?;
    let binary = [&b"\x7fELF"[..], b"!<ar", b"!<th", b"BC\xc0\xde", b"\xde\xc0\x17\x0b"];
    if binary.contains(&&first[..]) {
        return None;
    }
    text.extend_from_slice(&first);
    file.read_to_end(&mut text).ok()?;
    (!text.contains(&0)).then(|| lossy(&text))
}

/// The words of an argument file in the linker's terms: out of `-Wl,` lists, `-l NAME` in one.
pub fn linker_words(words: impl IntoIterator<Item = Word>) -> HashSet<Word> {
    let mut found = HashSet::new();
    let mut library = false;
    for word in words {
        let parts = match word.strip_prefix(b"-Wl,") {
            Some(list) => list.split(|&byte| byte == b',').map(<[u8]>::to_vec).collect(),
            None => vec![word],
        };
        for part in parts {
            if library {
                found.insert([b"-l", &part[..]].concat());
            }
            library = part == b"-l";
            found.insert(part);
        }
    }
    found
}
