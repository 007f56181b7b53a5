//! Which inputs a line gives more than once.
//!
//! Two spellings of one path are one file. Asks only where symbolic links lead.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::line::Part;
use super::look::Looked;

/// Which inputs are given more than once. A file that is loaded in any case makes every lazy mention of it
/// empty, and of several lazy mentions only the first can be loaded; a second one would only overwrite the first
/// one's shard with a stub (LLVM names shards by path, and two spellings can be one path).
pub struct Once {
    loaded: Vec<PathBuf>,
    /// Where those lead, once a lazy mention asks; most lines have none.
    identities: Option<HashSet<PathBuf>>,
    lazy: HashSet<PathBuf>,
}

impl Once {
    /// Of a whole line.
    pub fn of(parts: &[Part], looked_at: &[Looked]) -> Self {
        let loaded = parts
            .iter()
            .zip(looked_at)
            .filter_map(|(part, looked)| match (part, looked) {
                (Part::Input(named), Looked::Module { .. }) if !named.in_lib => Some(named.path.clone()),
                (Part::Input(named), Looked::Archive { .. }) if named.whole_archive => {
                    Some(named.path.clone())
                }
                _ => None,
            })
            .collect();
        Self { loaded, identities: None, lazy: HashSet::new() }
    }

    /// Whether a lazy mention of this file can still bring something.
    pub fn takes_lazy(&mut self, path: &Path) -> bool {
        let loaded = &self.loaded;
        let loaded =
            self.identities.get_or_insert_with(|| loaded.par_iter().map(|path| identity(path)).collect());
        let identity = identity(path);
        !loaded.contains(&identity) && self.lazy.insert(identity)
    }
}

/// One value for all spellings of a path. Not the inode: members of unlike archives may be hard links to one blob.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
