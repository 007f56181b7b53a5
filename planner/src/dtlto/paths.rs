//! A table of the paths in a job file, each once, as they are spelled there.
//!
//! A job file names each imported module in hundreds of jobs; the table borrows from the file's bytes. Does not depend
//! on the purpose of the files.

use std::borrow::Cow;

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexSet;

use super::fields::PathText;
use crate::graph::FileId;

/// A path's place in a [`Paths`].
pub(super) type PathId = u32;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Paths<'a>(IndexSet<Cow<'a, str>>);

impl<'a> Paths<'a> {
    pub fn id(&mut self, path: Cow<'a, str>) -> PathId {
        let index = match self.0.get_index_of(&path) {
            Some(index) => index,
            None => self.0.insert_full(path).0,
        };
        u32::try_from(index).expect("a text of over four billion paths does not fit in memory")
    }

    pub fn ids(&mut self, paths: Vec<PathText<'a>>) -> Vec<PathId> {
        paths.into_iter().map(|PathText(path)| self.id(path)).collect()
    }

    pub fn text(&self, path: PathId) -> &str {
        &self.0[path as usize]
    }

    pub fn path(&self, path: PathId) -> &Utf8Path {
        Utf8Path::new(self.text(path))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The table of files of an action graph, and for each path its file. `a//b` and `a/b` are one file of a graph,
    /// as they are for the system, but two paths here, since a module is known by its spelling.
    pub fn files(&self) -> (Vec<Utf8PathBuf>, Vec<FileId>) {
        let mut files: IndexSet<&Utf8Path> = IndexSet::with_capacity(self.len());
        let ids = self.0.iter().map(|path| {
            let index = files.insert_full(Utf8Path::new(path.as_ref())).0;
            // There are at most as many files as paths, and the number of paths fits.
            FileId(u32::try_from(index).unwrap_or(u32::MAX))
        });
        let ids = ids.collect();
        (files.into_iter().map(Utf8Path::to_owned).collect(), ids)
    }
}
