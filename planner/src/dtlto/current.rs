//! Job files as lld 21 and later write them: `{"common": {linker_output, args, inputs}, "jobs": [...]}`.
//!
//! Reads the text; `check` has the rules for valid jobs. The format is that of lld 22, where a job is
//! `{"args", "inputs", "outputs"}`, its inputs beginning with module and shard.

use distlto_prepare::json::{self, JsonObject};
use serde::Deserialize;

use super::JobFile;
use super::check::{UncheckedJob, UncheckedJobs};
use super::error::JobFileFailure;
use super::fields::{JobWord, PathText};
use super::paths::Paths;

/// The whole text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(borrow)]
    common: JsonObject<Common<'a>>,
    #[serde(borrow)]
    jobs: Vec<JsonObject<RawJob<'a>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Common<'a> {
    #[serde(borrow)]
    linker_output: PathText<'a>,
    args: Vec<JobWord>,
    #[serde(borrow)]
    inputs: Vec<PathText<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJob<'a> {
    args: Vec<JobWord>,
    #[serde(borrow)]
    inputs: Vec<PathText<'a>>,
    #[serde(borrow)]
    outputs: Vec<PathText<'a>>,
}

pub(super) fn read(bytes: &[u8]) -> Result<JobFile, JobFileFailure> {
    let JsonObject(Document { common: JsonObject(common), jobs }) = json::read(bytes)?;
    let mut paths = Paths::default();
    let common_inputs = paths.ids(common.inputs);
    let mut job = |JsonObject(RawJob { args, inputs, outputs })| UncheckedJob {
        args: words(args),
        inputs: paths.ids(inputs),
        outputs: paths.ids(outputs),
    };
    let jobs = jobs.into_iter().map(&mut job).collect();
    let checked = UncheckedJobs {
        linker_output: Some(common.linker_output.0.into_owned().into()),
        paths,
        common_args: words(common.args),
        common_inputs,
        jobs,
    };
    checked.check()?;
    checked.into_job_file()
}

fn words(words: Vec<JobWord>) -> Vec<String> {
    words.into_iter().map(|JobWord(word)| word).collect()
}
