//! Serves one linker that asks: each module gets a kept object, or one that a backend makes.
//!
//! An object is kept under the digest of the compiler, its flags, the files that these name, and the linker's own
//! key. So a hit needs no look at the module, unless its shard is another. A miss becomes an action of a run that
//! grows while the linker asks. Does not depend on the command that started the linker.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::{Mutex, OnceLock, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_executor::result::Key;
use distlto_executor::run::{self, Arrival, Arrivals};
use distlto_executor::trace::Trace;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::backend_flags::stable_names::{alike, spelled};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::module::source_name;
use distlto_planner::resolution::Resolutions;
use distlto_planner::shard;
use distlto_prepare::blobs::from_hex;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::bitcode_of;
use distlto_prepare::mutex::lock;
use distlto_prepare::threads;
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::Measured;
use distlto_record::why::Change;

use super::answering::{Anew, Answering};
use super::backends::{Shared, end, give_file, keep_objects, over, run_backends, send};
use super::compilations::{CachedModule, Compilations, Waiting};
use super::describe::{Described, Unfit, describe};
use super::import_steps::{self, PendingStep};
use super::kept;
use super::key_parts::{Content, KeyParts};
use super::module::{LinkModule, triple};
use super::module_record::{self, RecordedObject};
use super::modules::ModuleFiles;
use super::objects::{Found, Sought};
use super::protocol::{Answer, Compiled, ENDED, PACKET, Question, RESOLUTIONS};
use super::settings::{LinkerCode, ModuleFlags};
use super::socket::{Caller, Received};
use crate::completion::Completion;
use crate::link::LinkError;
use crate::link::file_state::FileState;

/// The idle time after which a link with a failed backend ends under --keep-going: no backend runs, and no question
/// comes.
const QUIET: Duration = Duration::from_millis(500);

/// The outcome of serving a linker.
pub struct Served {
    /// The modules that it asked for.
    pub modules: Vec<LinkModule>,
    pub outcome: Outcome,
    /// When the linker asked first, if it did.
    pub asked: Option<Instant>,
    /// When the last answer was given, if any was.
    pub answered: Option<Instant>,
    /// Objects that count if the linker has succeeded.
    pub printed: Vec<(RecordedObject, Vec<u8>, Measured)>,
}

impl Served {
    /// A link that serving has failed.
    pub fn broken(error: LinkError) -> Self {
        Self {
            modules: Vec::new(),
            outcome: Outcome::Broken(error),
            asked: None,
            answered: None,
            printed: Vec::new(),
        }
    }
}

/// How serving a linker ended.
#[derive(Debug)]
pub enum Outcome {
    /// The linker has got each object that it asked for.
    Answered,
    /// The linker begins anew without stable names, so that nothing of this counts.
    Anew,
    /// A backend failed; the exit code of the run.
    Failed(u8),
    /// Serving itself failed.
    Broken(LinkError),
}

impl Answering<'_> {
    /// Answers a linker until it is gone.
    pub fn serve(&self, caller: &Caller) -> Served {
        let shared = Mutex::new(Shared::default());
        let resolutions = OnceLock::new();
        let root = self.directory.unwrap_or(Path::new("."));
        let linker = self.compilation.linker.as_ref();
        let linker = linker.map(|_| Compilations::new(caller, &shared, root, self));
        let run = thread::scope(|scope| {
            let linker = &linker;
            let mut hearing = Hearing {
                answering: self,
                caller,
                shared: &shared,
                scope,
                files: ModuleFiles::new(self.directory.unwrap_or(Path::new("")), self.session.directory)
                    .with_slices(self.compilation),
                sources: HashMap::new(),
                known_sources: HashMap::new(),
                resolutions: &resolutions,
                resolved: None,
                completion: None,
                run: None,
                opened: 0,
                linker: linker.as_ref(),
            };
            let heard = hearing.prepare().and_then(|()| hearing.hear());
            if let Err(error) = heard {
                lock(&shared).error.get_or_insert(error);
                end(caller);
            }
            (self.linker_ends)(false);
            if let Some(linker) = linker {
                linker.end();
            }
            hearing.end()
        });
        let has_failed = linker.is_some_and(|linker| linker.has_failed());
        let shared = shared.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Served {
            modules: shared.modules,
            outcome: match (shared.error, run.unwrap_or(0)) {
                _ if shared.is_anew => Outcome::Anew,
                (Some(error), _) => Outcome::Broken(error),
                (None, 0) => Outcome::Answered,
                // The linker has reported it.
                (None, _) if has_failed => Outcome::Answered,
                (None, code) => Outcome::Failed(code),
            },
            asked: shared.asked,
            answered: shared.answered,
            printed: shared.printed,
        }
    }
}

