//! Executes actions on this machine: outputs redirected, the driver left out, the command made fit, a process, its output.
//!
//! The [`Spawner`] starts the process. Does not check results.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use camino::Utf8Path;
use distlto_planner::search_path::program_file;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_record::action::EngineTimes;
use distlto_record::report::Span;

use super::cc1::Names;
use super::drivers::Drivers;
use super::process::{self, Command, Spawner};
use super::{Execute, Executed, ExecutionRequest, response_file};
use crate::cause::Cause;
use crate::program_files::is_script;
use crate::protocol::FIRST_NOTE;
use crate::trace::Trace;
use crate::undeclared::Undeclared;

/// This machine.
#[derive(Clone, Copy)]
pub struct Local<'a> {
    /// Starts commands.
    pub spawner: &'a dyn Spawner,
    /// How long a cancelled command may take to end.
    pub grace: Duration,
    /// Where commands run; the current directory when `None`.
    pub directory: Option<&'a Path>,
    /// The `-cc1` commands of drivers; `None` to run the drivers themselves.
    pub drivers: Option<&'a Drivers<'a>>,
}

impl Execute for Local<'_> {
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause> {
        let ExecutionRequest { job, outputs, .. } = request;
        let compiler = self.without_driver(request);
        let is_compiler = compiler.is_some();
        let words = match compiler {
            Some(words) => words,
            None => {
                let words = super::redirect::redirect(&job.label, &job.words, outputs)?;
                words.into_iter().map(String::into_bytes).collect()
            }
        };
        let io = |source| Cause::Io { label: job.label.clone(), source };
        let fitting = response_file::fit(&words).map_err(io)?;
        let start = |source| Cause::Start {
            label: job.label.clone(),
            program: job.words.first().cloned().unwrap_or_default(),
            source,
        };
        let mut command = Command::of_words(&fitting.words, self.directory)
            .ok_or_else(|| start(io::Error::new(io::ErrorKind::InvalidInput, "the command has no words")))?;
        command.is_observed = is_compiler;
        let (begun, at) = (Instant::now(), SystemTime::now());
        let finished = process::run(&command, self.spawner, request.cancel, self.grace).map_err(start)?;
        let undeclared = match &finished.notes {
            // The driver's own reads show in its `-cc1` command, so the compiler's notes are enough.
            Some(notes) if is_noted(notes) => self
                .undeclared(request, notes, at, fitting.file())
                .map_err(IoError::on("read", "a compiler's notes")),
            _ => Ok(Undeclared::unobserved()),
        };
        Ok(Executed {
            status: finished.ended.status,
            measured: finished.measured(),
            span: Span::since(begun),
            interrupted: finished.cancelled,
            worker: None,
            times: EngineTimes::default(),
            kept: false,
            same_imports: None,
            undeclared: undeclared.map_err(io)?,
            stdout: finished.stdout,
            stderr: finished.stderr,
        })
    }
}

/// Whether a compiler has made notes: each reads its module at least.
fn is_noted(notes: &File) -> bool {
    let mut size = [0; FIRST_NOTE];
    notes.read_exact_at(&mut size, 0).is_ok() && size != [0; FIRST_NOTE]
}

impl Local<'_> {
    /// Returns the undeclared inputs of a backend compilation; its response file counts as declared.
    fn undeclared(
        &self,
        request: &ExecutionRequest<'_>,
        notes: &File,
        begun: SystemTime,
        response: Option<&Path>,
    ) -> io::Result<Undeclared> {
        let directory = std::path::absolute(self.directory.unwrap_or(Path::new(".")))?;
        let trace = Trace::read(notes, &directory)?;
        let inputs = request.job.inputs().chain(response.and_then(Utf8Path::from_path));
        let outputs = request.outputs.iter().map(|output| Utf8Path::new(output.written.as_str()));
        Ok(Undeclared::of(&trace, (&directory, begun), inputs, outputs))
    }

    /// The compiler's own command of a backend compilation, where that is known.
    fn without_driver(&self, request: &ExecutionRequest<'_>) -> Option<Vec<Word>> {
        let ExecutionRequest { job, outputs, .. } = request;
        let backend = job.backend.as_ref()?;
        let program = program_file(Path::new(job.words.first()?))?;
        // A script is run in any case.
        if is_script(&self.directory.unwrap_or(Path::new("")).join(program)) {
            return None;
        }
        let words: Vec<Word> = job.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let (object, others) = outputs.split_first()?;
        let called: Vec<&str> = others.iter().map(|output| output.name.as_str()).collect();
        let written: Vec<&str> = others.iter().map(|output| output.written.as_str()).collect();
        let names = Names {
            module: &backend.module,
            shard: &backend.shard,
            object: object.name.as_str(),
            others: &called,
        };
        let template = self.drivers?.template(&words, names)?;
        let names = Names { object: object.written.as_str(), others: &written, ..names };
        template.command(names, &called)
    }
}
