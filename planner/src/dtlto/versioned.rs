//! Converts job files of version 0.0, the format of DTLTO's proposal of 2023, to the jobs of today's format.
//!
//! A number among a job's inputs is a module of `common.modules`; `[prefix, "inputs" or "outputs", i]` among the
//! words is the prefix and the i-th entry of that list of the job. distlto adds one list to the proposal: `args`, words
//! of the job itself, such as its triple. Reads and expands the text; `check` has the rules for valid jobs. A module's
//! identifier need not be its path: [`Placed`] has those of which it is not.

use std::borrow::Cow;

use camino::Utf8PathBuf;
use distlto_prepare::json::{self, JsonObject};
use indexmap::IndexMap;
use serde::Deserialize;

use super::check::{UncheckedJob, UncheckedJobs, of_common, of_job};
use super::error::{JobFileFailure, Problem};
use super::fields::{JobWord, PathText};
use super::paths::{PathId, Paths};
use super::{JobFile, Placed};

/// The file of each module by its identifier, in the order of the list.
type Modules<'a> = IndexMap<Cow<'a, str>, Cow<'a, str>>;

/// The numbers of the field `version`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    major: u64,
    minor: u64,
}

/// Reads the version of a text that is not of today's format. Returns the error `not_current` for a text without
/// one.
fn version(bytes: &[u8], not_current: JobFileFailure) -> Result<Version, JobFileFailure> {
    #[derive(Deserialize)]
    struct Header {
        version: Option<JsonObject<Version>>,
    }
    match json::read::<JsonObject<Header>>(bytes) {
        Ok(JsonObject(Header { version: Some(JsonObject(version)) })) => Ok(version),
        Ok(_) => Err(not_current),
        // A text that is damaged further on: the other reader may have stopped at the field `version` already.
        Err(error) if not_current.is_of_content() => Err(error.into()),
        Err(_) => Err(not_current),
    }
}