/// The thread that hears a linker.
struct Hearing<'scope, 'env, 'a> {
    answering: &'scope Answering<'a>,
    caller: &'scope Caller,
    shared: &'scope Mutex<Shared>,
    scope: &'scope Scope<'scope, 'env>,
    files: ModuleFiles,
    /// The module of each source, as LLVM spells that, where locals are called after it: its label, and its own spelling.
    sources: HashMap<String, (String, String)>,
    /// The sources of modules by label, as far as they were read before a question.
    known_sources: HashMap<String, String>,
    /// The linker's symbol resolution, once it is read.
    resolutions: &'scope OnceLock<Vec<u8>>,
    /// The file with it.
    resolved: Option<File>,
    completion: Option<Completion<'scope>>,
    /// Where actions go, and the thread that runs them, once there is one.
    run: Option<(Arrivals, ScopedJoinHandle<'scope, u8>)>,
    /// How many objects of the last link it has opened and that are taken in.
    opened: usize,
    /// The linker, if it compiles its modules itself.
    linker: Option<&'scope Compilations<'scope>>,
}

/// Why a module is the linker's own to compile.
pub enum Miss {
    /// Since it cannot be named to a compiler, or its shard cannot be read.
    Unfit(String),
    /// Since locals cannot have stable names for this reason, so that the linker begins anew without.
    Nameless(String),
    /// Since something else went wrong, which ends the link.
    Failed(LinkError),
}

/// Returns how many of the `known` modules of the last link will miss, if as large a share of those to come does as of the
/// `asked` ones.
fn expected_misses(known: usize, asked: usize, misses: usize) -> usize {
    let rest = known.saturating_sub(asked);
    misses + (rest * misses).div_ceil(asked.max(1))
}

impl From<Unfit> for Miss {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Because(why) => Self::Unfit(why),
            Unfit::Io(error) => error.into(),
        }
    }
}

impl From<IoError> for Miss {
    fn from(error: IoError) -> Self {
        Self::Failed(error.into())
    }
}

impl<'scope> Hearing<'scope, '_, '_> {
    /// Connects to the caches of a link without a record, which fetch its objects before the linker asks.
    fn prepare(&mut self) -> Result<(), LinkError> {
        let answering = self.answering;
        if answering.is_new {
            self.run = Some(self.begin()?);
        }
        Ok(())
    }

    /// Hears the linker until it is gone.
    fn hear(&mut self) -> Result<(), LinkError> {
        let heard = |error| IoError::on("hear", "the linker")(error);
        let mut bytes = vec![0; PACKET];
        loop {
            let wait = self.patience();
            let (received, imported) = self.caller.receive_pair(&mut bytes, wait).map_err(heard)?;
            let (bytes, shard) = match received {
                Received::Packet(bytes, file) if bytes == RESOLUTIONS => {
                    self.resolved = file;
                    continue;
                }
                Received::Packet(bytes, mut object) if Compiled::from_bytes(bytes).is_some() => {
                    let compiled = self.linker.zip(Compiled::from_bytes(bytes));
                    // Without a schedule nobody waits for it.
                    if let Some((linker, compiled)) = compiled {
                        linker.ended(compiled, object.take(), imported);
                    }
                    continue;
                }
                Received::Packet(bytes, shard) => (bytes, shard),
                Received::Nothing => {
                    if self.is_stuck() {
                        over(self.shared, self.caller);
                    }
                    continue;
                }
                Received::Gone => return self.check_rest(),
            };
            let Some(question) = Question::from_bytes(bytes) else {
                return Err(heard(std::io::ErrorKind::InvalidData.into()).into());
            };
            self.answer(&question, shard)?;
        }
    }

