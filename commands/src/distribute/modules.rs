//! The inputs of jobs: checks that they exist, and provides them under the names that the jobs use.
//!
//! A module identifier that names no file, as version 0.0 of the job file allows, gets one in a private directory (see
//! `module_links`), where a member of an archive is unpacked. The commands of these jobs run there and write their
//! outputs by absolute paths. So every later step finds each module at its path, as in lld's own jobs. Runs no job.

use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::dtlto::identifier::{self, ArchiveMember};
use distlto_planner::dtlto::{JobFile, JobFileError, Placed};
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::words::{shell_line, shell_quote};
use distlto_prepare::member;
use miette::Diagnostic;
use thiserror::Error;

use super::module_links::{ModuleLinks, is_misplaced, paths_in};

/// How many missing files an error names.
const NAMED: usize = 8;

/// Files that jobs read are not there.
#[derive(Debug, Error, Diagnostic)]
#[error("{job_file}: {count} of the files that its jobs read are missing:{}", listed(missing, *count))]
#[diagnostic(
    code(distlto::bad_input),
    help(
        "lld removes modules and shards when its link ends: run the jobs in lld's working directory while lld waits \
         for them, or have lld keep them (-Wl,--save-temps)"
    )
)]
struct MissingFiles {
    job_file: String,
    /// The first of them, each with the module of a job that reads it.
    missing: Vec<(Utf8PathBuf, String)>,
    count: usize,
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

/// Where the content of a module is that is not at its identifier.
#[derive(Debug)]
pub enum ModuleContent<'a> {
    /// In another file.
    File(&'a Utf8Path),
    /// In an archive.
    Member(ArchiveMember<'a>),
}

/// Finds every input of the jobs. Returns those that are not at their paths, which are modules by their identifiers.
/// Paths are relative to `base`; messages call the job file `name`.
pub fn find<'a>(
    file: &'a JobFile,
    placed: &'a Placed,
    base: &Path,
    name: &str,
) -> miette::Result<Vec<(&'a Utf8Path, ModuleContent<'a>)>> {
    let mut elsewhere = Vec::new();
    let mut missing: Vec<(&Utf8Path, &Utf8Path)> = Vec::new();
    for path in file.graph.files() {
        if file.graph.find_file(path).is_some_and(|id| file.graph.producer(id).is_some()) {
            continue;
        }
        let content = placed.get(path.as_str()).map_or(path, |file| file);
        if base.join(content).exists() {
            if is_misplaced(base, path.as_str(), content.as_std_path()) {
                elsewhere.push((path, ModuleContent::File(content)));
            }
            continue;
        }
        let members = identifier::members(content.as_str());
        match members.into_iter().find(|found| base.join(found.archive).is_file()) {
            Some(found) => elsewhere.push((path, ModuleContent::Member(found))),
            None => missing.push((path, content)),
        }
    }
    if let Some(garbled) = file.garbled().find(|path| missing.iter().any(|(_, content)| content == path)) {
        return Err(JobFileError::garbled(name, garbled).into());
    }
    if missing.is_empty() {
        return Ok(elsewhere);
    }
    let count = missing.len();
    let reader = |path: &Utf8Path| {
        let compiles = |&job: &ActionId| Utf8Path::new(file.module(job)) == path;
        let reads =
            |&job: &ActionId| file.graph.action(job).inputs().any(|input| file.graph.path(input) == path);
        let mut jobs = file.jobs.iter().copied();
        let job = jobs.clone().find(compiles).or_else(|| jobs.find(reads));
        job.map_or_else(String::new, |job| file.module(job).to_owned())
    };
    let missing = missing.into_iter().take(NAMED);
    let missing = missing.map(|(path, content)| (content.to_owned(), reader(path))).collect();
    Err(MissingFiles { job_file: name.to_owned(), missing, count }.into())
}

/// Where jobs run: each of their inputs is at its path there.
#[derive(Debug)]
pub struct JobDirectory {
    path: PathBuf,
    /// Those that make it, where it is not the linker's own directory.
    links: Option<ModuleLinks>,
}

impl JobDirectory {
    /// Puts modules that are elsewhere to their identifiers, below `own`, which is the caller's own directory. Without
    /// any, jobs run in `base`.
    pub fn new(
        file: &JobFile,
        elsewhere: &[(&Utf8Path, ModuleContent<'_>)],
        base: &Path,
        own: &Path,
    ) -> miette::Result<Self> {
        if elsewhere.is_empty() {
            return Ok(Self { path: base.to_owned(), links: None });
        }
        let mut placed = Vec::with_capacity(elsewhere.len());
        for (number, (identifier, content)) in elsewhere.iter().enumerate() {
            let file = match content {
                ModuleContent::File(path) => path.into(),
                ModuleContent::Member(ArchiveMember { archive, member, offset }) => {
                    let path = own.join("members").join(format!("{number}.o"));
                    member::place(&base.join(archive), member.as_bytes(), *offset, &path)?;
                    std::path::absolute(&path).unwrap_or(path)
                }
            };
            placed.push((identifier.as_str(), file));
        }
        let inputs = file.graph.files().map(Utf8Path::as_str);
        let words = file.jobs.iter().flat_map(|&job| paths_in(&file.graph.action(job).args));
        let mut present: Vec<&str> = inputs.chain(paths_in(&file.common_args)).chain(words).collect();
        present.sort_unstable();
        present.dedup();
        let links = ModuleLinks::new(base, &placed, &present, own)?;
        Ok(Self { path: links.directory(), links: Some(links) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is another directory than the linker's.
    pub fn is_private(&self) -> bool {
        self.links.is_some()
    }

    /// A line for a shell that repeats a job of a graph: here, or in another directory of this kind.
    pub fn repeat(&self, graph: &ActionGraph, job: ActionId) -> String {
        let enter = match &self.links {
            None => format!("cd {}", shell_quote(&self.path.to_string_lossy())),
            Some(links) => {
                let action = graph.action(job);
                let inputs = action.inputs().map(|input| graph.path(input).as_str());
                let prefix = action.prefix.map(|prefix| graph.prefix_words(prefix)).unwrap_or_default();
                let mut names: Vec<&str> = inputs.chain(paths_in(prefix)).collect();
                names.sort_unstable();
                names.dedup();
                links.shell_commands(names)
            }
        };
        format!("{enter} && {}", shell_line(graph.command(job)))
    }
}

/// The same jobs, run elsewhere than in `base`: outputs, and a compiler that is named by a relative path, become
/// absolute.
pub fn with_absolute_outputs(file: &JobFile, base: &Path) -> JobFile {
    let outputs = file.jobs.iter().flat_map(|&job| file.graph.action(job).outputs());
    let outputs = outputs.map(|output| file.graph.path(output));
    let compiler = Some(file.compiler()).filter(|compiler| compiler.contains('/')).map(Utf8Path::new);
    // Where the working directory is not UTF-8, a name that does not exist is refused when it is written to.
    let absolute = |path: &Utf8Path| base.join(path).to_string_lossy().into_owned().into();
    file.with_paths(&outputs.chain(compiler).map(|path| (path.to_owned(), absolute(path))).collect())
}
