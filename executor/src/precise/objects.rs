//! Which object at its place was made under which precise key: lines of JSON in the state, the last one of an object counts.
//!
//! An object counts as long as it and what belongs to it hold what they held when they were recorded. A damaged line costs one
//! compilation. Knows nothing of how keys come about.

use std::collections::HashMap;
use std::path::Path;

use camino::Utf8Path;
use distlto_planner::digests::FileDigests;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{JsonLines, line};
use serde::{Deserialize, Serialize};

/// The record's first line.
const HEADER: &str = "distlto precise keys 3\n";
/// So many lines more than twice the objects before the file is written anew.
const SLACK: usize = 1000;

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Of the module, the compiler and what it is told.
    pub stem: String,
    /// The precise key.
    pub key: String,
    /// The object, then what else was written, each with its content.
    outputs: Vec<(String, String)>,
}

/// The objects of one state directory, which is held.
#[derive(Debug)]
pub struct Objects {
    file: JsonLines,
    /// Lines of it whose record could be read.
    lines: usize,
    known: HashMap<String, Known>,
}

impl Objects {
    /// Reads the record.
    pub fn load(place: &Path) -> Self {
        let file = JsonLines::new(place, HEADER);
        let records = file.read::<Known>();
        let lines = records.len();
        let named = |known: Known| Some((known.outputs.first()?.0.clone(), known));
        Self { file, lines, known: records.into_iter().filter_map(named).collect() }
    }

    /// What is known of the object at a place, if it is as it was left.
    pub fn known(&self, object: &str, digests: &FileDigests) -> Option<Known> {
        let known = self.known.get(object)?;
        digests.hold(&known.outputs).then(|| known.clone())
    }

    /// Records an object that is in its place. `outputs` are as the command names them, the object first.
    pub fn made(
        &mut self,
        stem: String,
        key: String,
        outputs: &[&str],
        digests: &FileDigests,
    ) -> Result<(), IoError> {
        let Some(&name) = outputs.first() else { return Ok(()) };
        let known = Known { stem, key, outputs: digests.written(outputs.iter().map(Utf8Path::new))? };
        if self.known.get(name) != Some(&known) {
            self.file.append(&known)?;
            self.lines += 1;
            self.known.insert(name.to_owned(), known);
            self.shorten()?;
        }
        Ok(())
    }

    /// Leaves out lines that later ones replace, once they are many.
    fn shorten(&mut self) -> Result<(), IoError> {
        if self.lines > SLACK + 2 * self.known.len() {
            self.file.replace(&self.known.values().map(line).collect::<Vec<_>>())?;
            self.lines = self.known.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_many_links_is_shortened_and_goes_on() {
        let folder = tempfile::tempdir().expect("a directory");
        let (place, object) = (folder.path().join("precise-keys"), folder.path().join("object"));
        std::fs::write(&object, "code").expect("written");
        let object = object.to_str().expect("UTF-8");
        let digests = FileDigests::new(folder.path());
        let mut objects = Objects::load(&place);
        for link in 0..2 * SLACK {
            objects.made(String::new(), link.to_string(), &[object], &digests).expect("recorded");
        }
        assert!(std::fs::read_to_string(&place).expect("a record").lines().count() <= SLACK + 3);
        let known = Objects::load(&place).known(object, &digests).expect("an object");
        assert_eq!(known.key, (2 * SLACK - 1).to_string());
    }
}