    /// Returns how long to wait for a question before a check whether the linker is stuck.
    fn patience(&self) -> Option<Duration> {
        self.answering.session.options.run.keep_going.then_some(QUIET)
    }

    /// Whether the linker waits for failed backends alone.
    fn is_stuck(&self) -> bool {
        let shared = lock(self.shared);
        shared.has_failed && shared.open == 0
    }

    fn answer(&mut self, question: &Question<'_>, shard: Option<File>) -> Result<(), LinkError> {
        if question.key.is_empty() && question.module == ENDED {
            (self.answering.linker_ends)(true);
            return self.send(question.ticket, Answer::Compile);
        }
        let (is_over, is_first) = {
            let mut shared = lock(self.shared);
            let is_first = shared.asked.is_none();
            shared.asked.get_or_insert_with(Instant::now);
            (shared.is_over || self.answering.session.cancel.is_cancelled(), is_first)
        };
        if is_over {
            return self.send(question.ticket, Answer::End(1));
        }
        if is_first && let Some(why) = self.alike_sources()? {
            return self.begin_anew(question.ticket, &why);
        }
        if question.key.is_empty() {
            return self.has_all_objects(question.ticket);
        }
        let Ok(id) = std::str::from_utf8(question.module) else {
            let name = String::from_utf8_lossy(question.module);
            return self.leave(question, (&name, &name), "its name is not UTF-8");
        };
        let answering = self.answering;
        let label = self.files.label(id);
        let dwo = answering.compilation.flags.dwo(&label);
        let shard = read(shard).map_err(IoError::on("read the index shard of", id))?;
        let flags = match answering.compilation.of_module(&mut self.files, id) {
            Ok(flags) => flags,
            Err(error) => return self.fail(question.ticket, error.into()),
        };
        let (key, imports) =
            module_record::key(answering.identity, question, &shard, &flags.args, dwo.as_ref());
        let found = self.find_by_key(&key, &label, dwo.as_deref(), &imports)?;
        let answered = match found {
            Some(found) => self.hit(question, id, (key, flags), dwo, &shard, found),
            None => self.miss(question, id, (key, flags), dwo, &shard),
        };
        self.expect();
        match answered {
            Ok(()) => Ok(()),
            Err(Miss::Unfit(why)) => self.leave(question, (id, &label), &why),
            Err(Miss::Nameless(why)) => self.begin_anew(question.ticket, &why),
            Err(Miss::Failed(error)) => self.fail(question.ticket, error),
        }
    }

    /// Tells the run how many backends may come, since the linker asks for a few at a time.
    fn expect(&self) {
        let Some((arrivals, _)) = &self.run else { return };
        let shared = lock(self.shared);
        let known = self.answering.earlier.all().len();
        arrivals.expect(expected_misses(known, shared.modules.len(), shared.actions.len()));
    }

    /// Ends the link.
    fn fail(&self, ticket: u32, error: LinkError) -> Result<(), LinkError> {
        let mut shared = lock(self.shared);
        shared.is_over = true;
        shared.error.get_or_insert(error);
        drop(shared);
        self.send(ticket, Answer::End(1))
    }