/// A word of the commands.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a word, or an array of a prefix, \"inputs\", \"outputs\" or \"args\", and an index from 0 on"
)]
enum Arg {
    Word(JobWord),
    /// A prefix, and an entry of a list of the job.
    Placed(JobWord, List, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum List {
    Inputs,
    Outputs,
    Args,
}

/// An input of a job.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a path, or the index of a module from 0 on")]
enum Input<'a> {
    #[serde(borrow)]
    Path(PathText<'a>),
    Module(u64),
}

/// A module: identifier, and path where that is another.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a path, or a pair of module identifier and path")]
enum ModulePlace<'a> {
    #[serde(borrow)]
    Same(PathText<'a>),
    Placed(#[serde(borrow)] PathText<'a>, #[serde(borrow)] PathText<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionedDocument<'a> {
    #[serde(rename = "version")]
    _version: JsonObject<Version>,
    #[serde(borrow)]
    common: JsonObject<VersionedCommon<'a>>,
    #[serde(borrow)]
    jobs: Vec<JsonObject<VersionedJob<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionedCommon<'a> {
    args: Vec<Arg>,
    #[serde(rename = "codegen-tool")]
    tool: JobWord,
    #[serde(borrow)]
    inputs: Vec<PathText<'a>>,
    #[serde(borrow)]
    modules: Vec<ModulePlace<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionedJob<'a> {
    #[serde(borrow)]
    inputs: Vec<Input<'a>>,
    #[serde(borrow)]
    outputs: Vec<PathText<'a>>,
    #[serde(default)]
    args: Vec<JobWord>,
}

/// Converts a text of this version. Returns the error `not_current` for a text without a version.
pub(super) fn read(bytes: &[u8], not_current: JobFileFailure) -> Result<(JobFile, Placed), JobFileFailure> {
    let Version { major, minor } = version(bytes, not_current)?;
    if (major, minor) != (0, 0) {
        return Err(JobFileFailure::at("version", Problem::UnknownVersion { major, minor }));
    }
    let JsonObject(document) = json::read::<JsonObject<VersionedDocument<'_>>>(bytes)?;
    let (jobs, modules) = document.into_current()?;
    if jobs.common_args.first().is_some_and(String::is_empty) {
        return Err(JobFileFailure::at("common.codegen-tool", Problem::EmptyCompiler));
    }
    jobs.check()?;
    let file = jobs.into_job_file()?;
    let mut placed = Placed::new();
    for (at, (identifier, path)) in modules.into_iter().enumerate() {
        if path == identifier {
            continue;
        }
        let path = Utf8PathBuf::from(path.into_owned());
        let writer = file.graph.find_file(&path).and_then(|path| file.graph.producer(path));
        if let Some(writer) = writer.and_then(|writer| file.jobs.iter().position(|&job| job == writer)) {
            return Err(JobFileFailure::at(
                of_common("modules", at),
                Problem::InputIsWritten { path, writer },
            ));
        }
        placed.insert(identifier.into_owned(), path);
    }
    Ok((file, placed))
}

impl<'a> VersionedDocument<'a> {
    /// The jobs as today's format has them, and the file of each module by its identifier.
    fn into_current(self) -> Result<(UncheckedJobs<'a>, Modules<'a>), JobFileFailure> {
        let JsonObject(VersionedCommon { args, tool: JobWord(tool), inputs, modules }) = self.common;
        let mut paths = Paths::default();
        let common_inputs = paths.ids(inputs);
        let modules = by_identifier(modules)?;
        let shared = shared_words(&args);
        let first = |list, prefix: &str| {
            args.iter().find_map(|arg| match arg {
                Arg::Placed(JobWord(found), of, index) if *of == list && found == prefix => {
                    usize::try_from(*index).ok()
                }
                _ => None,
            })
        };
        let module = first(List::Inputs, "").unwrap_or(0);
        let shard = first(List::Inputs, "-fthinlto-index=").unwrap_or(1);
        let object = first(List::Outputs, "").unwrap_or(0);
        let mut expanded = Vec::with_capacity(self.jobs.len());
        for (index, JsonObject(job)) in self.jobs.into_iter().enumerate() {
            let mut inputs = Vec::with_capacity(job.inputs.len());
            for (at, input) in job.inputs.into_iter().enumerate() {
                inputs.push(match input {
                    Input::Path(PathText(path)) => paths.id(path),
                    Input::Module(number) => {
                        let module =
                            usize::try_from(number).ok().and_then(|module| modules.get_index(module));
                        let (identifier, _) = module.ok_or_else(|| {
                            let (list, length) = ("common.modules".to_owned(), modules.len());
                            let problem = Problem::OutOfRange { index: number, list, length };
                            JobFileFailure::at(of_job(index, "inputs", at), problem)
                        })?;
                        paths.id(identifier.clone())
                    }
                });
            }
            let own = job.args.into_iter().map(|JobWord(word)| word).collect();
            let mut job = UncheckedJob { args: own, inputs, outputs: paths.ids(job.outputs) };
            let words = args.iter().enumerate().skip(shared);
            let words =
                words.map(|(at, arg)| word(&paths, arg, at, index, &job)).collect::<Result<_, _>>()?;
            job.args = words;
            // Where a command takes them from another place, they come first all the same.
            to_front(&mut job.inputs, &[module, shard]);
            to_front(&mut job.outputs, &[object]);
            expanded.push(job);
        }
        let words = args.into_iter().take(shared).filter_map(|arg| match arg {
            Arg::Word(JobWord(word)) => Some(word),
            Arg::Placed(..) => None,
        });
        let common_args = [tool].into_iter().chain(words).collect();
        let jobs = UncheckedJobs { linker_output: None, paths, common_args, common_inputs, jobs: expanded };
        Ok((jobs, modules))
    }
}

/// How many words all commands begin with. An option stays with its value, so that words can be put between.
fn shared_words(args: &[Arg]) -> usize {
    let words = args.iter().take_while(|arg| matches!(arg, Arg::Word(_))).count();
    let is_value = matches!(args.get(words), Some(Arg::Placed(JobWord(prefix), ..)) if prefix.is_empty());
    match args[..words].last() {
        Some(Arg::Word(JobWord(word))) if is_value && word.starts_with('-') => words - 1,
        _ => words,
    }
}

/// The file of each module by its identifier. Refuses two modules of one identifier.
fn by_identifier(modules: Vec<ModulePlace<'_>>) -> Result<Modules<'_>, JobFileFailure> {
    let mut files = Modules::with_capacity(modules.len());
    for (at, module) in modules.into_iter().enumerate() {
        let (PathText(identifier), PathText(path)) = match module {
            ModulePlace::Same(path) => (path.clone(), path),
            ModulePlace::Placed(identifier, path) => (identifier, path),
        };
        if let Some(other) = files.get_index_of(&identifier) {
            let problem = Problem::TwoModules { identifier: identifier.into_owned(), other };
            return Err(JobFileFailure::at(of_common("modules", at), problem));
        }
        files.insert(identifier, path);
    }
    Ok(files)
}

/// A word of a job's command. Until it has all of them, the job's `args` are those of the list of this name.
fn word(
    paths: &Paths<'_>,
    arg: &Arg,
    at: usize,
    index: usize,
    job: &UncheckedJob,
) -> Result<String, JobFileFailure> {
    let (prefix, list, entry) = match arg {
        Arg::Word(JobWord(word)) => return Ok(word.clone()),
        Arg::Placed(JobWord(prefix), list, entry) => (prefix, list, *entry),
    };
    let place = usize::try_from(entry).unwrap_or(usize::MAX);
    let path = |files: &[PathId]| files.get(place).map(|&file| paths.text(file).to_owned());
    let (name, length, found) = match list {
        List::Inputs => ("inputs", job.inputs.len(), path(&job.inputs)),
        List::Outputs => ("outputs", job.outputs.len(), path(&job.outputs)),
        List::Args => ("args", job.args.len(), job.args.get(place).cloned()),
    };
    match found {
        Some(word) => Ok(format!("{prefix}{word}")),
        None => {
            let list = format!("jobs[{index}].{name}");
            Err(JobFileFailure::at(of_common("args", at), Problem::OutOfRange { index: entry, list, length }))
        }
    }
}

/// Moves the entries at these places to the front, in this order.
fn to_front(files: &mut Vec<PathId>, places: &[usize]) {
    let front: Vec<_> = places.iter().filter_map(|&place| files.get(place).copied()).collect();
    if files.starts_with(&front) {
        return;
    }
    let rest = files.iter().enumerate().filter(|(at, _)| !places.contains(at)).map(|(_, &file)| file);
    *files = front.into_iter().chain(rest).collect();
}
