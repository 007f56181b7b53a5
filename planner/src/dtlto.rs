//! The front end for DTLTO: a job file that lld wrote becomes an action graph.
//!
//! [`read`] takes the bytes of a job file of either format and returns a [`JobFile`]. Pure; the one module that reads
//! other files is [`cost`]. Does not depend on how jobs are run. Today's format is that of lld 21 and later
//! (`llvm/lib/LTO/LTO.cpp`, and the page DTLTO of the LLVM documentation). The module `versioned` converts the format of
//! the proposal of 2023, version 0.0, to the same jobs.
//!
//! The calls of a distributor, in this order:
//!
//! ```text
//! read(bytes: &[u8], name: &str)           -> Result<JobFile, JobFileError>
//! read_placed(bytes, name)                 -> the same, and which files hold modules that are not at their identifiers
//! identifier::members(id)                  -> the archive member that holds such a module if no file does
//! job_file.garbled()                       -> paths that lld garbled; JobFileError::garbled(name, path) if not there
//! cost::set_costs(&mut job_file, dir: Option<&Path>)         largest first needs costs; reads shards
//! job_file.graph, job_file.jobs            -> the actions, and their order in the file
//! dropped::of_words(lld words)                               options that lld did not pass on, with the remedies
//! ```

mod check;
pub mod cost;
mod current;
pub mod dropped;
pub mod error;
mod fields;
pub mod identifier;
mod paths;
pub mod temporaries;
mod versioned;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexMap;

use crate::graph::{Action, ActionGraph, ActionId, BackendWork};
pub use error::JobFileError;

/// For each module with an identifier that is not its path: the identifier and the file with the content. The compiler
/// finds a module only under its identifier, so the file has to be put there.
pub type Placed = IndexMap<String, Utf8PathBuf>;

/// One job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// The program that lld links; its directory is where lld has the objects written. Version 0.0 does not say.
    pub linker_output: Option<Utf8PathBuf>,
    /// One opt action for each job, without edges. The label is the module id. Inputs are the module (by its id),
    /// its shard, its imports in the file's order, then the common inputs; the first output is the object.
    /// Costs are 0 until [`cost::set_costs`] has read them.
    pub graph: ActionGraph,
    /// The graph's actions in the order of the file, which is that of the link line.
    pub jobs: Vec<ActionId>,
    /// The words that every command begins with; the first is the compiler. Empty of jobs or not, there is one.
    pub common_args: Vec<String>,
    /// The files that every job reads, such as profiles.
    pub common_inputs: Vec<Utf8PathBuf>,
}

impl JobFile {
    /// The compiler that every job runs.
    pub fn compiler(&self) -> &str {
        self.common_args.first().map_or("", String::as_str)
    }

    /// The module id of a job: the module's path as the shards know it, byte for byte.
    pub fn module(&self, job: ActionId) -> &str {
        &self.graph.action(job).label
    }

    /// The index shard of a job.
    pub fn shard(&self, job: ActionId) -> &Utf8Path {
        self.graph.path(self.backend(job).shard)
    }

    /// The native object of a job.
    pub fn object(&self, job: ActionId) -> &Utf8Path {
        self.graph.path(self.backend(job).object)
    }

    /// Returns a job's inputs besides module and shard: imports, then common inputs.
    pub fn others(&self, job: ActionId) -> impl Iterator<Item = &Utf8Path> {
        self.backend(job).others().map(|file| self.graph.path(file))
    }

    fn backend(&self, job: ActionId) -> &BackendWork {
        self.graph.action(job).backend().expect("the actions of a job file are backend compilations")
    }

    /// Returns the paths with a U+FFFD, lld's replacement for each byte of a name that is not UTF-8. A path that does
    /// not exist was garbled on the way ([`JobFileError::garbled`] is its error); a path that exists is a real name.
    pub fn garbled(&self) -> impl Iterator<Item = &Utf8Path> {
        self.graph.files().filter(|path| path.as_str().contains(char::REPLACEMENT_CHARACTER))
    }

    /// The same jobs by the same ids, in which some files have other paths. `paths` has the other path of each, and
    /// gives no two files the same one. Words of the commands change with the lists.
    pub fn with_paths(&self, paths: &BTreeMap<Utf8PathBuf, Utf8PathBuf>) -> Self {
        let path = |path: &Utf8Path| paths.get(path).map_or(path, |other| other).to_owned();
        let words = |words: &[String]| words.iter().map(|word| with_path(word, paths)).collect();
        let common_args: Vec<String> = words(&self.common_args);
        let mut graph = ActionGraph::new();
        let prefix = graph.prefix(common_args.clone());
        for (_, action) in self.graph.actions() {
            let work = action.work.map(|id| graph.file(path(self.graph.path(id))));
            graph.add(Action {
                work,
                label: path(action.label.as_str().into()).into_string(),
                prefix: Some(prefix),
                args: words(&action.args),
                cost: action.cost,
            });
        }
        let common_inputs = self.common_inputs.iter().map(|input| path(input)).collect();
        Self {
            linker_output: self.linker_output.clone(),
            graph,
            jobs: self.jobs.clone(),
            common_args,
            common_inputs,
        }
    }
}

/// A word of a command with the other path: of the whole word, after `-o`, or after the first `=`.
fn with_path(word: &str, paths: &BTreeMap<Utf8PathBuf, Utf8PathBuf>) -> String {
    let starts = [Some(0), word.starts_with("-o").then_some(2), word.find('=').map(|at| at + 1)];
    let other = starts.into_iter().flatten().find_map(|start| {
        let (option, path) = word.split_at(start);
        paths.get(Utf8Path::new(path)).map(|path| format!("{option}{path}"))
    });
    other.unwrap_or_else(|| word.to_owned())
}

/// Reads a job file. Messages call it `name`. Time and memory are bounded by the length of `bytes`.
pub fn read(bytes: &[u8], name: &str) -> Result<JobFile, JobFileError> {
    read_placed(bytes, name).map(|(file, _)| file)
}

/// Reads a job file like [`read`]. Also returns the modules that are not at their identifiers: `None` for a file of
/// today's format, which has none.
pub fn read_placed(bytes: &[u8], name: &str) -> Result<(JobFile, Option<Placed>), JobFileError> {
    let read = match current::read(bytes) {
        Ok(file) => Ok((file, None)),
        Err(not_current) => versioned::read(bytes, not_current).map(|(file, placed)| (file, Some(placed))),
    };
    read.map_err(|failure| failure.in_file(name))
}