    /// Handles a hit by the linker's key.
    fn hit(
        &mut self,
        question: &Question<'_>,
        id: &str,
        (key, flags): (String, ModuleFlags),
        dwo: Option<Utf8PathBuf>,
        bytes: &[u8],
        (mut object, file): (RecordedObject, File),
    ) -> Result<(), Miss> {
        let label = object.label.clone();
        if self.answering.stable_names
            && let Some(source) = &object.source
        {
            self.claim_source(source, &label).map_err(Miss::Nameless)?;
        }
        // The key covers less than the shard. A dry run has no key, and looks by content.
        let shard = shard::digest_without_paths(bytes).unwrap_or_default();
        if !self.answering.compilation.is_described {
            if let Ok(modules) = shard::modules(bytes)
                && object.shard != shard
            {
                object.parts = Some(KeyParts::of_shard(self.answering.identity, id, &modules, &shard).0);
                object.shard = shard;
            }
        } else if object.shard != shard {
            match self.inputs(id, bytes, &flags.args, dwo.as_ref()) {
                Ok((_, Some(content))) => object.set_inputs(&content, shard),
                // A dry run cannot look up such a module either.
                Ok((_, None)) | Err(Miss::Unfit(_)) => {}
                Err(miss) => return Err(miss),
            }
        }
        let archive = self.files.archive_of(id).map(|(archive, offset)| (archive.to_owned(), offset));
        let mut module = LinkModule { flags, ..LinkModule::kept(id, label, archive, key, object) };
        self.answering.add_question(&mut module, question, bytes);
        self.give_kept(question.ticket, module, &file).map_err(Miss::Failed)
    }

    /// The linker has all its objects, and waits to read them.
    fn has_all_objects(&mut self, ticket: u32) -> Result<(), LinkError> {
        lock(self.shared).answered = Some(Instant::now());
        if self.take_opened()? {
            let Err(why) = self.claim_opened() else { return self.send(ticket, Answer::Compile) };
            return self.begin_anew(ticket, &why);
        }
        lock(self.shared).is_anew = true;
        (self.answering.before_anew)(Anew::Damaged);
        self.send(ticket, Answer::Again)
    }

    /// The linker is gone. It may have opened objects without saying that it has all.
    fn check_rest(&mut self) -> Result<(), LinkError> {
        if lock(self.shared).is_anew || self.take_opened()? {
            return Ok(());
        }
        let what = "an object was damaged, and is dropped: link again";
        Err(IoError::on("use", "the store")(std::io::Error::other(what)).into())
    }

    /// Adds the modules whose objects the linker opened from the list. Returns whether all these objects are undamaged.
    fn take_opened(&mut self) -> Result<bool, LinkError> {
        let answering = self.answering;
        let Some(notes) = answering.notes.filter(|_| answering.compilation.linker.is_some()) else {
            return Ok(true);
        };
        let trace = Trace::read(notes, Path::new("")).map_err(IoError::on("read", "the linker's notes"))?;
        let opened = kept::opened(answering, &trace).split_off(self.opened);
        self.opened += opened.len();
        if !kept::are_whole(answering, &opened) {
            return Ok(false);
        }
        let mut modules = Vec::with_capacity(opened.len());
        for (id, object) in opened {
            let archive = self.files.archive_of(&id).map(|(archive, offset)| (archive.to_owned(), offset));
            let (label, key) = (object.label.clone(), object.key.clone());
            modules.push(LinkModule::kept(&id, label, archive, key, object.clone()));
        }
        lock(self.shared).modules.extend(modules);
        Ok(true)
    }

    /// Has the linker compile a module.
    fn compile_there(
        &mut self,
        question: &Question<'_>,
        id: &str,
        key: String,
        bytes: &[u8],
    ) -> Result<(), Miss> {
        let answering = self.answering;
        answering.session.store.iter().for_each(|store| store.count(false));
        let cached = if answering.asks_caches { self.cached(id, &key, bytes) } else { None };
        let missed = answering.missed(&mut self.files, question, (id, key), bytes);
        let (mut module, why) = missed.map_err(|error| Miss::Unfit(error.to_string()))?;
        module.source = self.source_there(id, &module.label)?;
        let step = self.import_step(&module, id, bytes)?;
        let names = ModulePlaces::of(answering.session.directory, &module.label);
        let arrival = Arrival {
            label: module.label.clone(),
            prefix: answering.compilation.shared_words(),
            args: vec![id.to_owned()],
            module: module.label.clone().into(),
            shard: names.shard.into(),
            imports: Vec::new(),
            extra: Vec::new(),
            object: names.object.into(),
            dwo: None,
            cost: module.cost.total(),
        };
        self.add((LinkModule { ticket: Some(question.ticket), ..module }, cached, step), arrival, why)
    }

