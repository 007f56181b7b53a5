//! Executes actions on this machine: outputs redirected, the driver left out, the command made fit, a process, its output.
//!
//! How a process comes to be is the [`Spawner`]'s. Knows nothing of what a result has to be.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use distlto_planner::words::Word;
use distlto_record::action::EngineTimes;
use distlto_record::report::Span;

use super::cc1::Names;
use super::drivers::Drivers;
use super::process::{self, Command, Spawner};
use super::{Execute, Executed, ExecutionRequest, response_file};
use crate::cancel::Cancel;
use crate::cause::Cause;

/// This machine.
#[derive(Clone, Copy)]
pub struct Local<'a> {
    /// Starts commands.
    pub spawner: &'a dyn Spawner,
    /// Ends them early.
    pub cancel: &'a Cancel,
    /// How long a cancelled command may take to end.
    pub grace: Duration,
    /// Where commands run; the current directory when `None`.
    pub directory: Option<&'a Path>,
    /// What drivers would run, for runs of many backends; `None` to run the drivers.
    pub drivers: Option<&'a Drivers<'a>>,
}

impl Execute for Local<'_> {
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause> {
        let ExecutionRequest { job, outputs, .. } = request;
        let words = super::redirect::redirect(job.label, &job.words, outputs)?;
        let words: Vec<_> = words.into_iter().map(String::into_bytes).collect();
        let words = self.without_driver(request, &words).unwrap_or(words);
        let io = |source| Cause::Io { label: job.label.to_owned(), source };
        let fitting = response_file::fit(&words).map_err(io)?;
        let start = |source| Cause::Start {
            label: job.label.to_owned(),
            program: job.words.first().map_or_else(String::new, |&word| word.to_owned()),
            source,
        };
        let mut command = Command::of_words(&fitting.words, self.directory)
            .ok_or_else(|| start(io::Error::new(io::ErrorKind::InvalidInput, "the command has no words")))?;
        command.tunes_heap = job.backend.is_some();
        let begun = Instant::now();
        let finished = process::run(&command, self.spawner, self.cancel, self.grace).map_err(start)?;
        Ok(Executed {
            status: finished.ended.status,
            measured: finished.measured(),
            span: Span::since(begun),
            interrupted: finished.cancelled,
            worker: None,
            times: EngineTimes::default(),
            kept: false,
            stdout: finished.stdout,
            stderr: finished.stderr,
        })
    }
}

impl Local<'_> {
    /// The compiler's own command of a backend compilation, where that is known and worth it.
    fn without_driver(&self, request: &ExecutionRequest<'_>, words: &[Word]) -> Option<Vec<Word>> {
        let (drivers, backend) = (self.drivers?, request.job.backend?);
        // With split debug information two outputs are named, which differ for each module.
        let [object] = request.outputs else { return None };
        let object = object.written.as_str();
        let names = Names { module: backend.module, shard: backend.shard, object, others: &[] };
        drivers.command(words, names)
    }
}
