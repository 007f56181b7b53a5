//! Job files of version 0.0, the format of DTLTO's proposal of 2023: strings are said once and referred to by index.
//!
//! A number among a job's inputs is a module of `common.modules`; `[prefix, "inputs" or "outputs", i]` among the
//! words is the prefix and the i-th entry of that list of the job. Reads the text and expands it; what the jobs may
//! not be is in `check`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};

use super::check::{Job, Jobs};
use super::current::paths;
use super::error::{Failure, Problem};
use super::fields::{Array, Either, Fields, Index, Object, Objects, Parts, Text, What};
use super::paths::{PathId, Paths};
use super::place::{Context, Place};
use super::{JobFile, Shape};

/// The numbers of the field `version`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    major: u64,
    minor: u64,
}

impl<'de> Fields<'de> for Version {
    const NAME: &'static str = "version";
    const FIELDS: &'static [&'static str] = &["major", "minor"];

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        *(if index == 0 { &mut self.major } else { &mut self.minor }) = map.next_value_seed(Index { at })?;
        Ok(())
    }
}

/// What a job file says its version is; `None` where it has no such field.
pub(super) fn version(bytes: &[u8]) -> Option<Result<Version, Failure>> {
    struct Header<'c, 'f>(&'c Context, &'f mut Option<Version>);

    impl<'de> DeserializeSeed<'de> for Header<'_, '_> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    impl<'de> Visitor<'de> for Header<'_, '_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let Self(at, found) = self;
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if key == "version" && found.is_none() {
                    at.enter(super::place::Step::Field("version"));
                    map.next_value_seed(Object { at, into: found.insert(Version::default()) })?;
                    at.leave();
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(())
        }
    }

    let at = Context::default();
    let mut found = None;
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let read = Header(&at, &mut found).deserialize(&mut text);
    match read {
        Err(error) if found.is_some() => Some(Err(at.failure(&error))),
        _ => found.map(Ok),
    }
}

/// A word of the commands.
#[derive(Debug)]
enum Arg {
    Word(String),
    /// A prefix, and an entry of a list of the job.
    Placed {
        prefix: String,
        list: List,
        index: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Inputs,
    Outputs,
}

/// An input of a job.
enum Input<'de> {
    Path(Cow<'de, str>),
    Module(u64),
}

/// A module: identifier, and path where that is another.
struct Module<'de>(Cow<'de, str>, Option<Cow<'de, str>>);

#[derive(Default)]
struct Document<'de> {
    version: Version,
    paths: Paths<'de>,
    args: Vec<Arg>,
    tool: Option<String>,
    inputs: Vec<PathId>,
    modules: Vec<(PathId, Option<PathId>)>,
    jobs: Vec<RawJob>,
}

#[derive(Default)]
struct RawJob {
    inputs: Vec<RawInput>,
    outputs: Vec<PathId>,
}

#[derive(Clone, Copy)]
enum RawInput {
    Path(PathId),
    Module(u64),
}

/// Reads a job file of this version.
pub(super) fn read(bytes: &[u8], version: Version) -> Result<JobFile, Failure> {
    if version != Version::default() {
        let Version { major, minor } = version;
        let place = Place(vec![super::place::Step::Field("version")]);
        let problem = Box::new(Problem::UnknownVersion { major, minor });
        return Err(Failure { place, position: None, problem });
    }
    let at = Context::default();
    let mut document = Document::default();
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let read = Object { at: &at, into: &mut document }.deserialize(&mut text).and_then(|()| text.end());
    read.map_err(|error| at.failure(&error))?;
    let checked = document.expand()?;
    checked.check()?;
    checked.into_job_file()
}

impl<'de> Fields<'de> for Document<'de> {
    const NAME: &'static str = "a job file of version 0.0";
    const FIELDS: &'static [&'static str] = &["version", "common", "jobs"];

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(Object { at, into: &mut self.version }),
            1 => map.next_value_seed(Object { at, into: &mut Common(self) }),
            _ => map.next_value_seed(Objects { at, what: "jobs", into: &mut JobList(self) }),
        }
    }
}

struct Common<'f, 'de>(&'f mut Document<'de>);

