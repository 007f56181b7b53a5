//! Answers the processes of a command that connect, and finds the linkers among them.
//!
//! Does not answer a linker's questions (see `link`).

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use distlto_executor::cache::ResultCache;
use distlto_executor::cache::store::Cache;
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::trace;
use distlto_planner::digests::FileDigests;
use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_line::Argument;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::leftovers::RunDirectory;
use distlto_prepare::message::say;
use distlto_prepare::mutex::lock;
use distlto_prepare::threads;
use distlto_prepare::warning::warn;
use distlto_record::progress::{Phase, Progress, ProgressEvent};
use distlto_record::report::microseconds;
use distlto_record::usage::{LinkUsage, UsageCounts, servers as servers_of};

use super::answering::{Anew, Answering, BeforeAnew};
use super::asking::{Asking, Called};
use super::backends::end;
use super::collected::Task;
use super::distributing::remove_saved;
use super::import_steps::LinkImports;
use super::jobs::Distributing;
use super::kept;
use super::key_parts::Identity;
use super::link::{Outcome, Served};
use super::linkers::Linkers;
use super::module_record::PreviousModules;
use super::modules::{self, Temporaries};
use super::observed::{self, Observed, Previous};
use super::preview::{Heard, Seen};
use super::process::{Process, strings};
use super::protocol::{self, PACKET, Role};
use super::settings::{CompileSettings, LinkerCode};
use super::socket::{Caller, Listener, Received};
use super::whole_link::{LinkServers, WholeLink};
use super::{NO_THIN_LTO, ServedLink, Service, preview, usage};
use crate::cargo::without_lto;
use crate::link::file_state::Start;
use crate::link::state::LinkState;
use crate::link::{LinkError, Session};
use crate::scratch::{for_linkers, scratch};
use crate::stats;

/// Interval of checks whether the command is over, while a caller is silent.
const LOOK: Duration = Duration::from_millis(100);
/// Shared by the threads of a service.
pub struct Shared<'a> {
    pub service: &'a Service<'a>,
    pub linkers: Linkers,
    pub listener: &'a Listener,
    /// The state that is held already, for the link that it is of.
    pub held: Mutex<Option<LinkState>>,
    pub links: Mutex<Vec<ServedLink>>,
    /// The programs that were there before links that the service has given up.
    pub previous: Mutex<Vec<Previous>>,
    pub observed: Mutex<Vec<Observed>>,
    pub error: Mutex<Option<LinkError>>,
    /// The processes of linkers that have opened damaged objects.
    pub damaged: Mutex<HashSet<u32>>,
    /// The outputs of links that cannot have stable names for locals, and why.
    pub nameless: Mutex<HashMap<PathBuf, String>>,
    /// Whether a preview of a link was printed.
    pub is_previewed: AtomicBool,
    /// Whether a process was a linker.
    pub has_linker: AtomicBool,
    /// Whether the command has ended.
    pub is_over: AtomicBool,
    /// The folder for the files of linkers, made for the first.
    pub files: Mutex<Option<RunDirectory>>,
    /// How many folders linkers have got.
    pub folders: AtomicUsize,
}

impl<'a> Shared<'a> {
    /// Hears callers until the command has ended, each on a thread of its own.
    pub fn listen<'scope, 'env>(&'scope self, scope: &'scope Scope<'scope, 'env>, end: BorrowedFd<'_>) {
        loop {
            match self.listener.next(end) {
                Ok(Some(caller)) => {
                    // Without a thread the caller gets no answer, and goes on without.
                    let _ = threads::start_in(scope, "caller", move || self.hear(&caller));
                }
                Ok(None) => return,
                Err(error) => {
                    self.fail(IoError::on("hear", "the processes of the command")(error).into());
                    return;
                }
            }
        }
    }

