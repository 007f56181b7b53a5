//! Job files as lld 21 and later write them: `{"common": {linker_output, args, inputs}, "jobs": [...]}`.
//!
//! Reads the text; what the jobs may not be is in `check`. The shape is that of lld 22, where a job is
//! `{"args", "inputs", "outputs"}`, its inputs beginning with module and shard.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, MapAccess};

use super::check::{Job, Jobs};
use super::error::{Failure, Problem};
use super::fields::{Array, Fields, Object, Objects, Text, What};
use super::paths::{PathId, Paths};
use super::place::Context;
use super::{JobFile, Shape};

/// The whole text.
#[derive(Default)]
struct Document<'de> {
    paths: Paths<'de>,
    linker_output: Option<Cow<'de, str>>,
    common_args: Vec<String>,
    common_inputs: Vec<PathId>,
    jobs: Vec<Job>,
}

pub(super) fn read(bytes: &[u8]) -> Result<JobFile, Failure> {
    let at = Context::default();
    let mut document = Document::default();
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let read = Object { at: &at, into: &mut document }.deserialize(&mut text).and_then(|()| text.end());
    read.map_err(|error| at.failure(&error))?;
    let Document { paths, linker_output, common_args, common_inputs, jobs } = document;
    let linker_output = linker_output.map(|path| path.into_owned().into());
    let checked = Jobs {
        shape: Shape::Current,
        linker_output,
        paths,
        common_args,
        common_inputs,
        jobs,
        placed: Vec::new(),
    };
    checked.check()?;
    checked.into_job_file()
}

impl<'de> Fields<'de> for Document<'de> {
    const NAME: &'static str = "a job file";
    const FIELDS: &'static [&'static str] = &["common", "jobs"];

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        match index {
            0 => map.next_value_seed(Object { at, into: &mut Common(self) }),
            _ => map.next_value_seed(Objects { at, what: "jobs", into: &mut JobList(self) }),
        }
    }
}

struct Common<'f, 'de>(&'f mut Document<'de>);

impl<'de> Fields<'de> for Common<'_, 'de> {
    const NAME: &'static str = "common";
    const FIELDS: &'static [&'static str] = &["linker_output", "args", "inputs"];

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        let document = &mut *self.0;
        match index {
            0 => {
                document.linker_output = Some(map.next_value_seed(Text { at, what: What::Path })?);
                Ok(())
            }
            1 => map.next_value_seed(words(at, &mut document.common_args)),
            _ => {
                let (paths, inputs) = (&mut document.paths, &mut document.common_inputs);
                map.next_value_seed(self::paths(at, paths, inputs))
            }
        }
    }
}

struct JobList<'f, 'de>(&'f mut Document<'de>);

impl<'de> Fields<'de> for JobList<'_, 'de> {
    const NAME: &'static str = "a job";
    const FIELDS: &'static [&'static str] = &["args", "inputs", "outputs"];

    fn begin(&mut self) {
        self.0.jobs.push(Job::default());
    }

    fn field<A: MapAccess<'de>>(&mut self, index: usize, map: &mut A, at: &Context) -> Result<(), A::Error> {
        let Document { paths, jobs, .. } = &mut *self.0;
        // `begin` has pushed this one.
        let Some(job) = jobs.last_mut() else { return Ok(()) };
        match index {
            0 => map.next_value_seed(words(at, &mut job.args)),
            1 => map.next_value_seed(self::paths(at, paths, &mut job.inputs)),
            _ => map.next_value_seed(self::paths(at, paths, &mut job.outputs)),
        }
    }
}

fn words<'de>(at: &Context, into: &mut Vec<String>) -> impl DeserializeSeed<'de, Value = ()> {
    let take = |word: Cow<'de, str>| {
        into.push(word.into_owned());
        Ok(())
    };
    Array { at, what: "words", item: Text { at, what: What::Word }, take }
}

/// Reads an array of paths.
pub(super) fn paths<'de>(
    at: &Context,
    paths: &mut Paths<'de>,
    into: &mut Vec<PathId>,
) -> impl DeserializeSeed<'de, Value = ()> {
    let take = |path: Cow<'de, str>| -> Result<(), Problem> {
        into.push(paths.id(path));
        Ok(())
    };
    Array { at, what: "paths", item: Text { at, what: What::Path }, take }
}