impl<'de> Fields<'de> for Common<'_, 'de> {
    const NAME: &'static str = "common";
    const FIELDS: &'static [&'static str] = &["args", "codegen-tool", "inputs", "modules"];

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        let Document { paths, args, tool, inputs, modules, .. } = &mut *self.0;
        match index {
            0 => {
                let take = |arg| {
                    args.push(arg);
                    Ok(())
                };
                map.next_value_seed(Array { at, what: "words", item: Either { at, kind: PhantomData }, take })
            }
            1 => {
                *tool = Some(map.next_value_seed(Text { at, what: What::Word })?.into_owned());
                Ok(())
            }
            2 => map.next_value_seed(self::paths(at, paths, inputs)),
            _ => {
                let take = |Module(identifier, path)| {
                    modules.push((paths.id(identifier), path.map(|path| paths.id(path))));
                    Ok(())
                };
                let item = Either { at, kind: PhantomData };
                map.next_value_seed(Array { at, what: "modules", item, take })
            }
        }
    }
}

struct JobList<'f, 'de>(&'f mut Document<'de>);

impl<'de> Fields<'de> for JobList<'_, 'de> {
    const NAME: &'static str = "a job";
    const FIELDS: &'static [&'static str] = &["inputs", "outputs"];

    fn begin(&mut self) {
        self.0.jobs.push(RawJob::default());
    }

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        let Document { paths, jobs, .. } = &mut *self.0;
        // `begin` has pushed this one.
        let Some(job) = jobs.last_mut() else { return Ok(()) };
        if index == 1 {
            return map.next_value_seed(self::paths(at, paths, &mut job.outputs));
        }
        let take = |input| {
            job.inputs.push(match input {
                Input::Path(path) => RawInput::Path(paths.id(path)),
                Input::Module(index) => RawInput::Module(index),
            });
            Ok(())
        };
        map.next_value_seed(Array { at, what: "inputs", item: Either { at, kind: PhantomData }, take })
    }
}

impl<'de> Parts<'de> for Input<'de> {
    const WHAT: &'static str = "a path, or the index of a module";

    fn parts<A: SeqAccess<'de>>(_: A, _: &Context) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::WHAT))
    }

    fn text<E: Error>(text: Cow<'de, str>, at: &Context) -> Result<Self, E> {
        Text { at, what: What::Path }.check(&text)?;
        Ok(Self::Path(text))
    }

    fn number(index: u64) -> Option<Self> {
        Some(Self::Module(index))
    }
}

impl<'de> Parts<'de> for Module<'de> {
    const WHAT: &'static str = "a path, or a pair of module identifier and path";

    fn parts<A: SeqAccess<'de>>(mut items: A, at: &Context) -> Result<Self, A::Error> {
        let text = Text { at, what: What::Path };
        let short = |length| A::Error::invalid_length(length, &Self::WHAT);
        let identifier = items.next_element_seed(text)?.ok_or_else(|| short(0))?;
        let path = items.next_element_seed(text)?.ok_or_else(|| short(1))?;
        match items.next_element::<IgnoredAny>()? {
            Some(_) => Err(short(3)),
            None => Ok(Self(identifier, Some(path))),
        }
    }

    fn text<E: Error>(text: Cow<'de, str>, at: &Context) -> Result<Self, E> {
        Text { at, what: What::Path }.check(&text)?;
        Ok(Self(text, None))
    }
}

impl<'de> Parts<'de> for Arg {
    const WHAT: &'static str = "a word, or an array of a prefix, \"inputs\" or \"outputs\", and an index";

    fn parts<A: SeqAccess<'de>>(mut items: A, at: &Context) -> Result<Self, A::Error> {
        let text = Text { at, what: What::Word };
        let short = |length| A::Error::invalid_length(length, &Self::WHAT);
        let prefix = items.next_element_seed(text)?.ok_or_else(|| short(0))?.into_owned();
        let list = match &*items.next_element_seed(text)?.ok_or_else(|| short(1))? {
            "inputs" => List::Inputs,
            "outputs" => List::Outputs,
            other => return Err(A::Error::unknown_variant(other, &["inputs", "outputs"])),
        };
        let index = items.next_element_seed(Index { at })?.ok_or_else(|| short(2))?;
        match items.next_element::<IgnoredAny>()? {
            Some(_) => Err(short(4)),
            None => Ok(Self::Placed { prefix, list, index }),
        }
    }

    fn text<E: Error>(text: Cow<'de, str>, at: &Context) -> Result<Self, E> {
        Text { at, what: What::Word }.check(&text)?;
        Ok(Self::Word(text.into_owned()))
    }
}

