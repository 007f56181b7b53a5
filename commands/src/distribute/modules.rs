//! The inputs of jobs: checks that they exist, and provides them under the names that the jobs use.
//!
//! A module identifier that names no file gets one in a private directory (see `module_links`), where a member of an
//! archive is unpacked. The commands of these jobs run there and write their outputs by absolute paths. Runs no job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::dtlto::{JobFile, JobFileError, identifier};
use distlto_planner::graph::error::GraphError;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::words::{shell_line, shell_quote};
use distlto_prepare::error::PrepareError;
use distlto_prepare::member;
use distlto_prepare::store::Store;
use miette::Diagnostic;
use thiserror::Error;

use crate::module_links::{CommandNames, ModuleLinks, PlaceError, is_misplaced, paths_in};

/// How many missing files an error names.
const NAMED: usize = 8;

/// Why jobs cannot run.
#[derive(Debug, Error, Diagnostic)]
pub enum ModulesError {
    /// Files that jobs read are not there.
    #[error("{job_file}: {count} of the files that its jobs read are missing:{}", listed(missing, *count))]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "lld removes modules and shards when its link ends: run the jobs in lld's working directory while lld waits \
             for them, or have lld keep them (-Wl,--save-temps), or keep a job with its files by --save-job DIR"
        )
    )]
    Missing {
        /// The job file.
        job_file: String,
        /// The first missing files, each with the module of a job that reads it.
        missing: Vec<(Utf8PathBuf, String)>,
        /// How many there are.
        count: usize,
    },
    /// Names that are not those that the linker meant.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Garbled(#[from] JobFileError),
    /// A member cannot be unpacked.
    #[error(transparent)]
    #[diagnostic(transparent)]
    MemberModule(#[from] PrepareError),
    /// A module cannot be put at its identifier.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Place(#[from] PlaceError),
    /// The jobs with absolute outputs make no graph.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Graph(#[from] GraphError),
}

fn listed(missing: &[(Utf8PathBuf, String)], count: usize) -> String {
    let mut text = String::new();
    for (at, (path, module)) in missing.iter().enumerate() {
        let before = if at > 0 { ";" } else { "" };
        text.push_str(&format!("{before} {path:?}, for module {module:?}"));
    }
    if count > missing.len() {
        text.push_str(&format!("; and {} more", count - missing.len()));
    }
    text
}

/// A member of an archive that a module identifier names, there being no file of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberModule {
    /// The archive.
    pub archive: Utf8PathBuf,
    /// The last component of the member's name.
    pub name: String,
    /// The offset of its header in the archive, in bytes.
    pub offset: u64,
}

impl MemberModule {
    /// Makes `path` a file with the member's content. The archive's path is relative to `base`.
    pub fn unpack(&self, base: &Path, store: Option<&Store>, path: &Path) -> Result<(), PrepareError> {
        member::place(&base.join(&self.archive), self.name.as_bytes(), self.offset, store, path)
    }
}

/// Where the content of files is that are not themselves at the path that jobs name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// In other files.
    pub files: BTreeMap<Utf8PathBuf, Utf8PathBuf>,
    /// In archives.
    pub members: BTreeMap<Utf8PathBuf, MemberModule>,
}

impl Elsewhere {
    /// Whether compilers find everything as it is.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.members.is_empty()
    }
}

/// Finds every input of the jobs. Paths are relative to `base`; messages call the job file `name`.
pub fn find(file: &JobFile, base: &Path, name: &str) -> Result<Elsewhere, ModulesError> {
    let mut elsewhere = Elsewhere::default();
    let mut missing: Vec<&Utf8Path> = Vec::new();
    for path in file.graph.files() {
        let written = file.graph.find_file(path).is_some_and(|id| file.graph.producer(id).is_some());
        let content = file.content_of(path);
        if written {
            continue;
        }
        if base.join(content).exists() {
            if is_misplaced(base, path.as_str(), content.as_std_path()) {
                elsewhere.files.insert(path.to_owned(), content.to_owned());
            }
            continue;
        }
        let members = identifier::members(content.as_str());
        match members.into_iter().find(|found| base.join(found.archive).is_file()) {
            Some(found) => {
                let archive = found.archive.to_owned();
                let member = MemberModule { archive, name: found.member.to_owned(), offset: found.offset };
                elsewhere.members.insert(path.to_owned(), member);
            }
            None => missing.push(content),
        }
    }
    if let Some(garbled) = file.garbled().find(|path| missing.contains(path)) {
        return Err(JobFileError::garbled(name, garbled).into());
    }
    if missing.is_empty() {
        return Ok(elsewhere);
    }
    let count = missing.len();
    let reader = |path: &Utf8Path| {
        let reads = |&job: &ActionId| {
            let mut inputs = file.graph.action(job).inputs();
            inputs.any(|input| file.content_of(file.graph.path(input)) == path)
        };
        let compiles = |&job: &ActionId| file.content_of(file.module(job).into()) == path;
        let mut jobs = file.jobs.iter().copied();
        let job = jobs.clone().find(compiles).or_else(|| jobs.find(reads));
        job.map_or_else(String::new, |job| file.module(job).to_owned())
    };
    let missing = missing.into_iter().take(NAMED).map(|path| (path.to_owned(), reader(path))).collect();
    Err(ModulesError::Missing { job_file: name.to_owned(), missing, count })
}

