//! Runs the backends of one link while its linker asks for them, and gives the linker each object as it is made.
//!
//! Does not depend on where objects are kept otherwise.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use distlto_executor::action::digest_of;
use distlto_executor::describe::Described;
use distlto_executor::execute::Linker;
use distlto_executor::execute::remote::link_objects::KnownObject;
use distlto_executor::process_stat::resident;
use distlto_executor::result::Key;
use distlto_executor::run::{self, Hooks, Made};
use distlto_executor::schedule::Policy;
use distlto_executor::schedule::tokens::JobSlots;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::graph::ActionId;
use distlto_planner::keep::ModulePlaces;
use distlto_planner::state::Place;
use distlto_prepare::blobs::from_hex;
use distlto_prepare::io_error::IoError;
use distlto_prepare::limits::SystemLimit;
use distlto_prepare::mutex::lock;
use distlto_prepare::warning::warn;
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::{Failure, Measured, microseconds};

use super::answering::Answering;
use super::compilations::{Compilations, LinkerObject};
use super::link::read;
use super::module::LinkModule;
use super::module_record::RecordedObject;
use super::protocol::{Answer, PACKET};
use super::socket::{Caller, Received};
use crate::link::LinkError;
use crate::run_args::Assembly;

/// State shared by the thread that hears the linker and the one that runs backends.
#[derive(Default)]
pub struct Shared {
    pub modules: Vec<LinkModule>,
    /// The module of each action.
    pub actions: Vec<usize>,
    /// Actions that have been added and have not ended.
    pub open: usize,
    /// Those of them that run.
    pub running: HashSet<ActionId>,
    pub has_failed: bool,
    /// Whether the run has ended: nothing that is asked for will be made.
    pub is_over: bool,
    /// Whether the linker begins anew, without stable names.
    pub is_anew: bool,
    /// Objects whose compilation printed text, perhaps an error. lld writes an object after an error too, so these objects
    /// count only after the linker has succeeded.
    pub printed: Vec<(RecordedObject, Vec<u8>, Measured)>,
    pub error: Option<LinkError>,
    pub asked: Option<Instant>,
    pub answered: Option<Instant>,
}

/// Answers a question.
pub fn send(caller: &Caller, ticket: u32, answer: Answer) -> Result<(), IoError> {
    caller.send(&answer.to_bytes(ticket), &[]).map_err(IoError::on("answer", "the linker"))
}

/// Answers a question with an object.
pub fn give(caller: &Caller, ticket: u32, object: &Path) -> Result<(), IoError> {
    let file = File::open(object).map_err(IoError::on("read", object))?;
    give_file(caller, ticket, &file)
}

/// The same with an object in an open file.
pub fn give_file(caller: &Caller, ticket: u32, object: &File) -> Result<(), IoError> {
    caller
        .send(&Answer::Object.to_bytes(ticket), &[object.as_fd()])
        .map_err(IoError::on("answer", "the linker"))
}

/// Nothing more is made: a linker that waits for something ends.
pub fn over(shared: &Mutex<Shared>, caller: &Caller) {
    let mut shared = lock(shared);
    shared.is_over = true;
    if let Some(ticket) = shared.modules.iter_mut().find_map(|module| module.ticket.take()) {
        // One that is gone has ended.
        let _ = send(caller, ticket, Answer::End(1));
    }
}

/// Waits until a linker is gone.
pub fn wait(caller: &Caller) -> Result<(), IoError> {
    let heard = |error| IoError::on("hear", "the linker")(error);
    let mut bytes = vec![0; PACKET];
    while !matches!(caller.receive(&mut bytes, None).map_err(heard)?, Received::Gone) {}
    Ok(())
}

/// Ends a linker after an error, and waits until it is gone. It would go on by itself if it lost its service.
pub fn end(caller: &Caller) {
    if send(caller, 0, Answer::End(1)).is_err() {
        return;
    }
    let mut bytes = vec![0; PACKET];
    loop {
        match caller.receive(&mut bytes, None) {
            // Asked before the linker read its end, perhaps with a shard that finds no descriptor here.
            Ok(Received::Packet(..) | Received::Nothing) => {}
            Err(error) if SystemLimit::of_io(&error) == Some(SystemLimit::Files) => {}
            Ok(Received::Gone) | Err(_) => return,
        }
    }
}

