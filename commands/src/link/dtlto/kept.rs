//! Native objects that earlier links left in the state directory, found again by what they were compiled from.
//!
//! lld names members of archives by its process number, so files do not tell whether a backend is out of date: the key of
//! its content does (see `keys`). The record is a line of JSON for each object, appended as backends end, so that a
//! killed link keeps what was finished; the last line of a key counts. An object counts as long as it has the content
//! with which it was recorded.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;

use camino::Utf8Path;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::shard::Cost;
use distlto_planner::state::Place;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{JsonLines, line};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::parts::Parts;

/// The record's first line.
const HEADER: &str = "distlto kept objects 3\n";

/// One object that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptObject {
    /// What it was compiled from.
    pub key: String,
    /// What people call the module.
    pub label: String,
    /// The object, then split debug information, each with its content.
    pub files: Vec<(String, String)>,
    /// What it takes to compile, which follows from the key, in IR instructions: the module's own, then imported ones.
    instructions: (u64, u64),
    /// The key's parts, for who asks what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
}

/// The objects of one state directory, which is held.
#[derive(Debug)]
pub struct Kept {
    known: HashMap<String, KeptObject>,
    /// The key of each module's last object, by label.
    last: HashMap<String, String>,
    /// The contents of modules, once they are asked for.
    modules: OnceLock<HashSet<String>>,
}

impl Kept {
    /// Reads the record. A damaged line costs one compilation.
    pub fn load(state: &str) -> Self {
        let (mut known, mut last) = (HashMap::new(), HashMap::new());
        for object in file(state).read::<KeptObject>() {
            last.insert(object.label.clone(), object.key.clone());
            known.insert(object.key.clone(), object);
        }
        Self { known, last, modules: OnceLock::new() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What is recorded under a key, whatever has become of it.
    pub fn known(&self, key: &str) -> Option<&KeptObject> {
        self.known.get(key)
    }

    /// Whether anything was compiled from a module of this content ([`Parts::module`]), whatever it was called.
    pub fn has_module(&self, content: &str) -> bool {
        let contents =
            || self.known.values().filter_map(|object| Some(object.parts.as_ref()?.module().to_owned()));
        self.modules.get_or_init(|| contents().collect()).contains(content)
    }

    /// What is recorded last of a module, whatever has become of it.
    pub fn last(&self, label: &str) -> Option<&KeptObject> {
        self.known.get(self.last.get(label)?)
    }

    /// The object of a key, if it is as it was recorded and names these files of split debug information.
    pub fn find(&self, key: &str, digests: &FileDigests) -> Option<&KeptObject> {
        let object = self.known.get(key)?;
        (!object.files.is_empty() && digests.hold(&object.files)).then_some(object)
    }
}

/// For recording objects as they are made, with [`JsonLines::append`]. Fails where they cannot be.
pub fn appender(state: &str) -> Result<JsonLines, IoError> {
    let mut file = file(state);
    file.open()?;
    Ok(file)
}

/// Keeps the record of these objects alone, those of the link that has ended well.
pub fn settle(state: &str, objects: &[KeptObject]) -> Result<(), IoError> {
    let lines: Vec<String> = objects.par_iter().with_min_len(64).map(line).collect();
    file(state).replace(&lines)
}

fn file(state: &str) -> JsonLines {
    JsonLines::new(&Place::KeptObjects.path(state), HEADER)
}

impl KeptObject {
    /// Of files that are in place.
    pub fn of<'f>(
        key: &Digest,
        parts: Option<&Parts>,
        label: &str,
        cost: Cost,
        files: impl Iterator<Item = &'f Utf8Path>,
        digests: &FileDigests,
    ) -> Result<Self, IoError> {
        let files = digests.written(files)?;
        let instructions = (cost.own_instructions, cost.imported_instructions);
        Ok(Self { key: key.hex(), label: label.to_owned(), files, instructions, parts: parts.cloned() })
    }

    /// What compiling it takes.
    pub fn cost(&self) -> Cost {
        let (own_instructions, imported_instructions) = self.instructions;
        Cost { own_instructions, imported_instructions }
    }

    /// The native object.
    pub fn path(&self) -> &Path {
        // `find` and `of` give objects that have files.
        Path::new(&self.files[0].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_key_as_long_as_they_are_what_they_were() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().to_str().expect("UTF-8");
        let path = format!("{state}/a.o");
        std::fs::write(&path, "object").expect("written");
        let digests = FileDigests::new(Path::new(""));
        let key = Digest::of(b"key");
        let object =
            KeptObject::of(&key, None, "a", Cost::default(), [Utf8Path::new(&path)].into_iter(), &digests)
                .expect("there");
        appender(state).expect("opens").append(&object).expect("written");
        assert_eq!(Kept::load(state).find(&key.hex(), &digests), Some(&object));
        assert_eq!(Kept::load(state).find(&Digest::of(b"other").hex(), &digests), None);
        settle(state, std::slice::from_ref(&object)).expect("written");
        assert_eq!(Kept::load(state).known.len(), 1);
        std::fs::write(&path, "another").expect("written");
        assert_eq!(Kept::load(state).find(&key.hex(), &FileDigests::new(Path::new(""))), None);
    }
}
