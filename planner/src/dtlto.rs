//! The front end for DTLTO: a job file that lld wrote becomes an action graph.
//!
//! [`read`] takes the bytes of a job file of either shape and returns a [`JobFile`]. Pure; the one module that reads
//! other files is [`cost`]. Does not depend on how jobs are run. The current shape is the format of lld 21 and later
//! (`llvm/lib/LTO/LTO.cpp`, and the page DTLTO of the LLVM documentation); version 0.0 is that of the proposal of 2023.
//!
//! The calls of a distributor, in this order:
//!
//! ```text
//! read(bytes: &[u8], name: &str)           -> Result<JobFile, JobFileError>
//! job_file.garbled()                       -> paths that lld garbled; JobFileError::garbled(name, path) if not there
//! job_file.placed, identifier::members(id) -> where the content of a module is that is not at its identifier
//! cost::set_costs(&mut job_file, dir: Option<&Path>)         largest first needs costs; reads shards
//! job_file.graph, job_file.jobs            -> the actions, and their order in the file
//! dropped::of_words(lld words)                               options that lld did not pass on, with the remedies
//! write::current(&job_file, &mut out)                        the jobs as lld writes them
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
pub mod write;

use camino::{Utf8Path, Utf8PathBuf};
use indexmap::IndexMap;

use crate::graph::{ActionGraph, ActionId, BackendWork};
pub use error::JobFileError;

/// Which of the two formats a job file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The format of lld 21 and later; it has no version field.
    Current,
    /// `"version": {"major": 0, "minor": 0}`: strings that are said once and referred to by index.
    Version0,
}

/// One job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// The format it had.
    pub shape: Shape,
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
    /// For each module with an identifier that is not its path (version 0.0 only): the identifier and the file with the
    /// content. The compiler finds a module only under its identifier, so the file has to be put there.
    pub placed: IndexMap<String, Utf8PathBuf>,
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

    /// The file that holds the content of an input: another than the input itself for an identifier that is
    /// not a path.
    pub fn content_of<'a>(&'a self, input: &'a Utf8Path) -> &'a Utf8Path {
        self.placed.get(input.as_str()).map_or(input, |file| file.as_path())
    }

    /// Returns the paths with a U+FFFD, lld's replacement for each byte of a name that is not UTF-8. A path that does
    /// not exist was garbled on the way ([`JobFileError::garbled`] is its error); a path that exists is a real name.
    pub fn garbled(&self) -> impl Iterator<Item = &Utf8Path> {
        self.graph.files().filter(|path| path.as_str().contains(char::REPLACEMENT_CHARACTER))
    }
}

/// Reads a job file. Messages call it `name`. Time and memory are bounded by the length of `bytes`.
pub fn read(bytes: &[u8], name: &str) -> Result<JobFile, JobFileError> {
    let read = current::read(bytes).or_else(|not_current| {
        versioned::version(bytes, not_current).and_then(|version| versioned::read(bytes, version))
    });
    read.map_err(|failure| failure.in_file(name))
}
