//! What a link read: files, places that hold nothing, programs with the libraries that they load.
//!
//! Filled while a link runs, each file with its state when it was told of, so that one which changes under the link is
//! noticed by `unchanged`. What cannot be known is a doubt, and with a doubt nothing is recorded. Knows nothing of how a
//! link is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use distlto_planner::dependency_file::DependencyFile;
use distlto_planner::front::in_search_path;
use distlto_planner::words::{Word, path_of};
use rayon::prelude::*;

use super::file_state::FileState;

/// What a link read, as far as it has been told.
#[derive(Debug, Default)]
pub struct Reads {
    own: PathBuf,
    files: BTreeMap<PathBuf, FileState>,
    absent: BTreeSet<PathBuf>,
    environment: bool,
    doubt: Option<String>,
}

/// The files that a link wrote.
#[derive(Debug, Clone)]
pub struct Outputs {
    /// The program first.
    files: Vec<PathBuf>,
}

impl Outputs {
    /// The program alone.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { files: vec![program.into()] }
    }

    /// A file beside the program: a map, a dependency file.
    pub fn file(&mut self, path: impl Into<PathBuf>) {
        self.files.push(path.into());
    }

    /// All of them, the program first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

impl Reads {
    /// Nothing so far. What lies in the link's own state directory is not read by it, but for symbolic links to what is.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { own: state.into(), ..Self::default() }
    }

    /// A file, in the state that it has at this moment. One that was told of before stays in the state of that time.
    pub fn file(&mut self, path: impl Into<PathBuf>) {
        self.files([path.into()]);
    }

    /// Files, looked at at once.
    pub fn files(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        let mut new: Vec<PathBuf> = paths.into_iter().filter(|path| self.is_new(path)).collect();
        new.sort_unstable();
        new.dedup();
        let state = |path: PathBuf| FileState::of(&path).ok_or(path);
        let states: Vec<_> = new.into_par_iter().with_min_len(64).map(state).collect();
        for state in states {
            match state {
                Ok(state) => {
                    self.files.insert(state.path().to_owned(), state);
                }
                Err(path) => self.doubt(format!("{} cannot be looked at", path.display())),
            }
        }
    }

    fn is_new(&self, path: &Path) -> bool {
        let own = path.starts_with(&self.own) && !path.is_symlink();
        !own && !self.files.contains_key(path)
    }

    /// A place where something was looked for in vain.
    pub fn absent(&mut self, path: impl Into<PathBuf>) {
        self.absent.insert(path.into());
    }

    /// A program that ran, by path or as a name to be found in `PATH`, and what it loads.
    pub fn program(&mut self, program: &Word) {
        let path = path_of(program);
        let found = if program.contains(&b'/') { Some(path) } else { in_search_path(&path) };
        match found {
            Some(path) => self.file(path),
            None => self.doubt(format!("{} cannot be found", path_of(program).display())),
        }
    }

    /// The files of a dependency file that the linker has written.
    pub fn dependency_file(&mut self, bytes: &[u8]) {
        match DependencyFile::parse(bytes) {
            Some(read) => self.files(read.files.iter().map(|file| path_of(file))),
            None => self.doubt("the linker's dependency file cannot be read"),
        }
    }

    /// Something that the link may have read and that cannot be compared: nothing is recorded.
    pub fn doubt(&mut self, why: impl Into<String>) {
        self.doubt.get_or_insert_with(|| why.into());
    }

    /// The states that a later run compares with, and the places that have to stay empty. `None` when a file changed
    /// after it was told of, or so shortly before the link `started` that a change would not show.
    pub(super) fn settled(&self, started: SystemTime) -> Option<(Vec<FileState>, Vec<PathBuf>)> {
        let files: Vec<&FileState> = self.files.values().collect();
        let still = files.par_iter().with_min_len(64).all(|file| file.is_older_than(started) && file.holds());
        let empty = self.absent.iter().all(|path| !path.exists());
        let settled = self.doubt.is_none() && still && empty;
        settled.then(|| (files.into_iter().cloned().collect(), self.absent.iter().cloned().collect()))
    }

    /// Whether a program ran whose behaviour may depend on all of the environment.
    pub(super) fn environment_matters(&self) -> bool {
        self.environment
    }
}
