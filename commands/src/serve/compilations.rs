//! Compilations by the linker itself, on the threads that ask: each waits until the schedule lets it begin.
//!
//! Caches beside the store are asked first, by the store's key. The linker reports the end of each compilation, with the
//! object. Does not keep objects.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use distlto_executor::cause::Cause;
use distlto_executor::execute::capture::Captured;
use distlto_executor::execute::process::Spawner;
use distlto_executor::execute::{Execute, Executed, ExecutionRequest, Linker};
use distlto_executor::import_step::import;
use distlto_executor::result::Key;
use distlto_executor::trace::Trace;
use distlto_executor::undeclared::Undeclared;
use distlto_executor::verify::Expectation;
use distlto_planner::{contents, module};
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Native, bitcode_of};
use distlto_prepare::mutex::lock;
use distlto_prepare::write::write_atomically;
use distlto_record::action::EngineTimes;
use distlto_record::report::{Measured, Span};

use super::import_steps::PendingStep;
use super::link::Link;
use super::module_record::RecordedObject;
use super::progress::LinkProgress;
use super::protocol::{Answer, Compiled};
use super::socket::{Connection, read};
use crate::link::file_state::FileState;

/// Interval of checks whether the run is cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// The compilations of one linker.
pub struct Compilations<'a> {
    connection: &'a Connection,
    progress: &'a Mutex<LinkProgress>,
    /// Where the linker runs.
    directory: PathBuf,
    link: &'a Link<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A module that waits.
pub struct Waiting {
    /// Its number.
    pub number: usize,
    /// Its key in caches and its files; `None` if no cache is asked by that key.
    pub cached: Option<CachedModule>,
    /// The import step that may spare the compilation.
    pub step: Option<PendingStep>,
    /// That key, if an engine may compile the module, which has another one there.
    pub other_key: Option<Key>,
}

/// A module with a key in caches.
pub struct CachedModule {
    pub id: String,
    pub key: Key,
    /// The file that holds it, and where in it, unless it is the whole file.
    pub container: (PathBuf, Option<Range<usize>>),
    pub shard: Vec<u8>,
    /// The files that hold it and its imports, when the linker asked.
    pub read: Vec<FileState>,
}

impl CachedModule {
    fn expectation(&self) -> Result<Expectation, IoError> {
        let (file, range) = &self.container;
        let failed = IoError::on("read", file);
        let bytes = Input::open(file).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let bytes = range.clone().map_or(Some(&*bytes), |range| bytes.get(range)).unwrap_or_default();
        let bytes = bitcode_of(bytes).unwrap_or(bytes);
        let native = module::read(bytes).ok().and_then(|module| Native::of_triple(&module.triple));
        // A table that LLVM would make anew is no reason for a refusal: then less is known.
        let contents = contents::required(bytes, Some(&self.shard), &self.id).unwrap_or_default();
        Ok(Expectation { native, contents })
    }
}

#[derive(Default)]
struct State {
    /// The modules that wait, by their labels.
    waiting: HashMap<String, Arc<Waiting>>,
    ended: HashMap<u32, Compilation>,
    /// By the labels of their modules.
    objects: HashMap<String, LinkerObject>,
    is_gone: bool,
    has_failed: bool,
}

/// A compilation that has ended, with its object and the module after its imports.
struct Compilation {
    compiled: Compiled,
    object: Option<File>,
    imported: Option<File>,
}

/// An object that the linker has compiled.
pub struct LinkerObject {
    pub file: File,
    /// The module after its imports, if the linker has shown it.
    pub imported: Option<File>,
    /// The object of the last link, if this is the same.
    pub same: Option<RecordedObject>,
    /// The text that the linker printed during the compilation.
    pub warnings: String,
}