    /// The source of a module that the linker compiles, where locals are to be called after it.
    fn source_there(&mut self, id: &str, label: &str) -> Result<Option<String>, Miss> {
        let answering = self.answering;
        if !answering.session.options.stable_names {
            return Ok(None);
        }
        let source = self.known_sources.remove(label).or_else(|| self.read_source(id));
        if let Some(source) = source.as_ref().filter(|_| answering.stable_names) {
            self.claim_source(source, label).map_err(Miss::Nameless)?;
        }
        Ok(source)
    }

    /// Reads the source of a module. The linker reports a file that cannot be read.
    fn read_source(&mut self, id: &str) -> Option<String> {
        let (file, range) = self.files.container(id).ok()?;
        let input = Input::open(&file).ok()?;
        let bytes = range.map_or(Some(&*input), |range| input.get(range)).unwrap_or_default();
        source_name(bitcode_of(bytes).unwrap_or(bytes)).ok()
    }

    /// Compares the sources of all modules that the linker has loaded, if no record has them: it asks for some modules only
    /// after it has compiled others. Returns a sentence on two that are alike.
    fn alike_sources(&mut self) -> Result<Option<String>, LinkError> {
        let answering = self.answering;
        if !answering.stable_names || answering.earlier.all().iter().any(|object| object.source.is_some()) {
            return Ok(None);
        }
        let text = self.resolution().map_err(IoError::on("read", "what the linker resolved"))?;
        let modules = Resolutions::read(text, "");
        for id in modules.modules().filter_map(|id| std::str::from_utf8(id).ok()) {
            let Some(source) = self.read_source(id) else { continue };
            let label = self.files.label(id);
            if let Err(why) = self.claim_source(&source, &label) {
                return Ok(Some(why));
            }
            self.known_sources.insert(label, source);
        }
        Ok(None)
    }