    /// Takes the state of a link. Waits while another linker of this command holds it, or the same one before it
    /// began anew.
    fn hold(&self, directory: Option<&str>) -> Result<LinkState, LinkError> {
        loop {
            if let Some(held) =
                directory.and_then(|directory| lock(&self.held).take_if(|held| held.is_for(directory)))
            {
                return Ok(held);
            }
            if let Some(earlier) = directory.and_then(|directory| self.superseded(directory)) {
                return Ok(earlier.state);
            }
            match LinkState::open_or_scratch(directory) {
                Err(LinkError::Busy(busy)) if busy.holder == std::process::id().to_string() => {
                    if self.service.cancel.is_cancelled() {
                        return Err(LinkError::Busy(busy));
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                opened => return opened,
            }
        }
    }

    /// Takes over an ended link of this command if its program is linked again.
    fn superseded(&self, directory: &str) -> Option<ServedLink> {
        let mut links = lock(&self.links);
        let at = links.iter().position(|link| link.state.is_for(directory))?;
        Some(links.remove(at))
    }

    /// A folder for one linker.
    pub fn folder(&self, what: &str) -> Result<PathBuf, LinkError> {
        let number = self.folders.fetch_add(1, Ordering::Relaxed);
        let mut files = lock(&self.files);
        if files.is_none() {
            *files = Some(for_linkers()?);
        }
        let files = files.iter().map(RunDirectory::path).next().unwrap_or(self.listener.folder());
        let folder = files.join(format!("{what}-{number}"));
        fs::create_dir(&folder).map_err(IoError::on("create directory", &folder))?;
        Ok(folder)
    }

    /// Makes a linker stop after its thin link, and returns its shards.
    fn thin_link(
        &self,
        caller: &Caller,
        process: &Process,
        notes: Option<&File>,
        asking: &mut Asking,
    ) -> Result<Heard, LinkError> {
        let folder = self.folder("shards")?;
        if asking.compilation.is_distributed() {
            return self.thin_link_by_jobs(caller, process, notes, asking, &folder);
        }
        let list = format!("--thinlto-index-only={}", folder.join("list").display());
        let mut options = vec![list.into_bytes(), b"--thinlto-emit-index-files".to_vec()];
        options.extend(asking.compilation.resolving());
        give_role(caller, process, notes, Role::Collector, (&folder, &options))?;
        Ok(preview::hear(caller, &folder)?)
    }

    /// Reports the backends that a link would run.
    fn preview(
        &self,
        asking: &Asking,
        directory: Option<&str>,
        seen: Seen<'_>,
        elsewhere: Option<&Path>,
    ) -> Result<(), LinkError> {
        let service = self.service;
        let Asking { link, compilation, stable_names, .. } = asking;
        let there = directory.filter(|directory| Path::new(directory).is_dir());
        let held = there.map(|there| self.hold(Some(there))).transpose()?;
        let scratch = scratch("dry-run")?;
        let place = scratch.path().to_string_lossy();
        let earlier = held.as_ref().map_or(&*place, LinkState::directory);
        let session = Session { earlier, ..service.session(link, &place, service.reporter) };
        let root = elsewhere.unwrap_or(Path::new(""));
        let digests = FileDigests::new(root);
        let identity = service.identity(&session, compilation, root, &digests)?;
        let answering = Answering {
            session: &session,
            directory: elsewhere,
            compilation,
            identity: &identity,
            digests: &digests,
            earlier: &PreviousModules::of(earlier),
            objects: session.objects(root),
            cc1_commands: &Cc1Commands::default(),
            stable_names: *stable_names,
            asks_caches: false,
            is_new: false,
            imports: &LinkImports::default(),
            ask_compiler: &|| None,
            linker_ends: &|_| (),
            servers: &LinkServers::new(&service.options.run, service.cancel),
            before_anew: &|_| {},
            notes: None,
        };
        if preview::report(&answering, seen)? {
            self.is_previewed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn fail(&self, error: LinkError) {
        lock(&self.error).get_or_insert(error);
    }

    fn hear(&self, caller: &Caller) {
        if let Err(error) = self.meet(caller) {
            self.fail(error);
        }
    }

    /// Answers a process, to its end if it is a linker.
    fn meet(&self, caller: &Caller) -> Result<(), LinkError> {
        let failed = |error| IoError::on("answer", "a process of the command")(error);
        let mut bytes = vec![0; PACKET];
        let announced = loop {
            match caller.receive(&mut bytes, Some(LOOK)).map_err(failed)? {
                Received::Packet(bytes, None) if bytes == protocol::greeting() => break None,
                Received::Packet(bytes, Some(strings)) if bytes == protocol::announcement() => {
                    break Some(strings);
                }
                Received::Nothing if !self.is_over.load(Ordering::Relaxed) => {}
                _ => return Ok(()),
            }
        };
        if let Some(mut strings) = announced {
            let Ok(process) = Process::announced(caller.process, &mut strings) else { return Ok(()) };
            let line = self.line_without_hook(&process)?;
            let role = if line.is_some() { Role::Program } else { Role::None };
            let files: Vec<_> = line.iter().map(AsFd::as_fd).collect();
            return Ok(caller.send(&[role.to_byte()], &files).map_err(failed)?);
        }
        // One that is gone needs no answer.
        let Ok(process) = Process::of(caller.process) else { return Ok(()) };
        let native = if self.service.variables.is_empty() { None } else { without_lto(&process.words) };
        if let Some(words) = native {
            // Its children link without bitcode.
            let line = strings([&Word::new()].into_iter().chain(&words)).map_err(failed)?;
            return Ok(caller.send(&[Role::Program.to_byte()], &[line.as_fd()]).map_err(failed)?);
        }
        let mut called = self.called(&process)?;
        // Later, its build would take the link for a good one.
        if self.service.options.require
            && matches!((&called, &self.service.task), (Called::Link(_), Task::Link))
            && usage::lacks_thin_lto(usage::inputs(&process))
        {
            called = Called::Alone(NO_THIN_LTO.to_owned());
        }
        if !matches!(called, Called::Other) {
            self.has_linker.store(true, Ordering::Relaxed);
        }
        // Without memory for notes, the reads of the process are unknown.
        let is_noted = self.service.is_observed || matches!(called, Called::Link(_));
        let notes = is_noted.then(trace::notes).and_then(Result::ok);
        let asking = match called {
            Called::Link(asking) => asking,
            other => {
                let mut role = Role::None;
                if let Called::Alone(why) = other {
                    self.alone(&why);
                    if self.service.task.is_thin() {
                        role = Role::End;
                    } else if let Err(error) = self.pass_through(&process, &why) {
                        self.fail(error);
                        role = Role::Refused;
                    }
                }
                let files: Vec<_> = notes.iter().map(AsFd::as_fd).collect();
                caller.send(&[role.to_byte()], &files).map_err(failed)?;
                if self.service.is_observed {
                    lock(&self.observed).push(Observed { process, notes });
                }
                return Ok(());
            }
        };
        self.serve(caller, process, notes, *asking)
    }

    /// The settings of a link whose linker compiles; the list of kept objects needs them first.
    fn settings(
        &self,
        session: &Session<'_>,
        compilation: &CompileSettings,
        elsewhere: Option<&Path>,
    ) -> Result<Option<LinkSettings>, LinkError> {
        if compilation.linker.is_none() {
            return Ok(None);
        }
        LinkSettings::of(self.service, session, compilation, elsewhere).map(Some)
    }

    /// Makes a linker ask, or hand over its jobs. `kept` has objects of its last link.
    fn begin(
        &self,
        caller: &Caller,
        process: &Process,
        (kept, notes): (Option<&File>, Option<&File>),
        asking: &Asking,
        cache: &Path,
    ) -> Result<(), LinkError> {
        let (role, options) = match asking.compilation.is_distributed() {
            true => (Role::Distributing, self.service.handing_over(asking, None)?),
            false => (Role::Linker, self.service.options_for(asking, cache)),
        };
        Ok(give_role(caller, process, kept.into_iter().chain(notes), role, (cache, &options))?)
    }

    /// A link that a cache may have as a whole.
    fn whole_link<'p>(&self, process: &'p Process, asking: &Asking) -> Option<WholeLink<'p>> {
        let options = self.service.options;
        let has_modules = |file: &PathBuf| {
            classify_file(file).is_ok_and(|kind| {
                matches!(kind, Kind::Bitcode { .. } | Kind::FatLto(_) | Kind::Archive { .. })
            })
        };
        if !options.share_links || !options.asks_caches() || !usage::inputs(process).iter().any(has_modules) {
            return None;
        }
        let store = self.service.store().as_deref().map(Cache::directory);
        WholeLink::of(process, &asking.link, &asking.compilation, store)
    }

    /// Takes a link from a cache; returns whether its files are in their places.
    fn is_found_whole(
        &self,
        link: &WholeLink<'_>,
        servers: &LinkServers<'_>,
        output: &Path,
        begun: Instant,
    ) -> bool {
        // The link itself reports a server that cannot be used.
        let Some(engine) = servers.connected().ok().and_then(|servers| servers.engine) else { return false };
        let found = link.find(&engine);
        engine.troubles().iter().for_each(warn);
        let Some(took) = found else { return false };
        let service = self.service;
        let output = output.to_string_lossy();
        let (wall_us, spared_us) = (microseconds(begun.elapsed()), microseconds(took));
        service.count(LinkUsage {
            whole: true,
            counts: UsageCounts { wall_us, spared_us, ..UsageCounts::default() },
            servers: servers_of(&engine.engines()),
            ..stats::without_record(&output)
        });
        if service.options.run.verbose > 0 && !service.options.run.json {
            say(format_args!("distlto: {output}: a cache has the whole link"));
        }
        true
    }

    fn serve(
        &self,
        caller: &Caller,
        process: Process,
        notes: Option<File>,
        mut asking: Asking,
    ) -> Result<(), LinkError> {
        let service = self.service;
        let begun = Instant::now();
        let is_distributed = asking.compilation.is_distributed();
        let here = std::env::current_dir().unwrap_or_default();
        let elsewhere = Some(process.directory.clone()).filter(|directory| *directory != here);
        let place =
            |path: &str| elsewhere.as_ref().map_or_else(|| PathBuf::from(path), |from| from.join(path));
        let output = place(asking.link.line.output());
        let directory = service.options.record_of(&output.to_string_lossy());
        match service.task {
            Task::Link => {}
            Task::Preview => {
                // A driver removes them when its linker ends.
                let kept = temporaries(&asking.link);
                let seen = if asking.compilation.linker.is_some() && !asking.compilation.is_described {
                    let cache = self.folder("cache")?;
                    let process = process.writing_to(&cache.join("output"), &asking.link);
                    self.begin(caller, &process, (None, notes.as_ref()), &asking, &cache)?;
                    Seen::Questions(caller)
                } else {
                    Seen::Shards(self.thin_link(caller, &process, notes.as_ref(), &mut asking)?, kept)
                };
                return self.preview(&asking, directory.as_deref(), seen, elsewhere.as_deref());
            }
            Task::Collect(collection) => {
                let kept = temporaries(&asking.link);
                let heard = self.thin_link(caller, &process, notes.as_ref(), &mut asking)?;
                let Asking { link, compilation, .. } = asking;
                collection.add(heard, (link, compilation), kept, elsewhere.as_deref())?;
                lock(&self.observed).push(Observed { process, notes });
                return Ok(());
            }
            Task::Answer(answers) => {
                let cache = self.folder("cache")?;
                // There is no state to keep it in.
                lock(&self.previous).push(Previous::of(&output, Path::new("")));
                self.begin(caller, &process, (None, notes.as_ref()), &asking, &cache)?;
                let Asking { link, mut compilation, .. } = asking;
                if is_distributed {
                    let distributing = Distributing { caller, process: &process, notes: notes.as_ref() };
                    let given = distributing.answer(&mut compilation, answers);
                    remove_saved(&process, link.line.output())?;
                    lock(&self.observed).push(Observed { process, notes });
                    return given;
                }
                let root = elsewhere.as_deref().unwrap_or(Path::new(""));
                return answers.serve(caller, root, &compilation).inspect_err(|_| end(caller));
            }
        }
        let servers = LinkServers::new(&service.options.run, service.cancel);
        let whole = self.whole_link(&process, &asking);
        if whole.as_ref().is_some_and(|whole| self.is_found_whole(whole, &servers, &output, begun)) {
            let failed = |error| IoError::on("answer", "the linker")(error);
            return Ok(caller.send(&[Role::End.to_byte()], &[]).map_err(failed)?);
        }
        let state = self.hold(directory.as_deref())?;
        let is_single = service.single.is_some() && service.single == directory;
        let own = (!is_single).then(|| service.build_reporter()).transpose()?;
        let reporter = own.as_ref().unwrap_or(service.reporter);
        asking.record_names(reporter);
        let previous = Previous::of(&output, Path::new(state.directory()));
        let cache = self.folder("cache")?;
        let elsewhere = elsewhere.as_deref();
        let session = service.session(&asking.link, state.directory(), reporter);
        let said = self.settings(&session, &asking.compilation, elsewhere).and_then(|settings| {
            let is_fit = !lock(&self.damaged).contains(&process.id);
            let kept = settings.as_ref().filter(|_| is_fit && notes.is_some());
            let kept = kept.map(|settings| settings.kept_objects(&session)).transpose()?.flatten();
            self.begin(caller, &process, (kept.as_ref(), notes.as_ref()), &asking, &cache)?;
            Ok(settings)
        });
        let is_replaced = OnceLock::new();
        let new = OnceLock::new();
        let folders = [self.listener.folder(), &cache, Path::new(state.directory())];
        let folders: Vec<PathBuf> = folders
            .into_iter()
            .chain(session.store.as_deref().map(Cache::directory))
            .map(Path::to_owned)
            .collect();
        let Asking { link, mut compilation, stable_names, .. } = asking;
        let answered = said.and_then(|settings| {
            let session = service.session(&link, state.directory(), reporter);
            let output = process.directory.join(link.line.output());
            let before_anew = |why: Anew<'_>| match why {
                Anew::Nameless(why) => drop(lock(&self.nameless).insert(output.clone(), why.to_owned())),
                Anew::Damaged => drop(lock(&self.damaged).insert(process.id)),
            };
            // The linker's caller may remove or rename the program from then on.
            let linker_ends = |is_there: bool| {
                is_replaced.get_or_init(|| previous.is_replaced());
                if let (true, Some(whole), Some(notes)) = (is_there, &whole, &notes) {
                    new.get_or_init(|| whole.ended(notes, &folders, state.directory()));
                }
            };
            let distributing = Distributing { caller, process: &process, notes: notes.as_ref() };
            answer(
                service,
                &session,
                &distributing,
                &mut compilation,
                elsewhere,
                (settings, stable_names, &servers),
                (&linker_ends, &before_anew),
            )
        });
        if is_distributed {
            if answered.is_err() {
                end(caller);
            }
            remove_saved(&process, link.line.output())?;
        }
        let Answered { served, digests, earlier, start } = match answered {
            Ok(answered) => answered,
            Err(error) => {
                // The linker goes on by itself.
                lock(&self.previous).push(previous);
                lock(&self.observed).push(Observed { process, notes });
                return Err(error);
            }
        };
        // Objects that the linker compiled itself.
        let _ = fs::remove_dir_all(&cache);
        if matches!(served.outcome, Outcome::Anew) {
            return Ok(());
        }
        if let Some(asked) = served.asked {
            reporter.report(ProgressEvent::Phase(Phase {
                name: "thin link",
                start: begun,
                end: Some(asked),
            }));
        }
        let directory = elsewhere.map(Path::to_owned);
        let reporter = own;
        let is_replaced = *is_replaced.get_or_init(|| previous.is_replaced());
        let failed = !matches!(served.outcome, Outcome::Answered) || !is_replaced;
        if let Some(new) = new.into_inner().filter(|_| !failed && !served.modules.is_empty()) {
            let objects = served.modules.iter().filter_map(|module| module.object.as_ref());
            let engine = servers.connected()?.engine;
            let kept = engine.map_or(Ok(()), |engine| {
                let kept =
                    new.and_then(|new| new.keep(&engine, objects, &process.directory, begun.elapsed()));
                engine.troubles().iter().for_each(warn);
                kept
            });
            if let Err(why) = kept {
                let reporter = reporter.as_ref().unwrap_or(service.reporter);
                reporter.report(ProgressEvent::Noted(&format!("the link is not shared: {why}")));
            }
        }
        if failed || is_single {
            // Its trace names the linker's unfinished files.
            lock(&self.observed).push(Observed { process, notes });
        }
        let previous = if failed && !is_single {
            // A driver removes the program after its linker failed, so it is put back after that.
            lock(&self.previous).push(previous);
            None
        } else {
            Some(previous)
        };
        let link = ServedLink {
            link,
            state,
            reporter,
            compilation,
            digests,
            earlier,
            served,
            start,
            previous,
            directory,
        };
        if is_single {
            lock(&self.links).push(link);
            return Ok(());
        }
        // The failure has been reported, and the linker has ended for it.
        service.conclude(link, None).map(drop)
    }
}

/// The modules of a link that its driver has compiled.
pub fn temporaries(link: &LinkCommand) -> Temporaries {
    modules::temporaries(link.line.arguments().iter().filter_map(|argument| match argument {
        Argument::Input(word) => Some(word),
        _ => None,
    }))
}

/// Gives a linker its role, with the folder and the options of that, and `more` files.
pub fn give_role<'f>(
    caller: &Caller,
    process: &Process,
    more: impl IntoIterator<Item = &'f File>,
    role: Role,
    (folder, options): (&Path, &[Word]),
) -> Result<(), IoError> {
    let failed = |error| IoError::on("answer", "the linker")(error);
    let strings = process.strings(folder, options).map_err(failed)?;
    let mut files = vec![strings.as_fd()];
    for file in more {
        files.push(file.as_fd());
    }
    caller.send(&[role.to_byte()], &files).map_err(failed)
}

