//! The service: runs a command with the hook in its processes, and answers its linkers.
//!
//! The user's command is unchanged: it prints, reads, writes and returns the same as without the service. Each linker
//! that asks is a link of its own ([`link`]), with its state held while it runs. Does not depend on how backends are
//! run.
//!
//! # Why the linker is asked from within
//!
//! A second link in place of the first resolves symbols anew. It can differ in the prevailing weak definition, in the
//! order of constructors and in the extracted members. lld's ThinLTO cache has no such problem: since version 15, lld
//! asks it for each module on the thread that waits for the object. lld links the answer like an object of its own.
//! lld's DTLTO needs version 21, drops options, and writes members and shards to files in every link. If the service
//! fails, the linker compiles by itself.
//!
//! lld's key covers the module, its imports, the summaries and the LTO options. It covers neither `-mllvm` options and
//! their files nor the compiler, so [`settings`] adds a digest of these.

mod action_records;
mod answering;
mod asking;
mod backends;
mod callers;
pub(crate) mod collected;
mod command;
mod compilations;
pub(crate) mod describe;
mod distributing;
pub(crate) mod graph;
mod import_steps;
mod jobs;
mod kept;
mod key_parts;
mod libraries;
mod link;
pub(crate) mod linkers;
pub(crate) mod module;
pub(crate) mod module_record;
pub(crate) mod modules;
pub(crate) mod objects;
mod observed;
mod preview;
mod process;
#[expect(dead_code, reason = "the other half is compiled into the hook")]
mod protocol;
mod result;
pub(crate) mod settings;
mod socket;
pub mod static_linker;
mod usage;
mod whole_link;

use std::ffi::OsString;
use std::fs::{self};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use camino::Utf8PathBuf;
use distlto_exec::environment::SERVICE;
use distlto_executor::cache::store::Cache;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::hook;
use distlto_planner::digests::FileDigests;
use distlto_planner::keep;
use distlto_planner::link_command::LinkCommand;
use distlto_planner::state::Place;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::prune::space;
use distlto_prepare::threads;
use distlto_prepare::warning::warn;
use distlto_prepare::write::remove;
use distlto_record::progress::text;
use distlto_record::progress::{Phase, Profile, Progress, ProgressEvent, Reporter, Style};
use distlto_record::usage::LinkUsage;

use crate::link::file_state::Start;
use crate::link::state::{self, LinkState};
use crate::link::{LinkError, LinkOptions, Session, dry_run, identity};
use crate::tool::ToolRunner;
use crate::unoptimised::are_unoptimised;
use action_records::ActionRecords;
use callers::Shared;
use collected::Task;
use key_parts::Identity;
use libraries::Libraries;
use link::{Outcome, Served};
use linkers::Linkers;
use module::LinkModule;
use module_record::PreviousModules;
use observed::{Observed, Previous};
use settings::CompileSettings;
use socket::{Caller, Listener};

/// Fewer open files than this are too few for a link of many modules.
const FILES: u64 = 64;
/// Why a linker that may ask does not.
const NO_THIN_LTO: &str = "no input is ThinLTO bitcode";

/// The context for running a command and its links.
pub struct Service<'a> {
    /// The user's command.
    pub command: &'a [Word],
    pub options: &'a LinkOptions,
    pub spawner: &'a LocalSpawner,
    pub cancel: &'a Cancel,
    pub reporter: &'a Reporter,
    pub key: &'a state::LinkKey,
    /// The state directory of the link that the command is, where it is one; a build has many links.
    pub single: Option<String>,
    /// Variables of the command beside those of this process.
    pub variables: Vec<(String, OsString)>,
    /// The task for its links.
    pub task: Task<'a>,
    /// Whether all processes of the command note their file accesses: those of a driver or a linker.
    pub is_observed: bool,
    /// The store, once a link needs it.
    pub store: OnceLock<Option<Arc<Cache>>>,
    /// The links so far.
    pub usage: Mutex<Vec<LinkUsage>>,
}

/// How a command ended.
pub struct Ended {
    /// Its own exit code.
    pub code: u8,
    /// Whether one of its processes was a linker.
    pub has_linker: bool,
    /// Whether a preview of a link was printed.
    pub is_previewed: bool,
    /// An error of the service itself; a linker without an answer has gone on by itself.
    pub error: Option<LinkError>,
    /// The file accesses of its processes.
    observed: Vec<Observed>,
    /// The state that was held and that no served link has taken.
    pub held: Option<LinkState>,
    /// When it ended.
    at: Instant,
    /// The folders of the service, whose files are no inputs of a link.
    folders: Vec<PathBuf>,
}