/// Runs the backends that a linker asks for, or has the linker run them.
pub fn run_backends(
    answering: &Answering<'_>,
    shared: &Mutex<Shared>,
    caller: &Caller,
    incoming: run::Incoming,
    linker: Option<(&Compilations<'_>, Sender<NewObject>)>,
) -> Result<u8, LinkError> {
    let session = answering.session;
    let args = &session.options.run;
    let slots = JobSlots::usable(caller.process);
    let state = answering.here(session.directory);
    let is_described = answering.compilation.is_described;
    let store = args.cache.results(session.store.clone(), session.cancel);
    // The store has been asked by the linker's key.
    let store = store.filter(|_| is_described || args.cache.cache_shared);
    let (servers, run) = (answering.servers.connected()?, (session.spawner, session.cancel));
    let assembly = Assembly::with_servers(args, store, servers, run);
    let history = Place::History.path(&state);
    let mut options = assembly.options(session.reporter, Some(&history), answering.compilation.jobs);
    // The linker stays for the whole link.
    options.beside = resident(caller.process).unwrap_or(0);
    options.directory = answering.directory;
    options.slots = slots.as_ref();
    options.cc1_commands = Some(answering.cc1_commands);
    options.digests = Some(answering.digests);
    let keep_failed = |id: ActionId| {
        let shared = lock(shared);
        answering.command_line(&shared.modules[shared.actions[id.index()]])
    };
    options.keep_failed = Some(&keep_failed);
    if linker.is_some() && !is_described {
        // The linker goes on after an error.
        options.policy = Policy::KeepGoing;
    }
    options.linker = linker.as_ref().map(|(linker, _)| *linker as &dyn Linker);
    let list = answering.asks_caches.then(|| Described::of_key(&answering.list_key()));
    let list = options.engine.zip(list.as_ref());
    if let Some((engine, list)) = list {
        engine.fetch_link(list);
    }
    let hooks = Giving { answering, shared, caller, linker };
    let (_, report) = run::run_arriving(incoming, &options, &hooks);
    if let Some((engine, list)) = list {
        let modules: Vec<_> = lock(shared).modules.iter().filter_map(cached_object).collect();
        engine.keep_link(list, modules.into_iter());
        session.reporter.report(ProgressEvent::Engines(&engine.engines()));
    }
    Ok(report.exit_code())
}

/// The digest of a module's action in caches, and that of its object if it was found here.
fn cached_object(module: &LinkModule) -> Option<(distlto_reapi::Digest, Option<KnownObject>)> {
    let action = Described::of_key(&Key(from_hex(&module.key)?)).encoded.digest();
    let object = module.object.as_ref().filter(|object| !object.depends_on_directory());
    let known = object.and_then(|object| {
        let digest = digest_of(&Digest::parse(&object.files.first()?.1)?);
        Some(KnownObject { digest, took: Some(Duration::from_micros(object.took_us)) })
    });
    Some((action, known))
}

/// An object that the linker has compiled.
pub struct NewObject {
    action: ActionId,
    /// The number of its module.
    number: usize,
    file: File,
    /// The module after its imports, if the linker has shown it.
    imported: Option<File>,
    /// The object of the last link, if this is the same.
    same: Option<RecordedObject>,
    measured: Measured,
}

/// Keeps the objects that the linker compiles, beside the link.
pub fn keep_objects(answering: &Answering<'_>, shared: &Mutex<Shared>, objects: Receiver<NewObject>) {
    for object in objects {
        if let Err(error) = keep_object(answering, shared, object) {
            // Then nothing is known of it.
            warn(format_args!("an object is not kept: {error}"));
        }
    }
}

fn keep_object(answering: &Answering<'_>, shared: &Mutex<Shared>, new: NewObject) -> Result<(), IoError> {
    let NewObject { action, number, file, imported, same, measured } = new;
    let bytes = read(Some(file)).map_err(IoError::on("read", "an object of the linker"))?;
    let Answering { session, objects, digests, .. } = answering;
    let mut object = recorded(session.directory, &lock(shared).modules[number], (&bytes, measured), digests)?;
    if let Some(same) = same {
        object.imported = same.imported;
    } else if let Some(imported) = imported {
        let imported = read(Some(imported)).map_err(IoError::on("read", "a module of the linker"))?;
        object.imported = Digest::of(&imported).to_string();
    }
    session.reporter.wrote(action, object.files.clone());
    if object.warnings.is_empty() && !object.is_unseen {
        objects.keep_bytes(&object, &bytes, measured);
    } else {
        lock(shared).printed.push((object.clone(), bytes, measured));
    }
    lock(shared).modules[number].object = Some(object);
    Ok(())
}

fn recorded(
    state: &str,
    module: &LinkModule,
    (bytes, measured): (&[u8], Measured),
    digests: &FileDigests,
) -> Result<RecordedObject, IoError> {
    let name = ModulePlaces::of(state, &module.label).object;
    let files = vec![(name, Digest::of(bytes).to_string())];
    let took_us = microseconds(measured.wall);
    Ok(RecordedObject { took_us, ..RecordedObject::with_files(module, files, digests)? })
}

/// Gives the linker each object as it is made, and records it.
struct Giving<'a> {
    answering: &'a Answering<'a>,
    shared: &'a Mutex<Shared>,
    caller: &'a Caller,
    /// The linker, if it compiles itself, and where its objects go.
    linker: Option<(&'a Compilations<'a>, Sender<NewObject>)>,
}