/// The role of a linker that does nothing.
pub fn no_link() -> Vec<Word> {
    vec![b"--version".to_vec()]
}

/// A linker that was answered to its end.
struct Answered {
    served: Served,
    digests: FileDigests,
    earlier: PreviousModules,
    start: Start,
}

/// A link's settings and its last record.
struct LinkSettings {
    digests: FileDigests,
    identity: Identity,
    earlier: PreviousModules,
}

impl LinkSettings {
    fn of(
        service: &Service<'_>,
        session: &Session<'_>,
        compilation: &CompileSettings,
        elsewhere: Option<&Path>,
    ) -> Result<Self, LinkError> {
        let root = elsewhere.unwrap_or(Path::new(""));
        let digests = FileDigests::new(root);
        let identity = service.identity(session, compilation, root, &digests)?;
        Ok(Self { digests, identity, earlier: PreviousModules::of(session.directory) })
    }

    /// A list of the last link's objects for the linker.
    fn kept_objects(&self, session: &Session<'_>) -> Result<Option<File>, LinkError> {
        let Some(store) = &session.store else { return Ok(None) };
        Ok(kept::list(&self.earlier, &self.identity, store).map_err(IoError::on("list", "kept objects"))?)
    }
}

/// Answers a linker, which has begun to read its inputs.
fn answer(
    service: &Service<'_>,
    session: &Session<'_>,
    linker: &Distributing<'_>,
    compilation: &mut CompileSettings,
    elsewhere: Option<&Path>,
    (settings, stable_names, servers): (Option<LinkSettings>, bool, &LinkServers<'_>),
    (linker_ends, before_anew): (&(dyn Fn(bool) + Sync), BeforeAnew<'_>),
) -> Result<Answered, LinkError> {
    let root = elsewhere.unwrap_or(Path::new(""));
    let inputs = observed::line_inputs(root, session.link.line.arguments());
    observed::warn_of_empty(&inputs);
    let start = observed::start(&inputs);
    session.record_link(session.link.line.output(), elsewhere);
    let jobs = if compilation.is_distributed() { linker.jobs(compilation).transpose() } else { None };
    let settings = match settings {
        Some(settings) => settings,
        None => LinkSettings::of(service, session, compilation, elsewhere)?,
    };
    let LinkSettings { digests, identity, earlier } = settings;
    session.record_compiler();
    let is_of_here = compilation.linker.as_ref().is_some_and(LinkerCode::is_for_this_processor);
    let asks_caches = session.options.asks_caches() && !compilation.is_described && !is_of_here;
    let has_bitcode = || usage::has_bitcode(inputs.iter().map(|(path, _)| path.clone()));
    let is_new = asks_caches && earlier.all().is_empty() && has_bitcode();
    let answering = Answering {
        session,
        directory: elsewhere,
        compilation,
        identity: &identity,
        digests: &digests,
        earlier: &earlier,
        objects: session.objects(root),
        cc1_commands: &Cc1Commands::default(),
        stable_names,
        asks_caches,
        is_new,
        imports: &LinkImports::default(),
        ask_compiler: &|| service.importer(session.link),
        linker_ends,
        servers,
        before_anew,
        notes: linker.notes,
    };
    let served = match jobs {
        Some(jobs) => jobs.and_then(|jobs| jobs.serve(&answering, linker.caller)).unwrap_or_else(|error| {
            end(linker.caller);
            Served::broken(error)
        }),
        None => answering.serve(linker.caller),
    };
    session.store.iter().flat_map(|store| ResultCache::troubles(&**store)).for_each(|trouble| warn(&trouble));
    Ok(Answered { served, digests, earlier, start })
}