/// A link that was served, and all that is kept of it.
pub struct ServedLink {
    link: LinkCommand,
    state: LinkState,
    /// The reporter for a link of a build; a command with one link has its own.
    reporter: Option<Reporter>,
    compilation: CompileSettings,
    digests: FileDigests,
    earlier: PreviousModules,
    served: Served,
    start: Start,
    /// The program from before the link, unless it is settled when the command ends.
    previous: Option<Previous>,
    directory: Option<PathBuf>,
}

/// Runs a command and answers its linkers, and keeps no state.
pub fn run_once(
    command: &[Word],
    options: &LinkOptions,
    cancel: &Cancel,
    task: Task<'_>,
) -> Result<Ended, LinkError> {
    let place = ServicePlace::make()?;
    let spawner = options.run.spawner();
    let reporter = dry_run::reporter(options)?;
    let key = state::key(command, options);
    let service = Service {
        command,
        options,
        spawner: &spawner,
        cancel,
        reporter: &reporter,
        key: &key,
        single: None,
        variables: Vec::new(),
        is_observed: matches!(task, Task::Collect(_)),
        task,
        store: OnceLock::new(),
        usage: Mutex::default(),
    };
    Ok(service.run(&place, None)?.0)
}

/// The socket of a service, and the libraries for the processes of its command.
pub struct ServicePlace {
    listener: Listener,
    libraries: Libraries,
}

impl ServicePlace {
    /// Makes them.
    pub fn make() -> Result<Self, LinkError> {
        let hook = hook::find_library().ok_or_else(|| LinkError::NoHook {
            lack: hook::lack_of_library().unwrap_or_else(|| "the hook is off".to_owned()),
        })?;
        std::env::current_dir().map_err(IoError::on("find", "the working directory"))?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if let Some(limit) = limit.filter(|limit| *limit < FILES) {
            return Err(LinkError::FewFiles { limit, needed: FILES });
        }
        let listener = Listener::new()?;
        let libraries = Libraries::place(&hook, listener.folder())?;
        Ok(Self { listener, libraries })
    }
}

/// Whether this process runs within a command that a service of this user answers.
pub fn is_served() -> bool {
    std::env::var_os(SERVICE).is_some_and(|folder| Caller::connect(Path::new(&folder)).is_ok())
}

impl Ended {
    /// The files that its processes have read and have not written, below the directory without it.
    pub fn files_read(&self) -> Result<Vec<Utf8PathBuf>, IoError> {
        observed::files_read(&self.observed, &self.folders)
    }
}