impl Giving<'_> {
    fn keep(&self, action: ActionId, made: &Made<'_>) -> Result<(), IoError> {
        let answering = self.answering;
        let mut shared = lock(self.shared);
        let number = shared.actions[action.index()];
        let module = &mut shared.modules[number];
        if let Some((linker, keeper)) = &self.linker
            && let Some(object) = linker.take(&module.label)
        {
            module.undeclared = made.undeclared.clone();
            module.warnings = object.warnings;
            module.ran = object.same.is_none();
            let LinkerObject { file, imported, same, .. } = object;
            // The time of the backend that made it.
            let took = same.as_ref().map(|same| Duration::from_micros(same.took_us));
            let measured = Measured { wall: took.unwrap_or(made.measured.wall), ..made.measured };
            let new = NewObject { action, number, file, imported, same, measured };
            shared.answered = Some(Instant::now());
            // The receiver lives as long as this run.
            let _ = keeper.send(new);
            return Ok(());
        }
        let places = ModulePlaces::of(answering.session.directory, &module.label);
        let dwo = answering.compilation.flags.dwo(&module.label);
        let files = [Utf8PathBuf::from(places.object)].into_iter().chain(dwo);
        module.undeclared = made.undeclared.clone();
        made.stderr.clone_into(&mut module.warnings);
        // An input that changed meanwhile fails the job, so the key is that of the compiled content.
        // A cached result took its time elsewhere.
        let spared = made.measured.spared_us.map(|us| Duration::from_micros(us.get()));
        let measured = Measured { wall: spared.unwrap_or(made.measured.wall), ..made.measured };
        let object = RecordedObject {
            took_us: microseconds(measured.wall),
            ..RecordedObject::of(module, files, answering.digests)?
        };
        module.object = Some(object.clone());
        module.ran = true;
        let ticket = module.ticket.take();
        shared.answered = Some(Instant::now());
        drop(shared);
        answering.objects.keep(&object, measured);
        let path = answering.here(&object.files[0].0);
        answering.session.reporter.wrote(action, object.files);
        ticket.map_or(Ok(()), |ticket| give(self.caller, ticket, &path))
    }

    /// An action has ended. Where nothing more is to run after a failure the linker ends.
    fn ended(&self, action: ActionId) {
        let mut shared = lock(self.shared);
        shared.open -= 1;
        shared.running.remove(&action);
        let keeps_going = self.answering.session.options.run.keep_going;
        let is_over = shared.has_failed && shared.running.is_empty() && !keeps_going;
        drop(shared);
        if is_over {
            over(self.shared, self.caller);
        }
    }
}

impl Hooks for Giving<'_> {
    fn started(&self, action: ActionId) {
        lock(self.shared).running.insert(action);
    }

    fn finished(&self, action: ActionId, made: &Made<'_>) {
        if let Err(error) = self.keep(action, made) {
            let mut shared = lock(self.shared);
            shared.has_failed = true;
            shared.error.get_or_insert(error.into());
        }
        self.ended(action);
    }

    fn failed(&self, action: ActionId, _: &Failure) {
        lock(self.shared).has_failed = true;
        self.ended(action);
    }

    fn abandoned(&self, action: ActionId) {
        let has_failed = self.linker.as_ref().is_some_and(|(linker, _)| linker.has_failed());
        lock(self.shared).has_failed |= has_failed && self.answering.compilation.is_described;
        self.ended(action);
    }
}