impl<'a> Compilations<'a> {
    pub fn new(connection: &'a Connection, progress: &'a Mutex<LinkProgress>, link: &'a Link<'a>) -> Self {
        let directory = link.absolute_root();
        Self { connection, progress, directory, link, state: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A module is about to wait.
    pub fn add(&self, label: &str, waiting: Waiting) {
        self.lock().waiting.insert(label.to_owned(), waiting.into());
    }

    fn waiting(&self, label: &str) -> Option<Arc<Waiting>> {
        self.lock().waiting.get(label).map(Arc::clone)
    }

    /// The linker has ended a compilation.
    pub fn ended(&self, compiled: Compiled, object: Option<File>, imported: Option<File>) {
        self.lock().ended.insert(compiled.ticket, Compilation { compiled, object, imported });
        self.changed.notify_all();
    }

    /// The linker is gone.
    pub fn end(&self) {
        self.lock().is_gone = true;
        self.changed.notify_all();
    }

    /// The object of a module that has one now, if the linker has compiled it.
    pub fn take(&self, label: &str) -> Option<LinkerObject> {
        let mut state = self.lock();
        state.waiting.remove(label);
        state.objects.remove(label)
    }

    /// Performs an import step; gives the linker the object of the last link if the module is the same after its imports.
    fn same_imports(
        &self,
        request: &ExecutionRequest<'_>,
        ticket: u32,
        step: &PendingStep,
    ) -> Result<Option<Executed>, IoError> {
        let link = self.link;
        if !link.import_steps.pay() {
            return Ok(None);
        }
        let begun = Instant::now();
        let tools = (link.build.spawner as &dyn Spawner, request.cancel);
        let imported = import(&step.words, link.directory.as_deref(), &step.folder, tools);
        let is_same =
            imported.as_ref().is_ok_and(|(digest, _)| digest.to_string() == step.earlier.provenance.imported);
        let object = if is_same { link.objects().open(&step.earlier) } else { None };
        link.import_steps.performed(object.is_some());
        let (Some(file), Ok((_, cpu))) = (object, &imported) else {
            if let Err(why) = imported
                && !request.cancel.is_cancelled()
            {
                link.note(&format!("no import step for {}: {why}", request.job.label));
            }
            return Ok(None);
        };
        if let Some(output) = request.outputs.first() {
            let object = file.try_clone().and_then(|file| read(Some(file)));
            write_atomically(&output.file, &object.map_err(IoError::on("read", "an object of the store"))?)?;
        }
        self.connection.give(ticket, &file)?;
        let took = Duration::from_micros(step.earlier.took_us);
        let object =
            LinkerObject { file, imported: None, same: Some(step.earlier.clone()), warnings: String::new() };
        self.lock().objects.insert(request.job.label.clone(), object);
        let measured = Measured { wall: begun.elapsed(), cpu: Some(*cpu), ..Measured::default() };
        Ok(Some(executed(measured, begun, Undeclared::default(), Some(took))))
    }

    /// Whether the linker has failed to compile a module, or has ended meanwhile. It reports that itself.
    pub fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    /// Waits for the end of a compilation; `None` if there will be none, or none is wanted.
    fn wait(&self, ticket: u32, request: &ExecutionRequest<'_>) -> Option<Compilation> {
        let mut state = self.lock();
        loop {
            if let Some(ended) = state.ended.remove(&ticket) {
                return Some(ended);
            }
            if state.is_gone || request.cancel.is_cancelled() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the further reads and the printed text of a compilation.
    fn observed(&self, compiled: Compiled, begun: SystemTime) -> io::Result<(Undeclared, String)> {
        let Some(notes) = &self.link.notes else { return Ok((Undeclared::unobserved(), String::new())) };
        if !compiled.is_noted {
            return Ok(Default::default());
        }
        let mut trace = Trace::read(notes, &self.directory)?;
        let backend = trace.backends.remove(&compiled.ticket).unwrap_or_default();
        let trace = Trace { files: backend.files, is_cut: trace.is_cut, ..Trace::default() };
        let nothing = || std::iter::empty();
        let undeclared = Undeclared::of(&trace, (&self.directory, begun), nothing(), nothing());
        Ok((undeclared, String::from_utf8_lossy(&backend.printed).into_owned()))
    }
}

impl Linker for Compilations<'_> {
    fn key(&self, label: &str) -> Option<Key> {
        self.waiting(label)?.cached.as_ref().map(|cached| cached.key)
    }

    fn other_key(&self, label: &str) -> Option<Key> {
        self.waiting(label)?.other_key
    }

    fn expectation(&self, label: &str) -> Result<Expectation, IoError> {
        let waiting = self.waiting(label);
        let cached = waiting.as_ref().and_then(|waiting| waiting.cached.as_ref());
        cached.map_or(Ok(Expectation::default()), CachedModule::expectation)
    }
}

impl Execute for Compilations<'_> {
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause> {
        let label = &request.job.label;
        let interrupted = || Cause::Interrupted { label: label.to_owned() };
        let io = |source| Cause::Io { label: label.to_owned(), source };
        let waiting = self.waiting(label);
        let ticket =
            waiting.as_ref().and_then(|waiting| lock(self.progress).modules[waiting.number].ticket.take());
        // It has an answer already.
        let ticket = ticket.ok_or_else(interrupted)?;
        if let Some(step) = waiting.as_ref().and_then(|waiting| waiting.step.as_ref())
            && let Some(executed) = self.same_imports(request, ticket, step).map_err(io)?
        {
            return Ok(executed);
        }
        let (begun, at) = (Instant::now(), SystemTime::now());
        self.connection.answer(ticket, Answer::Compile).map_err(io)?;
        let ended = self.wait(ticket, request);
        let Some(Compilation { compiled, object: Some(file), imported }) = ended else {
            self.lock().has_failed = true;
            return Err(interrupted());
        };
        let measured = Measured {
            wall: begun.elapsed(),
            cpu: Some(Duration::from_micros(compiled.cpu_us)),
            ..Measured::default()
        };
        let observed = self.observed(compiled, at).map_err(IoError::on("read", "the linker's notes"));
        let (mut undeclared, warnings) = observed.map_err(io)?;
        // Caches must not have the object of an error, or that of a module that has changed meanwhile.
        let mut inputs =
            waiting.iter().filter_map(|waiting| waiting.cached.as_ref()).flat_map(|cached| &cached.read);
        let is_doubtful = !warnings.is_empty() || inputs.any(|file| !file.holds());
        undeclared.is_more |= !request.outputs.is_empty() && is_doubtful;
        if let Some(output) = request.outputs.first() {
            let object = file.try_clone().and_then(|file| read(Some(file)));
            let object = object.map_err(IoError::on("read", "an object of the linker")).map_err(io)?;
            write_atomically(&output.file, &object).map_err(io)?;
        }
        let object = LinkerObject { file, imported, same: None, warnings };
        self.lock().objects.insert(label.to_owned(), object);
        Ok(executed(measured, begun, undeclared, None))
    }
}

fn executed(
    measured: Measured,
    begun: Instant,
    undeclared: Undeclared,
    same_imports: Option<Duration>,
) -> Executed {
    Executed {
        status: ExitStatus::from_raw(0),
        stdout: Captured::default(),
        stderr: Captured::default(),
        measured,
        span: Span::since(begun),
        interrupted: false,
        worker: None,
        times: EngineTimes::default(),
        kept: false,
        same_imports,
        undeclared,
    }
}