impl Service<'_> {
    /// Runs the command to its end, and answers its linkers. `held` is the state of a link of it.
    pub fn run(
        &self,
        place: &ServicePlace,
        held: Option<LinkState>,
    ) -> Result<(Ended, Vec<ServedLink>), LinkError> {
        let ServicePlace { listener, libraries } = place;
        let (end, ended) = std::io::pipe().map_err(IoError::on("make", "a pipe"))?;
        let shared = Shared {
            service: self,
            linkers: Linkers::default(),
            listener,
            held: Mutex::new(held),
            links: Mutex::default(),
            previous: Mutex::default(),
            observed: Mutex::default(),
            error: Mutex::default(),
            damaged: Mutex::default(),
            nameless: Mutex::default(),
            is_previewed: AtomicBool::new(false),
            has_linker: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            files: Mutex::default(),
            folders: AtomicUsize::new(0),
        };
        let (code, at) = thread::scope(|scope| {
            let listening = threads::start_in(scope, "service", || shared.listen(scope, end.as_fd()));
            listening.map_err(IoError::on("start", "a thread for the service"))?;
            let code = command::run(self, libraries, listener.folder());
            // Also where the command could not be run: nobody is to wait for a silent caller.
            drop(ended);
            shared.is_over.store(true, Ordering::Relaxed);
            Ok::<_, LinkError>((code?, Instant::now()))
        })?;
        let files = lock(&shared.files).as_ref().map(|files| files.path().to_owned());
        let ended = Ended {
            code,
            has_linker: shared.has_linker.into_inner(),
            is_previewed: shared.is_previewed.into_inner(),
            observed: shared.observed.into_inner().unwrap_or_else(PoisonError::into_inner),
            error: shared.error.into_inner().unwrap_or_else(PoisonError::into_inner),
            held: shared.held.into_inner().unwrap_or_else(PoisonError::into_inner),
            at,
            folders: [listener.folder(), libraries.folder()]
                .map(Path::to_owned)
                .into_iter()
                .chain(files)
                .collect(),
        };
        let previous = shared.previous.into_inner().unwrap_or_else(PoisonError::into_inner);
        for previous in previous {
            // The linker may have gone on by itself, and a driver removes the program after its linker failed.
            let replaced = previous.is_replaced();
            previous.settle(replaced, &ended.observed)?;
        }
        Ok((ended, shared.links.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Reports one link of a build, quietly: the build prints too.
    fn build_reporter(&self) -> Result<Reporter, LinkError> {
        let style = self.options.run.style();
        let style = Style { quiet: style.quiet || !(style.verbose || style.json), ..style };
        Ok(Reporter::new(Profile::COMMAND, style, None, None)?)
    }

    /// The store; in a dry run one that is there.
    fn store(&self) -> &Option<Arc<Cache>> {
        let cache = &self.options.run.cache;
        let is_used = !self.options.dry_run || cache.has_store();
        self.store.get_or_init(|| is_used.then(|| cache.store(self.cancel)).flatten())
    }

    fn session<'s>(
        &'s self,
        link: &'s LinkCommand,
        directory: &'s str,
        reporter: &'s Reporter,
    ) -> Session<'s> {
        Session {
            link,
            directory,
            earlier: directory,
            options: self.options,
            cancel: self.cancel,
            spawner: self.spawner,
            reporter,
            key: self.key,
            store: self.store().clone(),
        }
    }

    /// Saves a link's plan, objects and reads, or puts the earlier program back. `ended` is how the command ended,
    /// for a command that is one link; a link of a build has succeeded if its output is another file. Returns the
    /// exit code.
    pub fn conclude(&self, link: ServedLink, ended: Option<&Ended>) -> Result<u8, LinkError> {
        let ServedLink {
            link,
            state,
            reporter,
            compilation,
            digests,
            earlier,
            mut served,
            start,
            previous,
            directory,
        } = link;
        let reporter = reporter.as_ref().unwrap_or(self.reporter);
        let session = self.session(&link, state.directory(), reporter);
        let output = directory.clone().unwrap_or_default().join(link.line.output());
        let code = match (&served.outcome, ended) {
            (Outcome::Answered, Some(ended)) => ended.code,
            (Outcome::Answered, None) => u8::from(previous.is_none()),
            // The run has reported the failure, and its exit code says more than the linker's.
            (Outcome::Failed(code), _) => *code,
            (Outcome::Broken(_) | Outcome::Anew, _) => 1,
        };
        let observed = ended.map_or(&[][..], |ended| &ended.observed);
        let is_whole = code == 0 && served.modules.is_empty();
        let inputs =
            || observed::line_inputs(directory.as_deref().unwrap_or(Path::new("")), link.line.arguments());
        let passes = is_whole && usage::has_bitcode(inputs().into_iter().map(|(path, _)| path));
        let passed = if passes { self.pass_through(&output, NO_THIN_LTO) } else { Ok(()) };
        if passed.is_err() {
            // The next build would take it for the link's, and not link again.
            remove(&output)?;
        }
        previous.map_or(Ok(()), |previous| previous.settle(code == 0 && passed.is_ok(), observed))?;
        if is_whole {
            if ended.is_some() {
                session.say_why_whole(NO_THIN_LTO);
            }
            state.discard()?;
            return passed.map(|()| 0);
        }
        let mut graph = None;
        if code == 0 {
            let found = served.modules.iter().filter(|module| !module.ran);
            let records =
                ActionRecords { directory: session.directory, earlier: &earlier, compilation: &compilation };
            let first = served.modules.iter().filter(|module| module.file.is_some()).count();
            let found = found.enumerate().map(|(at, module)| records.kept(first + at, module)).collect();
            reporter.record_more_actions(found);
            let root = directory.as_deref().unwrap_or(Path::new("."));
            let objects = session.objects(root);
            served
                .printed
                .iter()
                .for_each(|(object, bytes, measured)| objects.keep_bytes(object, bytes, *measured));
            let observed = ended.filter(|_| self.is_observed);
            let read = observed.map(|ended| {
                let mut read =
                    observed::read(&session, &compilation, self.command, &ended.observed, &ended.folders);
                let records = served.modules.iter().filter_map(|module| module.flags.file.as_ref());
                read.reads.observed(records.map(|file| std::path::absolute(file).unwrap_or_default()));
                let objects = served.modules.iter().filter_map(|module| module.object.as_ref());
                // Split debug information.
                let beside = objects.clone().flat_map(|object| object.files.iter().skip(1));
                beside.for_each(|(path, _)| read.outputs.file(root.join(path)));
                read.reads.objects(objects);
                read
            });
            // As the linker has read them, which is their order on the line.
            let place = |path: &str| read.as_ref().map_or(0, |read| read.place(Path::new(path)));
            served.modules.sort_by_cached_key(|module| match &module.archive {
                Some((archive, offset)) => (place(archive), *offset, module.id.clone()),
                None => (place(&module.id), 0, module.id.clone()),
            });
            let finished = result::Finished {
                session: &session,
                compilation: &compilation,
                digests: &digests,
                modules: &served.modules,
                inputs: read.as_ref().map(|read| read.inputs(root)).unwrap_or_default(),
            };
            match finished.keep(read.map(|read| (read.reads, read.outputs, start))) {
                Ok(kept) => {
                    graph = Some(kept);
                    session.record_graph();
                }
                // The program is there.
                Err(LinkError::Io(error)) => warn(format_args!("nothing is kept of this link: {error}")),
                Err(error) => return Err(error),
            }
        }
        if code == 0 {
            warn_of_size(&session, &served.modules);
            // The linker has read them, and the store has them.
            let objects = Place::Objects.path(session.directory);
            match fs::remove_dir_all(&objects) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(IoError::on("remove", objects)(error).into());
                }
                _ => {}
            }
        }
        if let Some(answered) = served.answered {
            let end = ended.map_or_else(Instant::now, |ended| ended.at);
            reporter.report(ProgressEvent::Phase(Phase {
                name: "final link",
                start: answered,
                end: Some(end),
            }));
        }
        reporter.conclude(&output.to_string_lossy(), graph.as_ref(), None);
        let ended = match served.outcome {
            Outcome::Broken(error) => Err(error),
            _ => Ok(code),
        };
        session.keep(&ended);
        let unoptimised = code == 0
            && served.modules.iter().all(|module| module.imports.is_empty())
            && are_unoptimised(served.modules.iter().filter_map(|module| module.file.as_deref()));
        self.count(LinkUsage { unoptimised, ..reporter.usage() });
        ended
    }

    /// Returns the identity of the program that compiles and of its options, and writes a note of it to the state.
    fn identity(
        &self,
        session: &Session<'_>,
        compilation: &CompileSettings,
        root: &Path,
        digests: &FileDigests,
    ) -> Result<Identity, LinkError> {
        let runner = ToolRunner { spawner: self.spawner, cancel: self.cancel, directory: None };
        let lines = match &compilation.linker {
            Some(linker) => linker.libraries.iter().map(|library| identity::file_line(library)).collect(),
            None => identity::of(&compilation.compiler, session.link.installed.as_deref(), &runner),
        };
        keep::toolchain(session.directory, compilation.program(), &lines)?;
        let note = match &compilation.linker {
            Some(linker) => linker.content(session.store.as_deref().map(Cache::directory))?.into_bytes(),
            None => {
                let note = keep::toolchain_place(session.directory);
                fs::read(&note).map_err(IoError::on("read", &note))?
            }
        };
        Ok(compilation.identity(&note, root, digests)?)
    }
}

/// Says that a store cannot hold the objects of one link, so that the next link compiles some of them again.
fn warn_of_size(session: &Session<'_>, modules: &[LinkModule]) {
    let Some(limit) = session.store.as_ref().and_then(|store| store.size_limit()) else { return };
    let objects = modules.iter().filter_map(|module| module.object.as_ref());
    let size: u64 = objects.filter_map(|object| Some(space(object.output()?.size))).sum();
    if size > limit {
        warn(format_args!(
            "the objects of this link take {}, more than the store may hold ({}): raise --cache-size or DISTLTO_CACHE_SIZE",
            text::size(size),
            text::size(limit)
        ));
    }
}
