//! Which inputs a line gives more than once.
//!
//! Two spellings of one path are one file. Asks only where symbolic links lead.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::line::LinePart;
use super::look::Looked;

/// What a lazy mention of a file can bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lazy {
    /// Nothing.
    Empty,
    /// The file.
    Alone,
    /// The file, which another mention loads as well.
    Canonical,
}

/// Which inputs are given more than once. A file that is loaded in any case makes every later lazy mention of it
/// empty, and of several lazy mentions only the first can be loaded; a second one would only overwrite the first
/// one's shard with a stub (LLVM names shards by path, and two spellings can be one path). A lazy mention that stands
/// before the other may be loaded as well.
pub struct Once {
    loaded: Vec<(usize, PathBuf)>,
    /// Where those lead and where they stand first, once a lazy mention asks; most lines have none.
    identities: Option<HashMap<PathBuf, usize>>,
    lazy: HashSet<PathBuf>,
}

impl Once {
    /// Of a whole line.
    pub fn of(parts: &[LinePart], looked_at: &[Looked]) -> Self {
        let loaded = parts
            .iter()
            .zip(looked_at)
            .enumerate()
            .filter_map(|(at, (part, looked))| match (part, looked) {
                (LinePart::Input(named), Looked::Module { .. }) if !named.in_lib => {
                    Some((at, named.path.clone()))
                }
                (LinePart::Input(named), Looked::Archive { .. }) if named.whole_archive => {
                    Some((at, named.path.clone()))
                }
                _ => None,
            })
            .collect();
        Self { loaded, identities: None, lazy: HashSet::new() }
    }

    /// What becomes of a lazy mention of this file, which is the part of the line with this number.
    pub fn lazy(&mut self, at: usize, path: &Path) -> Lazy {
        let loaded = &self.loaded;
        let identities = self.identities.get_or_insert_with(|| {
            // Of several places the first stays.
            loaded
                .par_iter()
                .rev()
                .map(|(at, path)| (identity(path), *at))
                .collect::<Vec<_>>()
                .into_iter()
                .collect()
        });
        let identity = identity(path);
        let loaded = identities.get(&identity).copied();
        if loaded.is_some_and(|first| first < at) || !self.lazy.insert(identity) {
            Lazy::Empty
        } else if loaded.is_some() {
            Lazy::Canonical
        } else {
            Lazy::Alone
        }
    }
}

/// One value for all spellings of a path. Not the inode: members of unlike archives may be hard links to one blob.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
