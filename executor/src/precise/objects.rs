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
const HEADER: &str = "distlto precise keys 2\n";
/// So many lines more than twice the objects before the file is written anew.
const SLACK: usize = 1000;
/// The most compilations between two tries.
const PATIENCE: u32 = 7;

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Of the module, the compiler and what it is told.
    pub stem: String,
    /// The precise key; `None` where no import step was performed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The object, then what else was written, each with its content.
    outputs: Vec<(String, String)>,
    /// Steps in a row after which the backend had to run all the same,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub misses: u32,
    /// and how often it runs without one before the next.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait: u32,
    /// Whether the last step that could be compared spared the backend.
    #[serde(default, skip_serializing_if = "is_false")]
    spared: bool,
}

/// An object that is in its place.
#[derive(Debug)]
pub struct Made<'a> {
    /// As in [`Known`].
    pub stem: String,
    /// As in [`Known`].
    pub key: Option<String>,
    /// As the command names them, the object first.
    pub outputs: &'a [&'a str],
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

    /// Of how many objects the last step could be compared, and how many of those it spared.
    pub fn outcomes(&self) -> (u32, u32) {
        self.known.values().fold((0, 0), |(tried, spared), known| {
            let is_tried = known.spared || known.misses > 0;
            (tried + u32::from(is_tried), spared + u32::from(known.spared))
        })
    }

    /// Records an object. `before` is what was known of the one before it when its import step was performed.
    pub fn made(
        &mut self,
        made: &Made<'_>,
        before: Option<&Known>,
        digests: &FileDigests,
    ) -> Result<(), IoError> {
        let Made { stem, key, outputs } = made;
        let Some(&name) = outputs.first() else { return Ok(()) };
        let outputs = digests.written(outputs.iter().map(Utf8Path::new))?;
        let same_stem = self.known.get(name).filter(|known| known.stem == *stem);
        let (misses, wait, spared) = match (before, key) {
            // There was a key to compare with, and this one is another.
            (Some(Known { key: Some(old), misses, .. }), Some(new)) if old != new => {
                (misses + 1, ((1 << (*misses).min(8)) - 1).min(PATIENCE), false)
            }
            (Some(Known { key: Some(_), .. }), _) => (0, 0, true),
            (Some(known), _) => (known.misses, 0, known.spared),
            (None, _) => same_stem
                .map_or((0, 0, false), |known| (known.misses, known.wait.saturating_sub(1), known.spared)),
        };
        let known = Known { stem: stem.clone(), key: key.clone(), outputs, misses, wait, spared };
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
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
            let made = Made { stem: String::new(), key: Some(link.to_string()), outputs: &[object] };
            objects.made(&made, None, &digests).expect("recorded");
        }
        assert!(std::fs::read_to_string(&place).expect("a record").lines().count() <= SLACK + 3);
        let known = Objects::load(&place).known(object, &digests).expect("an object");
        assert_eq!(known.key, Some((2 * SLACK - 1).to_string()));
    }
}