    /// The linker's resolution, which is read once; empty if it has written none.
    fn resolution(&mut self) -> std::io::Result<&'scope [u8]> {
        if let Some(file) = self.resolved.take() {
            let text = read(Some(file))?;
            self.resolutions.get_or_init(|| text);
        }
        Ok(self.resolutions.get().map_or(&[], Vec::as_slice))
    }

    /// The import step that may spare a module's backend.
    fn import_step(
        &mut self,
        module: &LinkModule,
        id: &str,
        bytes: &[u8],
    ) -> Result<Option<PendingStep>, Miss> {
        let answering = self.answering;
        let Some(earlier) = import_steps::candidate(answering, module) else { return Ok(None) };
        let Some(compiler) = answering.imports.compiler(answering.ask_compiler) else { return Ok(None) };
        self.resolve(id)?;
        let described = match describe(&mut self.files, self.completion.as_mut(), id, bytes) {
            Ok(described) => described,
            Err(Unfit::Because(_)) => return Ok(None),
            Err(Unfit::Io(error)) => return Err(error.into()),
        };
        let shard = ModulePlaces::of(answering.session.directory, &described.label).shard;
        keep::shard_at(&answering.here(&shard), &described.shard)?;
        Ok(Some(PendingStep::of(answering, &described, compiler, earlier)))
    }

    /// The key of a module in caches, with its files. `None` if a file is not known: the linker compiles such a module, and
    /// no cache is asked.
    fn cached(&mut self, id: &str, key: &str, shard: &[u8]) -> Option<CachedModule> {
        let key = Key(from_hex(key)?);
        let container = self.files.container(id).ok()?;
        let mut files = vec![container.0.clone()];
        for module in shard::modules(shard).ok()? {
            files.push(self.files.container(std::str::from_utf8(&module.path).ok()?).ok()?.0);
        }
        files.sort_unstable();
        files.dedup();
        let read = files.iter().map(|file| FileState::of(file)).collect::<Option<_>>()?;
        Some(CachedModule { id: id.to_owned(), key, container, shard: shard.to_vec(), read })
    }

    /// The inputs of a module's backend, and their digests if all are known.
    fn inputs(
        &mut self,
        id: &str,
        bytes: &[u8],
        flags: &[String],
        dwo: Option<&Utf8PathBuf>,
    ) -> Result<(Described, Option<Content>), Miss> {
        self.resolve(id)?;
        let described = describe(&mut self.files, self.completion.as_mut(), id, bytes)?;
        let answering = self.answering;
        let shard = ModulePlaces::of(answering.session.directory, &described.label).shard;
        keep::shard_at(&answering.here(&shard), &described.shard)?;
        let content = answering.content(&described.file, &shard, &described.imports, flags, dwo);
        Ok((described, content))
    }

    /// Handles a miss: finds an object with the same inputs, or adds an action to make one.
    fn miss(
        &mut self,
        question: &Question<'_>,
        id: &str,
        (key, flags): (String, ModuleFlags),
        dwo: Option<Utf8PathBuf>,
        bytes: &[u8],
    ) -> Result<(), Miss> {
        let answering = self.answering;
        if !answering.compilation.is_described && self.linker.is_some() {
            return self.compile_there(question, id, key, bytes);
        }
        let (described, content) = self.inputs(id, bytes, &flags.args, dwo.as_ref())?;
        let Described { label, archive, file: module, imports, labels, cost, .. } = described;
        let names = ModulePlaces::of(answering.session.directory, &label);
        let source = self.source(&answering.here(&module), &label)?;
        let shard = shard::digest_without_paths(bytes).unwrap_or_default();
        // The linker's key also covers the imports of others from this module, which its backend does not read.
        if let Some(content) = &content
            && let Some(earlier) = answering.earlier.of_content(&content.digest)
            && let Some(mut found) = self.find(&earlier.key, &label, dwo.as_deref(), sorted(&labels))?
        {
            found.object.key.clone_from(&key);
            found.object.set_inputs(content, shard);
            answering.objects.keep_again(&found);
            let mut module = LinkModule { flags, ..LinkModule::kept(id, label, archive, key, found.object) };
            answering.add_question(&mut module, question, bytes);
            return self.give_kept(question.ticket, module, &found.file).map_err(Miss::Failed);
        }
        let Content { digest, parts, imports: contents } = content.unwrap_or_default();
        let known_reads = self.known_reads(&label, &parts);
        let files = BackendFiles {
            module: &module,
            shard: &names.shard,
            object: &names.object,
            dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut args = flags.args.clone();
        args.extend(files.args(&triple(&answering.here(&module))));
        let arrival = Arrival {
            label: label.clone(),
            prefix: answering.compilation.shared_words(),
            args,
            module: module.clone().into(),
            shard: names.shard.clone().into(),
            imports: imports.into_iter().map(Utf8PathBuf::from).collect(),
            extra: answering.compilation.flags.inputs.iter().chain(&known_reads).cloned().collect(),
            object: names.object.clone().into(),
            dwo,
            cost: cost.total(),
        };
        let mut linked = LinkModule {
            id: id.to_owned(),
            label,
            archive,
            key,
            content: digest,
            shard,
            file: Some(module),
            imports: labels,
            cost,
            source,
            flags,
            known_reads,
            ticket: Some(question.ticket),
            ..LinkModule::default()
        };
        linked.parts = (!linked.content.is_empty()).then_some(parts);
        answering.add_question(&mut linked, question, bytes);
        // In the order of their contents.
        let why = answering.action_records().why(&linked, &contents);
        linked.imports.sort_unstable();
        self.add((linked, None, None), arrival, why)
    }

    /// Reads the linker's symbol resolution, if it has given one.
    fn resolve(&mut self, id: &str) -> Result<(), Miss> {
        let text = self.resolution().map_err(IoError::on("read what the linker resolved for", id))?;
        if self.completion.is_none() && !text.is_empty() {
            self.completion = Some(self.answering.compilation.completion(text));
        }
        Ok(())
    }

    /// Adds an action to the run, which begins with the first.
    fn add(
        &mut self,
        (module, cached, step): (LinkModule, Option<CachedModule>, Option<PendingStep>),
        arrival: Arrival,
        why: Vec<Change>,
    ) -> Result<(), Miss> {
        if self.run.is_none() {
            self.run = Some(self.begin()?);
        }
        let Some((arrivals, _)) = &self.run else { return Ok(()) };
        // Held until the action is known: it may end at once.
        let mut shared = lock(self.shared);
        let number = shared.modules.len();
        if let Some(linker) = self.linker {
            let compilation = self.answering.compilation;
            let is_for_all = !compilation.linker.as_ref().is_some_and(LinkerCode::is_for_this_processor);
            let other_key = from_hex(&module.key).filter(|_| compilation.is_described && is_for_all);
            linker.add(&module.label, Waiting { number, cached, step, other_key: other_key.map(Key) });
        }
        let Some(id) = arrivals.add(arrival) else {
            drop(shared);
            let Some(ticket) = module.ticket else { return Ok(()) };
            return self.send(ticket, Answer::End(1)).map_err(Miss::Failed);
        };
        let record = self.answering.action_records().action(id.index(), &module, why);
        self.answering.session.reporter.record_more_actions(vec![record]);
        shared.modules.push(module);
        shared.actions.push(number);
        shared.open += 1;
        Ok(())
    }

    fn begin(&self) -> Result<(Arrivals, ScopedJoinHandle<'scope, u8>), IoError> {
        let (answering, shared, caller) = (self.answering, self.shared, self.caller);
        let (arrivals, incoming) = run::arrivals();
        let linker = self.linker;
        let run = move || {
            let code = thread::scope(|scope| {
                let keeper = linker.map(|linker| {
                    let (sender, objects) = mpsc::channel();
                    let keep = move || keep_objects(answering, shared, objects);
                    threads::start_in(scope, "keeper", keep).map(|_| (linker, sender))
                });
                let keeper = keeper.transpose().map_err(IoError::on("start", "a thread for objects"))?;
                run_backends(answering, shared, caller, incoming, keeper)
            });
            over(shared, caller);
            code.unwrap_or_else(|error| {
                lock(shared).error.get_or_insert(error);
                1
            })
        };
        let thread = threads::start_in(self.scope, "backends", run)
            .map_err(IoError::on("start", "a thread for backends"))?;
        Ok((arrivals, thread))
    }

    /// Ends the run when all that was asked for has ended; returns its exit code, if there was one.
    fn end(self) -> Option<u8> {
        let (arrivals, thread) = self.run?;
        drop(arrivals);
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// Returns the object of a key: that of the previous link, or another one in the store.
    fn find_by_key(
        &mut self,
        key: &str,
        label: &str,
        dwo: Option<&Utf8Path>,
        imports: &[String],
    ) -> Result<Option<(RecordedObject, File)>, IoError> {
        let answering = self.answering;
        if let Some(last) = answering.earlier.last(label).filter(|last| last.key == key)
            && let Some(file) = answering.objects.open(last)
        {
            return Ok(Some((last.clone(), file)));
        }
        let mut imports: Vec<String> = imports.iter().map(|id| self.files.label(id)).collect();
        imports.sort_unstable();
        Ok(self.find(key, label, dwo, imports)?.map(|found| (found.object, found.file)))
    }

    /// The object of a module in the store.
    fn find(
        &self,
        key: &str,
        label: &str,
        dwo: Option<&Utf8Path>,
        imports: Vec<String>,
    ) -> Result<Option<Found>, IoError> {
        let object = ModulePlaces::of(self.answering.session.directory, label).object;
        let sought = Sought { label, object: &object, dwo, imports };
        self.answering.objects.find(key, sought, self.answering.digests)
    }

    /// The source of a module that is about to be compiled, where locals are to be called after it.
    fn source(&mut self, module: &Path, label: &str) -> Result<Option<String>, Miss> {
        let answering = self.answering;
        if !answering.session.options.stable_names {
            return Ok(None);
        }
        let input = Input::open(module).map_err(LinkError::from).map_err(Miss::Failed)?;
        // A file that is no module fails its backend, which reports it.
        let Ok(source) = source_name(&input) else { return Ok(None) };
        if answering.stable_names {
            self.claim_source(&source, label).map_err(Miss::Nameless)?;
        }
        Ok(Some(source))
    }

    /// Two modules of one source would define one name twice; the error says which.
    fn claim_source(&mut self, source: &str, label: &str) -> Result<(), String> {
        let module = (label.to_owned(), source.to_owned());
        match self.sources.insert(spelled(source), module) {
            Some((one, first)) if one != label => Err(alike((&one, &first), (label, source))),
            _ => Ok(()),
        }
    }

    /// Compares the sources of modules whose objects the linker opened by itself.
    fn claim_opened(&mut self) -> Result<(), String> {
        if !self.answering.stable_names {
            return Ok(());
        }
        let sources: Vec<(String, String)> = lock(self.shared)
            .modules
            .iter()
            .filter_map(|module| Some((module.object.as_ref()?.source.clone()?, module.label.clone())))
            .collect();
        sources.iter().try_for_each(|(source, label)| self.claim_source(source, label))
    }

    /// Has the linker begin anew without stable names, for this reason.
    fn begin_anew(&self, ticket: u32, why: &str) -> Result<(), LinkError> {
        lock(self.shared).is_anew = true;
        (self.answering.before_anew)(Anew::Nameless(why));
        self.send(ticket, Answer::Again)
    }

    /// Leaves a module to the linker.
    fn leave(&self, question: &Question<'_>, (id, label): (&str, &str), why: &str) -> Result<(), LinkError> {
        // Its locals have names like all others, so its source has to be known.
        if self.answering.stable_names && !self.sources.values().any(|(known, _)| known == label) {
            return self.begin_anew(question.ticket, &format!("{id} is the linker's own: {why}"));
        }
        self.answering
            .session
            .reporter
            .report(ProgressEvent::Noted(&format!("the linker compiles {id} itself: {why}")));
        self.send(question.ticket, Answer::Compile)
    }

    /// Gives the linker a kept object, and prints the warnings of its compiler again.
    fn give_kept(&self, ticket: u32, module: LinkModule, object: &File) -> Result<(), LinkError> {
        give_file(self.caller, ticket, object)?;
        if let Some(object) = module.object.as_ref().filter(|object| !object.warnings.is_empty()) {
            self.answering.session.reporter.report(ProgressEvent::Printed(&object.warnings));
        }
        let mut shared = lock(self.shared);
        shared.answered = Some(Instant::now());
        shared.modules.push(module);
        Ok(())
    }

    /// Returns the further files that the module's compiler read before, as far as they exist. As declared inputs,
    /// caches and other machines know of them. The reads of another module with this label do not count.
    fn known_reads(&self, label: &str, parts: &KeyParts) -> Vec<Utf8PathBuf> {
        let last = self.answering.earlier.last(label);
        let is_same = |last: &&RecordedObject| {
            last.parts.as_ref().is_some_and(|before| before.module() == parts.module())
        };
        let read = last.filter(is_same).into_iter().flat_map(|last| &last.read);
        let root =
            std::path::absolute(self.answering.directory.unwrap_or(Path::new("."))).unwrap_or_default();
        let files = read.map(|(path, _)| Utf8Path::new(path)).filter(|path| path.is_file());
        files.map(|path| path.strip_prefix(&root).unwrap_or(path).to_owned()).collect()
    }

    fn send(&self, ticket: u32, answer: Answer) -> Result<(), LinkError> {
        send(self.caller, ticket, answer).map_err(Into::into)
    }
}

fn sorted(labels: &[String]) -> Vec<String> {
    let mut labels = labels.to_vec();
    labels.sort_unstable();
    labels
}

/// Reads a file from its start: the sender's file offset is shared.
pub fn read(file: Option<File>) -> std::io::Result<Vec<u8>> {
    let mut file = file.ok_or(std::io::ErrorKind::InvalidData)?;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::expected_misses;

    #[test]
    fn modules_to_come_miss_like_those_that_came() {
        assert_eq!(expected_misses(0, 3, 3), 3, "nothing is known of a first link");
        assert_eq!(expected_misses(232, 1, 1), 232);
        assert_eq!(expected_misses(232, 100, 50), 50 + 66);
        assert_eq!(expected_misses(232, 231, 1), 2);
        assert_eq!(expected_misses(232, 240, 9), 9, "modules were added");
    }
}