/// Jobs with modules at their identifiers in a private directory.
#[derive(Debug)]
pub struct PlacedModules {
    links: ModuleLinks,
    /// The jobs, their outputs by absolute paths.
    pub graph: ActionGraph,
}

impl PlacedModules {
    /// Puts everything into place below `directory`, which is the caller's own.
    pub fn new(
        file: &JobFile,
        elsewhere: &Elsewhere,
        base: &Path,
        directory: &Path,
        store: Option<&Store>,
    ) -> Result<Self, ModulesError> {
        let mut unpacked: Vec<(&Utf8Path, PathBuf)> = Vec::new();
        for (number, (id, member)) in elsewhere.members.iter().enumerate() {
            let path = directory.join("members").join(format!("{number}.o"));
            member.unpack(base, store, &path)?;
            let path = std::path::absolute(&path).unwrap_or(path);
            unpacked.push((id, path));
        }
        let files = elsewhere.files.iter().map(|(id, path)| (id.as_str(), path.as_std_path()));
        let members = unpacked.iter().map(|(id, path)| (id.as_str(), path.as_path()));
        let placed: Vec<(&str, &Path)> = files.chain(members).collect();
        let inputs = file.graph.files().map(Utf8Path::as_str);
        let words = file.jobs.iter().flat_map(|&job| paths_in(&file.graph.action(job).args));
        let mut present: Vec<&str> = inputs.chain(paths_in(&file.common_args)).chain(words).collect();
        present.sort_unstable();
        present.dedup();
        let links =
            ModuleLinks::new_in(CommandNames { base, placed: &placed, present: &present }, directory)?;
        let graph = with_absolute_outputs(file, &links)?;
        Ok(Self { links, graph })
    }

    /// Where the commands run.
    pub fn directory(&self) -> PathBuf {
        self.links.directory()
    }

    /// A line for a shell that repeats a job, in another directory of this kind.
    pub fn repeat(&self, job: ActionId) -> String {
        let action = self.graph.action(job);
        let inputs = action.inputs().map(|input| self.graph.path(input).as_str());
        let prefix = action.prefix.map(|prefix| self.graph.prefix_words(prefix)).unwrap_or_default();
        let mut names: Vec<&str> = inputs.chain(paths_in(prefix)).collect();
        names.sort_unstable();
        names.dedup();
        format!("{} && {}", self.links.shell_commands(names), shell_line(self.graph.command(job)))
    }
}

/// A line for a shell that repeats a job of a graph in `base`.
pub fn repeat(graph: &ActionGraph, base: &Path, job: ActionId) -> String {
    format!("cd {} && {}", shell_quote(&base.to_string_lossy()), shell_line(graph.command(job)))
}

/// The same jobs, run elsewhere: outputs, and a compiler that is named by a relative path, become absolute.
fn with_absolute_outputs(file: &JobFile, links: &ModuleLinks) -> Result<ActionGraph, GraphError> {
    let absolute = |path: &Utf8Path| {
        let absolute = links.absolute(path.as_std_path());
        // Where the working directory is not UTF-8, a name that does not exist is refused when it is written to.
        Utf8PathBuf::from(absolute.to_string_lossy().into_owned())
    };
    let mut graph = ActionGraph::new();
    for (id, action) in file.graph.actions() {
        let mut action = action.clone();
        let mut prefix = file.common_args.clone();
        if let Some(compiler) = prefix.first_mut().filter(|compiler| compiler.contains('/')) {
            *compiler = absolute(Utf8Path::new(compiler)).into_string();
        }
        action.prefix = Some(graph.prefix(prefix));
        let outputs = action.work.outputs();
        for output in outputs.map(|output| file.graph.path(output)) {
            let new = absolute(output);
            for word in &mut action.args {
                if word == output.as_str() {
                    *word = new.to_string();
                } else if word.strip_prefix("-o") == Some(output.as_str()) {
                    *word = format!("-o{new}");
                }
            }
        }
        // No job reads the output of another one.
        action.work = action.work.map(|id| match (file.graph.producer(id), file.graph.path(id)) {
            (Some(_), output) => graph.file(absolute(output)),
            (None, input) => graph.file(input),
        });
        debug_assert_eq!(graph.actions().len(), id.index(), "ids stay as they are");
        graph.add(action);
    }
    Ok(graph)
}
