//! Job files of version 0.0, the format of DTLTO's proposal of 2023: strings are said once and referred to by index.
//!
//! A number among a job's inputs is a module of `common.modules`; `[prefix, "inputs" or "outputs", i]` among the
//! words is the prefix and the i-th entry of that list of the job. distlto adds one list to the proposal: `args`, words
//! of the job itself, such as its triple. Reads and expands the text; `check` has the rules for valid jobs.

use std::collections::HashMap;

use distlto_prepare::json::{self, JsonObject};
use serde::Deserialize;

use super::check::{UncheckedJob, UncheckedJobs, of_common, of_job};
use super::error::{JobFileFailure, Problem};
use super::fields::{JobWord, PathText};
use super::paths::{PathId, Paths};
use super::{JobFile, Shape};

/// The numbers of the field `version`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version {
    major: u64,
    minor: u64,
}

/// Reads the version of a text that is not of the current shape. Returns the error `not_current` for a text without
/// one.
pub(super) fn version(bytes: &[u8], not_current: JobFileFailure) -> Result<Version, JobFileFailure> {
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
enum Module<'a> {
    #[serde(borrow)]
    Same(PathText<'a>),
    Placed(#[serde(borrow)] PathText<'a>, #[serde(borrow)] PathText<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(rename = "version")]
    _version: JsonObject<Version>,
    #[serde(borrow)]
    common: JsonObject<Common<'a>>,
    #[serde(borrow)]
    jobs: Vec<JsonObject<RawJob<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Common<'a> {
    args: Vec<Arg>,
    #[serde(rename = "codegen-tool")]
    tool: JobWord,
    #[serde(borrow)]
    inputs: Vec<PathText<'a>>,
    #[serde(borrow)]
    modules: Vec<Module<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob<'a> {
    #[serde(borrow)]
    inputs: Vec<Input<'a>>,
    #[serde(borrow)]
    outputs: Vec<PathText<'a>>,
    #[serde(default)]
    args: Vec<JobWord>,
}

/// Reads a job file of this version.
pub(super) fn read(bytes: &[u8], version: Version) -> Result<JobFile, JobFileFailure> {
    if version != Version::default() {
        let Version { major, minor } = version;
        return Err(JobFileFailure::at("version", Problem::UnknownVersion { major, minor }));
    }
    let JsonObject(document) = json::read::<JsonObject<Document<'_>>>(bytes)?;
    let checked = document.expand()?;
    checked.check()?;
    checked.into_job_file()
}

impl<'a> Document<'a> {
    fn expand(self) -> Result<UncheckedJobs<'a>, JobFileFailure> {
        let Self { common: JsonObject(Common { args, tool: JobWord(tool), inputs, modules }), jobs, .. } =
            self;
        let mut paths = Paths::default();
        let common_inputs = paths.ids(inputs);
        let modules: Vec<_> = modules
            .into_iter()
            .map(|module| match module {
                Module::Same(PathText(identifier)) => (paths.id(identifier), None),
                Module::Placed(PathText(identifier), PathText(path)) => {
                    (paths.id(identifier), Some(paths.id(path)))
                }
            })
            .collect();
        let placed = placed(&paths, &modules)?;
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
        let mut expanded = Vec::with_capacity(jobs.len());
        for (index, JsonObject(job)) in jobs.into_iter().enumerate() {
            let inputs = identifiers(&mut paths, &modules, index, job.inputs)?;
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
        let shape = Shape::Version0;
        Ok(UncheckedJobs {
            shape,
            linker_output: None,
            paths,
            common_args,
            common_inputs,
            jobs: expanded,
            placed,
        })
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

/// Returns identifier, path and list index of each module with content in a file other than its identifier. Refuses two
/// modules of one identifier.
fn placed(
    paths: &Paths<'_>,
    modules: &[(PathId, Option<PathId>)],
) -> Result<Vec<(PathId, PathId, usize)>, JobFileFailure> {
    let mut first = HashMap::new();
    let mut placed = Vec::new();
    for (at, &(identifier, path)) in modules.iter().enumerate() {
        if let Some(other) = first.insert(identifier, at) {
            let identifier = paths.text(identifier).to_owned();
            return Err(JobFileFailure::at(
                of_common("modules", at),
                Problem::TwoModules { identifier, other },
            ));
        }
        if let Some(path) = path.filter(|&path| path != identifier) {
            placed.push((identifier, path, at));
        }
    }
    Ok(placed)
}

/// A job's inputs with modules by their identifiers.
fn identifiers<'a>(
    paths: &mut Paths<'a>,
    modules: &[(PathId, Option<PathId>)],
    index: usize,
    inputs: Vec<Input<'a>>,
) -> Result<Vec<PathId>, JobFileFailure> {
    let resolve = |(at, input)| match input {
        Input::Path(PathText(path)) => Ok(paths.id(path)),
        Input::Module(module) => {
            let found = usize::try_from(module).ok().and_then(|module| modules.get(module));
            found.map(|&(identifier, _)| identifier).ok_or_else(|| {
                let (list, length) = ("common.modules".to_owned(), modules.len());
                JobFileFailure::at(
                    of_job(index, "inputs", at),
                    Problem::OutOfRange { index: module, list, length },
                )
            })
        }
    };
    inputs.into_iter().enumerate().map(resolve).collect()
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
