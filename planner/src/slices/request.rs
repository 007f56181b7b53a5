//! The wanted slices: a text of one record a line, its fields separated by tabs.
//!
//! A build system writes it before it knows the results of the thin link. Does not depend on the content of slices.

use camino::Utf8PathBuf;

use super::{SliceError, bucket};

/// The wanted slices and reports.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SliceRequest {
    /// A slice for each of these objects.
    pub objects: Vec<WantedObject>,
    /// Slices that all other modules are spread over, by name.
    pub trees: Vec<WantedTree>,
    /// Directories removed from names of other modules, so that the names are the same in every configuration.
    pub roots: Vec<String>,
    /// Where the action graph of the whole link goes.
    pub graph: Option<Utf8PathBuf>,
    /// Where a summary of the link goes.
    pub report: Option<Utf8PathBuf>,
    /// Where the explanation goes: each module's size and imports.
    pub explain: Option<Utf8PathBuf>,
}

/// An object that is known before the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedObject {
    /// The object's name for people.
    pub label: String,
    /// The object, as the link line names it.
    pub file: Utf8PathBuf,
    /// The slice's directory.
    pub slice: Utf8PathBuf,
    /// Where the native object will be for the final link.
    pub native: Utf8PathBuf,
}

/// A slice of modules that are not known before the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedTree {
    /// The slice's directory.
    pub slice: Utf8PathBuf,
    /// The directory where native objects will be for the final link.
    pub native: Utf8PathBuf,
}

impl SliceRequest {
    /// Reads the text. Empty lines say nothing.
    pub fn read(text: &str) -> Result<Self, SliceError> {
        let mut request = Self::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let fields: Vec<&str> = line.split('\t').collect();
            match *fields.as_slice() {
                ["object", label, file, slice, native] => request.objects.push(WantedObject {
                    label: label.to_owned(),
                    file: file.into(),
                    slice: slice.into(),
                    native: native.into(),
                }),
                ["rest", slice, native] => {
                    request.trees.push(WantedTree { slice: slice.into(), native: native.into() });
                }
                ["root", directory] => request.roots.push(format!("{}/", directory.trim_end_matches('/'))),
                ["graph", file] => request.graph = Some(file.into()),
                ["report", file] => request.report = Some(file.into()),
                ["explain", file] => request.explain = Some(file.into()),
                _ => return Err(SliceError::Line { number: at + 1, found: line.to_owned() }),
            }
        }
        Ok(request)
    }

    /// Returns the name of a module that is not known before the link.
    pub(super) fn label<'a>(&self, name: &'a str) -> &'a str {
        self.roots.iter().find_map(|root| name.strip_prefix(root.as_str())).unwrap_or(name)
    }

    /// Which of the trees has the modules of this name; `None` where there are none.
    pub(super) fn tree_of(&self, name: &str) -> Option<usize> {
        bucket(name, self.trees.len())
    }
}