impl<'de> Document<'de> {
    fn expand(self) -> Result<Jobs<'de>, Failure> {
        let Self { paths, args, tool, inputs: common_inputs, modules, jobs, .. } = self;
        let placed = placed(&paths, &modules)?;
        let shared = shared_words(&args);
        let first = |list, prefix: &str| {
            args.iter().find_map(|arg| match arg {
                Arg::Placed { prefix: found, list: of, index } if *of == list && found == prefix => {
                    usize::try_from(*index).ok()
                }
                _ => None,
            })
        };
        let module = first(List::Inputs, "").unwrap_or(0);
        let shard = first(List::Inputs, "-fthinlto-index=").unwrap_or(1);
        let object = first(List::Outputs, "").unwrap_or(0);
        let mut expanded = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.into_iter().enumerate() {
            let inputs = identifiers(&modules, index, &job)?;
            let mut job = Job { args: Vec::new(), inputs, outputs: job.outputs };
            for (at, arg) in args.iter().enumerate().skip(shared) {
                job.args.push(word(&paths, arg, at, index, &job)?);
            }
            // Where a command takes them from another place, they come first all the same.
            to_front(&mut job.inputs, &[module, shard]);
            to_front(&mut job.outputs, &[object]);
            expanded.push(job);
        }
        let words = args.into_iter().take(shared).filter_map(|arg| match arg {
            Arg::Word(word) => Some(word),
            Arg::Placed { .. } => None,
        });
        let common_args = tool.into_iter().chain(words).collect();
        let shape = Shape::Version0;
        Ok(Jobs { shape, linker_output: None, paths, common_args, common_inputs, jobs: expanded, placed })
    }
}

/// How many words all commands begin with. An option stays with its value, so that words can be put between.
fn shared_words(args: &[Arg]) -> usize {
    let words = args.iter().take_while(|arg| matches!(arg, Arg::Word(_))).count();
    let is_value = matches!(args.get(words), Some(Arg::Placed { prefix, .. }) if prefix.is_empty());
    match args[..words].last() {
        Some(Arg::Word(word)) if is_value && word.starts_with('-') => words - 1,
        _ => words,
    }
}

/// The modules whose content is in another file than the identifier says.
fn placed(
    paths: &Paths<'_>,
    modules: &[(PathId, Option<PathId>)],
) -> Result<Vec<(PathId, PathId, usize)>, Failure> {
    let mut first = HashMap::new();
    let mut placed = Vec::new();
    for (at, &(identifier, path)) in modules.iter().enumerate() {
        if let Some(other) = first.insert(identifier, at) {
            let identifier = paths.text(identifier).to_owned();
            let problem = Box::new(Problem::TwoModules { identifier, other });
            return Err(Failure { place: Place::of_common("modules", at), position: None, problem });
        }
        if let Some(path) = path.filter(|&path| path != identifier) {
            placed.push((identifier, path, at));
        }
    }
    Ok(placed)
}

/// A job's inputs with modules by their identifiers.
fn identifiers(
    modules: &[(PathId, Option<PathId>)],
    index: usize,
    job: &RawJob,
) -> Result<Vec<PathId>, Failure> {
    let resolve = |(at, input): (usize, &RawInput)| match *input {
        RawInput::Path(path) => Ok(path),
        RawInput::Module(module) => {
            let found = usize::try_from(module).ok().and_then(|module| modules.get(module));
            found.map(|&(identifier, _)| identifier).ok_or_else(|| Failure {
                place: Place::of_job(index, "inputs", at),
                position: None,
                problem: Box::new(Problem::OutOfRange {
                    index: module,
                    list: "common.modules".to_owned(),
                    length: modules.len(),
                }),
            })
        }
    };
    job.inputs.iter().enumerate().map(resolve).collect()
}

/// A word of a job's command.
fn word(paths: &Paths<'_>, arg: &Arg, at: usize, index: usize, job: &Job) -> Result<String, Failure> {
    let Arg::Placed { prefix, list, index: entry } = arg else {
        let Arg::Word(word) = arg else { return Ok(String::new()) };
        return Ok(word.clone());
    };
    let (name, files) = match list {
        List::Inputs => ("inputs", &job.inputs),
        List::Outputs => ("outputs", &job.outputs),
    };
    match usize::try_from(*entry).ok().and_then(|entry| files.get(entry)) {
        Some(&file) => Ok(format!("{prefix}{}", paths.text(file))),
        None => Err(Failure {
            place: Place::of_common("args", at),
            position: None,
            problem: Box::new(Problem::OutOfRange {
                index: *entry,
                list: format!("jobs[{index}].{name}"),
                length: files.len(),
            }),
        }),
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
