//! Runs the backends of one link while its linker asks for them, and gives the linker each object as it is made.
//!
//! Does not depend on where objects are kept otherwise.

use std::fs::File;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use distlto_executor::describe::Described;
use distlto_executor::execute::Linker;
use distlto_executor::execute::remote::link_list::KnownObject;
use distlto_executor::process_stat::resident;
use distlto_executor::result::Key;
use distlto_executor::run::{self, Hooks, Made};
use distlto_executor::schedule::Policy;
use distlto_executor::schedule::tokens::JobSlots;
use distlto_planner::digests::Digest;
use distlto_planner::graph::ActionId;
use distlto_planner::keep::ModulePlaces;
use distlto_planner::state::Place;
use distlto_prepare::blobs::from_hex;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::warning::warn;
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::{Failure, Measured, microseconds};

use super::compilations::{Compilations, LinkerObject};
use super::link::Link;
use super::module::LinkModule;
use super::module_record::RecordedObject;
use super::progress::{LinkProgress, end_run};
use super::socket::{Connection, read};
use crate::link::error::LinkError;
use crate::run_args::Assembly;

/// Runs the backends that a linker asks for, or has the linker run them.
pub fn run_backends(
    link: &Link<'_>,
    progress: &Mutex<LinkProgress>,
    connection: &Connection,
    incoming: run::Incoming,
    linker: Option<(&Compilations<'_>, Sender<NewObject>)>,
) -> Result<u8, LinkError> {
    let build = link.build;
    let args = &build.options.run;
    let slots = JobSlots::usable(connection.process);
    let state = link.here(link.state());
    let is_described = link.settings.is_described;
    let store = args.cache.results(build.store().cloned(), build.cancel);
    // The store has been asked by the linker's key.
    let store = store.filter(|_| is_described || args.cache.cache_shared);
    let (servers, run) = (link.servers.connected()?, (build.spawner, build.cancel));
    let assembly = Assembly::with_servers(args, store, servers, run);
    let history = Place::History.path(&state);
    let mut options = assembly.options(&*link.reporter, Some(&history), link.settings.jobs);
    // The linker stays for the whole link.
    options.beside = resident(connection.process).unwrap_or(0);
    options.directory = link.directory.as_deref();
    options.slots = slots.as_ref();
    options.cc1_commands = Some(&link.cc1_commands);
    options.digests = Some(&link.digests);
    let keep_failed = |id: ActionId| {
        let progress = lock(progress);
        link.command_line(&progress.modules[progress.actions[id.index()]])
    };
    options.keep_failed = Some(&keep_failed);
    if linker.is_some() && !is_described {
        // The linker goes on after an error.
        options.policy = Policy::KeepGoing;
    }
    options.linker = linker.as_ref().map(|(linker, _)| *linker as &dyn Linker);
    let list = link.asks_caches().then(|| Described::of_key(&link.list_key()));
    let list = options.engine.zip(list.as_ref());
    if let Some((engine, list)) = list {
        engine.fetch_link(list);
    }
    let hooks = LinkHooks { link, progress, connection, linker };
    let (_, report) = run::run_arriving(incoming, &options, &hooks);
    if let Some((engine, list)) = list {
        let modules: Vec<_> = lock(progress).modules.iter().filter_map(cached_object).collect();
        engine.keep_link(list, modules.into_iter());
        link.reporter.report(ProgressEvent::Engines(&engine.engines()));
    }
    Ok(report.exit_code())
}

/// The digest of a module's action in caches, and that of its object if it was found here.
fn cached_object(module: &LinkModule) -> Option<(Digest, Option<KnownObject>)> {
    let action = Described::of_key(&Key(from_hex(&module.key)?)).encoded.digest();
    let object = module.object.as_ref().filter(|object| !object.provenance.depends_on_directory());
    let known = object.and_then(|object| {
        let digest = Digest::parse(&object.files.first()?.1)?;
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
pub fn keep_objects(link: &Link<'_>, progress: &Mutex<LinkProgress>, objects: Receiver<NewObject>) {
    for object in objects {
        if let Err(error) = keep_object(link, progress, object) {
            // Then nothing is known of it.
            warn(format_args!("an object is not kept: {error}"));
        }
    }
}

fn keep_object(link: &Link<'_>, progress: &Mutex<LinkProgress>, new: NewObject) -> Result<(), IoError> {
    let NewObject { action, number, file, imported, same, measured } = new;
    let bytes = read(Some(file)).map_err(IoError::on("read", "an object of the linker"))?;
    let mut object = recorded(link, &lock(progress).modules[number], (&bytes, measured))?;
    if let Some(same) = same {
        object.provenance.imported = same.provenance.imported;
    } else if let Some(imported) = imported {
        let imported = read(Some(imported)).map_err(IoError::on("read", "a module of the linker"))?;
        object.provenance.imported = Digest::of(&imported).to_string();
    }
    link.reporter.wrote(action, object.files.clone());
    if object.warnings.is_empty() && !object.provenance.is_unseen {
        link.objects().keep_bytes(&object, &bytes, measured);
    } else {
        lock(progress).printed.push((object.clone(), bytes, measured));
    }
    lock(progress).modules[number].object = Some(object);
    Ok(())
}

fn recorded(
    link: &Link<'_>,
    module: &LinkModule,
    (bytes, measured): (&[u8], Measured),
) -> Result<RecordedObject, IoError> {
    let name = ModulePlaces::of(link.state(), &module.label).object;
    let files = vec![(name, Digest::of(bytes).to_string())];
    module.recorded(files, microseconds(measured.wall), &link.digests)
}

/// Gives the linker each object as it is made, and records it.
struct LinkHooks<'a> {
    link: &'a Link<'a>,
    progress: &'a Mutex<LinkProgress>,
    connection: &'a Connection,
    /// The linker, if it compiles itself, and where its objects go.
    linker: Option<(&'a Compilations<'a>, Sender<NewObject>)>,
}

impl LinkHooks<'_> {
    fn keep(&self, action: ActionId, made: &Made<'_>) -> Result<(), IoError> {
        let link = self.link;
        let mut progress = lock(self.progress);
        let number = progress.actions[action.index()];
        let module = &mut progress.modules[number];
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
            progress.answered = Some(Instant::now());
            // The receiver lives as long as this run.
            let _ = keeper.send(new);
            return Ok(());
        }
        let places = ModulePlaces::of(link.state(), &module.label);
        let dwo = link.settings.flags.dwo(&module.label);
        let files: Vec<_> = [Utf8PathBuf::from(places.object)].into_iter().chain(dwo).collect();
        module.undeclared = made.undeclared.clone();
        made.stderr.clone_into(&mut module.warnings);
        // An input that changed meanwhile fails the job, so the key is that of the compiled content.
        // A cached result took its time elsewhere.
        let spared = made.measured.spared_us.map(|us| Duration::from_micros(us.get()));
        let measured = Measured { wall: spared.unwrap_or(made.measured.wall), ..made.measured };
        let files = link.digests.written(files.iter().map(|file| file.as_path()))?;
        let object = module.recorded(files, microseconds(measured.wall), &link.digests)?;
        module.object = Some(object.clone());
        module.ran = true;
        let ticket = module.ticket.take();
        progress.answered = Some(Instant::now());
        drop(progress);
        link.objects().keep(&object, measured);
        let path = link.here(&object.files[0].0);
        link.reporter.wrote(action, object.files);
        let Some(ticket) = ticket else { return Ok(()) };
        let file = File::open(&path).map_err(IoError::on("read", &path))?;
        self.connection.give(ticket, &file)
    }

    /// An action has ended. Where nothing more is to run after a failure the linker ends.
    fn ended(&self, action: ActionId) {
        let mut progress = lock(self.progress);
        progress.open -= 1;
        progress.running.remove(&action);
        let keeps_going = self.link.build.options.run.keep_going;
        let is_over = progress.has_failed && progress.running.is_empty() && !keeps_going;
        drop(progress);
        if is_over {
            end_run(self.progress, self.connection);
        }
    }
}

impl Hooks for LinkHooks<'_> {
    fn started(&self, action: ActionId) {
        lock(self.progress).running.insert(action);
    }

    fn finished(&self, action: ActionId, made: &Made<'_>) {
        if let Err(error) = self.keep(action, made) {
            let mut progress = lock(self.progress);
            progress.has_failed = true;
            progress.error.get_or_insert(error.into());
        }
        self.ended(action);
    }

    fn failed(&self, action: ActionId, _: &Failure) {
        lock(self.progress).has_failed = true;
        self.ended(action);
    }

    fn abandoned(&self, action: ActionId) {
        let has_failed = self.linker.as_ref().is_some_and(|(linker, _)| linker.has_failed());
        lock(self.progress).has_failed |= has_failed && self.link.settings.is_described;
        self.ended(action);
    }
}
