//! The connection of one linker that asks: each module gets a kept object, or one that a backend makes.
//!
//! An object is kept under the digest of the compiler, its flags, the files that these name, and the linker's own
//! key. So a hit needs no look at the module, unless its shard is another. A miss becomes an action of a run that
//! grows while the linker asks (`misses`). Does not depend on the command that started the linker.

use std::fs::File;
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_executor::run::{self, Arrivals};
use distlto_executor::trace::Trace;
use distlto_planner::resolution::Resolutions;
use distlto_planner::shard;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::threads;
use distlto_record::progress::{Progress, ProgressEvent};

use super::backends::{keep_objects, run_backends};
use super::compilations::Compilations;
use super::describe::Unfit;
use super::kept;
use super::key_parts::KeyParts;
use super::link::{Anew, Link};
use super::module::LinkModule;
use super::module_record::{self, RecordedObject};
use super::modules::ModuleFiles;
use super::objects::{Found, Sought};
use super::progress::{LinkProgress, LinkResult, end_run};
use super::protocol::{Answer, PACKET, Question};
use super::settings::ModuleFlags;
use super::socket::{Connection, Message, read};
use super::source_names::SourceNames;
use crate::completion::Completion;
use crate::link::error::LinkError;
use distlto_planner::keep::ModulePlaces;

/// The idle time after which a link with a failed backend ends under --keep-going: no backend runs, and no question
/// comes.
const QUIET: Duration = Duration::from_millis(500);

/// Answers a linker until it is gone. `is_new` if caches are asked for a link that has no record.
pub fn serve(link: &Link<'_>, connection: &Connection, is_new: bool) -> LinkResult {
    let progress = Mutex::new(LinkProgress::default());
    let resolutions = OnceLock::new();
    let compilations = link.settings.linker.is_some().then(|| Compilations::new(connection, &progress, link));
    let code = thread::scope(|scope| {
        let linker = compilations.as_ref();
        let mut questions = LinkerConnection {
            link,
            connection,
            progress: &progress,
            scope,
            files: ModuleFiles::new(link.root(), link.state()).with_slices(&link.settings),
            sources: SourceNames::default(),
            resolutions: &resolutions,
            resolved: None,
            completion: None,
            run: None,
            opened: 0,
            known: link.earlier.all().len(),
            linker,
        };
        if let Err(error) = questions.prepare(is_new).and_then(|()| questions.answer_all()) {
            lock(&progress).error.get_or_insert(error);
            connection.end();
        }
        link.is_replaced();
        if let Some(linker) = linker {
            linker.end();
        }
        questions.end()
    });
    // The linker has reported its own errors.
    let is_reported = compilations.is_some_and(|linker| linker.has_failed());
    let progress = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    LinkResult::of(progress, code.unwrap_or(0), is_reported)
}

/// The thread that answers a linker.
pub struct LinkerConnection<'scope, 'env, 'a> {
    pub link: &'scope Link<'a>,
    pub connection: &'scope Connection,
    pub progress: &'scope Mutex<LinkProgress>,
    scope: &'scope Scope<'scope, 'env>,
    pub files: ModuleFiles,
    pub sources: SourceNames,
    /// The linker's symbol resolution, once it is read, and the file with it.
    resolutions: &'scope OnceLock<Vec<u8>>,
    resolved: Option<File>,
    pub completion: Option<Completion<'scope>>,
    /// Where actions go, and the thread that runs them, once there is one.
    run: Option<(Arrivals, ScopedJoinHandle<'scope, u8>)>,
    /// How many objects of the last link it has opened and that are taken in.
    opened: usize,
    /// How many modules the link has, as the last record or the linker's symbol resolution says.
    known: usize,
    /// The linker, if it compiles its modules itself.
    pub linker: Option<&'scope Compilations<'scope>>,
}

/// Why a module is the linker's own to compile.
pub enum NoAnswer {
    /// Since it cannot be named to a compiler, or its shard cannot be read.
    Unfit(String),
    /// Since locals cannot have stable names for this reason, so that the linker begins anew without.
    Nameless(String),
    /// Since something else went wrong, which ends the link.
    Failed(LinkError),
}

/// A module that the linker asks for.
pub struct AskedModule<'q> {
    pub question: &'q Question<'q>,
    pub id: &'q str,
    pub key: String,
    pub flags: ModuleFlags,
    /// The place of its split debug information.
    pub dwo: Option<Utf8PathBuf>,
    pub shard: &'q [u8],
}

/// Returns how many of the `known` modules of a link will miss, if as large a share of those to come does as of the
/// `asked` ones.
fn expected_misses(known: usize, asked: usize, misses: usize) -> usize {
    let rest = known.saturating_sub(asked);
    misses + (rest * misses).div_ceil(asked.max(1))
}

impl From<Unfit> for NoAnswer {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Because(why) => Self::Unfit(why),
            Unfit::Io(error) => error.into(),
        }
    }
}

impl From<IoError> for NoAnswer {
    fn from(error: IoError) -> Self {
        Self::Failed(error.into())
    }
}

impl<'scope, 'a> LinkerConnection<'scope, '_, 'a> {
    /// Connects to the caches of a link without a record, which fetch its objects before the linker asks.
    fn prepare(&mut self, is_new: bool) -> Result<(), LinkError> {
        if is_new {
            self.run = Some(self.begin()?);
        }
        Ok(())
    }

    /// Answers the linker until it is gone.
    fn answer_all(&mut self) -> Result<(), LinkError> {
        let mut bytes = vec![0; PACKET];
        loop {
            match self.connection.message(&mut bytes, self.patience())? {
                Message::Resolution(file) => self.resolved = file,
                Message::Compiled(compiled, object, imported) => {
                    // Without a schedule nobody waits for it.
                    if let Some(linker) = self.linker {
                        linker.ended(compiled, object, imported);
                    }
                }
                Message::Question(question, shard) => {
                    if self.may_ask(question.ticket)? {
                        self.answer(&question, shard)?;
                    }
                }
                Message::HasAll(ticket) => {
                    if self.may_ask(ticket)? {
                        self.has_all_objects(ticket)?;
                    }
                }
                Message::Succeeded(ticket) => {
                    self.link.succeeded();
                    self.connection.answer(ticket, Answer::Compile)?;
                }
                Message::Nothing if self.is_stuck() => end_run(self.progress, self.connection),
                Message::Nothing => {}
                Message::Gone => return self.check_rest(),
            }
        }
    }

    /// Returns how long to wait for a question before a check whether the linker is stuck.
    fn patience(&self) -> Option<Duration> {
        self.link.build.options.run.keep_going.then_some(QUIET)
    }

    /// Whether the linker waits for failed backends alone.
    fn is_stuck(&self) -> bool {
        let progress = lock(self.progress);
        progress.has_failed && progress.open == 0
    }

    /// Whether a question gets an answer of its own; otherwise the linker ends, or begins anew.
    fn may_ask(&mut self, ticket: u32) -> Result<bool, LinkError> {
        let mut progress = lock(self.progress);
        let is_first = progress.asked.is_none();
        progress.asked.get_or_insert_with(Instant::now);
        let is_over = progress.is_over || self.link.build.cancel.is_cancelled();
        drop(progress);
        if is_over {
            self.connection.answer(ticket, Answer::End(1))?;
            return Ok(false);
        }
        let known = self.link.earlier.all();
        // A record of the last link has the modules and their sources.
        if is_first && !known.iter().any(|object| object.provenance.source.is_some()) {
            let text = self.resolution().map_err(IoError::on("read", "what the linker resolved"))?;
            let modules = Resolutions::read(text, "");
            self.known = known.len().max(modules.modules().count());
            if self.link.stable_names
                && let Err(why) = self.sources.claim_all(&modules, &mut self.files)
            {
                self.begin_anew(ticket, Anew::Nameless(&why))?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn answer(&mut self, question: &Question<'_>, shard: Option<File>) -> Result<(), LinkError> {
        let Ok(id) = std::str::from_utf8(question.module) else {
            let name = String::from_utf8_lossy(question.module);
            return self.leave(question.ticket, (&name, &name), "its name is not UTF-8");
        };
        let link = self.link;
        let label = self.files.label(id);
        let dwo = link.settings.flags.dwo(&label);
        let shard = read(shard).map_err(IoError::on("read the index shard of", id))?;
        let flags = match link.settings.of_module(&mut self.files, id) {
            Ok(flags) => flags,
            Err(error) => return self.fail(question.ticket, error.into()),
        };
        let (key, imports) = module_record::key(&link.identity, question, &shard, &flags.args, dwo.as_ref());
        let found = self.find_by_key(&key, &label, dwo.as_deref(), &imports)?;
        let asked = AskedModule { question, id, key, flags, dwo, shard: &shard };
        let answered = match found {
            Some(found) => self.hit(asked, found),
            None => self.miss(asked),
        };
        self.expect();
        match answered {
            Ok(()) => Ok(()),
            Err(NoAnswer::Unfit(why)) => self.leave(question.ticket, (id, &label), &why),
            Err(NoAnswer::Nameless(why)) => self.begin_anew(question.ticket, Anew::Nameless(&why)),
            Err(NoAnswer::Failed(error)) => self.fail(question.ticket, error),
        }
    }

    /// Tells the run how many backends may come, since the linker asks for a few at a time.
    fn expect(&self) {
        let Some((arrivals, _)) = &self.run else { return };
        let progress = lock(self.progress);
        arrivals.expect(expected_misses(self.known, progress.modules.len(), progress.actions.len()));
    }

    /// Ends the link.
    fn fail(&self, ticket: u32, error: LinkError) -> Result<(), LinkError> {
        let mut progress = lock(self.progress);
        progress.is_over = true;
        progress.error.get_or_insert(error);
        drop(progress);
        Ok(self.connection.answer(ticket, Answer::End(1))?)
    }

    /// Handles a hit by the linker's key.
    fn hit(
        &mut self,
        asked: AskedModule<'_>,
        (mut object, file): (RecordedObject, File),
    ) -> Result<(), NoAnswer> {
        let link = self.link;
        let label = object.label.clone();
        if link.stable_names
            && let Some(source) = &object.provenance.source
        {
            self.sources.claim(source, &label).map_err(NoAnswer::Nameless)?;
        }
        // The key covers less than the shard. A dry run has no key, and looks by content.
        let shard = shard::digest_without_paths(asked.shard).unwrap_or_default();
        let provenance = &mut object.provenance;
        if !link.settings.is_described {
            if let Ok(modules) = shard::modules(asked.shard)
                && provenance.shard != shard
            {
                provenance.parts = Some(KeyParts::of_shard(&link.identity, asked.id, &modules, &shard).0);
                provenance.shard = shard;
            }
        } else if provenance.shard != shard {
            match self.inputs(&asked) {
                Ok((_, Some(content))) => provenance.set_inputs(&content, shard),
                // A dry run cannot look up such a module either.
                Ok((_, None)) | Err(NoAnswer::Unfit(_)) => {}
                Err(miss) => return Err(miss),
            }
        }
        let AskedModule { question, id, key, flags, shard, .. } = asked;
        let archive = self.archive_of(id);
        let mut module = LinkModule { flags, ..LinkModule::kept(id, label, archive, key, object) };
        link.add_question(&mut module, question, shard);
        self.give_kept(question.ticket, module, &file).map_err(NoAnswer::Failed)
    }

    /// The archive that holds a module, and where in it.
    pub fn archive_of(&mut self, id: &str) -> Option<(String, usize)> {
        self.files.archive_of(id).map(|(archive, offset)| (archive.to_owned(), offset))
    }

    /// The linker has all its objects, and waits to read them.
    fn has_all_objects(&mut self, ticket: u32) -> Result<(), LinkError> {
        lock(self.progress).answered = Some(Instant::now());
        if !self.take_opened()? {
            return self.begin_anew(ticket, Anew::Damaged);
        }
        match self.claim_opened() {
            Ok(()) => Ok(self.connection.answer(ticket, Answer::Compile)?),
            Err(why) => self.begin_anew(ticket, Anew::Nameless(&why)),
        }
    }

    /// The linker is gone. It may have opened objects without saying that it has all.
    fn check_rest(&mut self) -> Result<(), LinkError> {
        if lock(self.progress).is_anew || self.take_opened()? {
            return Ok(());
        }
        let what = "an object was damaged, and is dropped: link again";
        Err(IoError::on("use", "the store")(std::io::Error::other(what)).into())
    }

    /// Adds the modules whose objects the linker opened from the list. Returns whether all these objects are undamaged.
    fn take_opened(&mut self) -> Result<bool, LinkError> {
        let link = self.link;
        let Some(notes) = link.notes.as_ref().filter(|_| link.settings.linker.is_some()) else {
            return Ok(true);
        };
        let trace = Trace::read(notes, std::path::Path::new(""))
            .map_err(IoError::on("read", "the linker's notes"))?;
        let opened = kept::opened(link, &trace).split_off(self.opened);
        self.opened += opened.len();
        if !kept::are_whole(link, &opened) {
            return Ok(false);
        }
        let mut modules = Vec::with_capacity(opened.len());
        for (id, object) in opened {
            let archive = self.archive_of(&id);
            let (label, key) = (object.label.clone(), object.key.clone());
            modules.push(LinkModule::kept(&id, label, archive, key, object.clone()));
        }
        lock(self.progress).modules.extend(modules);
        Ok(true)
    }

    /// Compares the sources of modules whose objects the linker opened by itself.
    fn claim_opened(&mut self) -> Result<(), String> {
        if !self.link.stable_names {
            return Ok(());
        }
        let source = |module: &LinkModule| {
            Some((module.object.as_ref()?.provenance.source.clone()?, module.label.clone()))
        };
        let sources: Vec<(String, String)> = lock(self.progress).modules.iter().filter_map(source).collect();
        sources.iter().try_for_each(|(source, label)| self.sources.claim(source, label))
    }

    /// The linker's resolution, which is read once; empty if it has written none.
    fn resolution(&mut self) -> std::io::Result<&'scope [u8]> {
        if let Some(file) = self.resolved.take() {
            let text = read(Some(file))?;
            self.resolutions.get_or_init(|| text);
        }
        Ok(self.resolutions.get().map_or(&[], Vec::as_slice))
    }

    /// Reads the linker's symbol resolution, if it has given one.
    pub fn resolve(&mut self, id: &str) -> Result<(), NoAnswer> {
        let text = self.resolution().map_err(IoError::on("read what the linker resolved for", id))?;
        if self.completion.is_none() && !text.is_empty() {
            self.completion = Some(self.link.settings.completion(text));
        }
        Ok(())
    }

    /// The run of the link, which begins with its first action.
    pub fn arrivals(&mut self) -> Result<&Arrivals, IoError> {
        let run = match self.run.take() {
            Some(run) => run,
            None => self.begin()?,
        };
        Ok(&self.run.insert(run).0)
    }

    fn begin(&self) -> Result<(Arrivals, ScopedJoinHandle<'scope, u8>), IoError> {
        let (link, progress, connection, linker) = (self.link, self.progress, self.connection, self.linker);
        let (arrivals, incoming) = run::arrivals();
        let run = move || {
            let code = thread::scope(|scope| {
                let keeper = linker.map(|linker| {
                    let (sender, objects) = mpsc::channel();
                    let keep = move || keep_objects(link, progress, objects);
                    threads::start_in(scope, "keeper", keep).map(|_| (linker, sender))
                });
                let keeper = keeper.transpose().map_err(IoError::on("start", "a thread for objects"))?;
                run_backends(link, progress, connection, incoming, keeper)
            });
            end_run(progress, connection);
            code.unwrap_or_else(|error| {
                lock(progress).error.get_or_insert(error);
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
        let link = self.link;
        if let Some(last) = link.earlier.last(label).filter(|last| last.key == key)
            && let Some(file) = link.objects().open(last)
        {
            return Ok(Some((last.clone(), file)));
        }
        let mut imports: Vec<String> = imports.iter().map(|id| self.files.label(id)).collect();
        imports.sort_unstable();
        Ok(self.find(key, label, dwo, imports)?.map(|found| (found.object, found.file)))
    }

    /// The object of a module in the store.
    pub fn find(
        &self,
        key: &str,
        label: &str,
        dwo: Option<&Utf8Path>,
        imports: Vec<String>,
    ) -> Result<Option<Found>, IoError> {
        let object = ModulePlaces::of(self.link.state(), label).object;
        let sought = Sought { label, object: &object, dwo, imports };
        self.link.objects().find(key, sought, &self.link.digests)
    }

    /// Has the linker begin anew.
    fn begin_anew(&self, ticket: u32, why: Anew<'_>) -> Result<(), LinkError> {
        lock(self.progress).is_anew = true;
        self.link.begin_anew(why);
        Ok(self.connection.answer(ticket, Answer::Again)?)
    }

    /// Leaves a module to the linker.
    fn leave(&self, ticket: u32, (id, label): (&str, &str), why: &str) -> Result<(), LinkError> {
        // Its locals have names like all others, so its source has to be known.
        if self.link.stable_names && !self.sources.has(label) {
            let why = format!("{id} is the linker's own: {why}");
            return self.begin_anew(ticket, Anew::Nameless(&why));
        }
        self.link.note(&format!("the linker compiles {id} itself: {why}"));
        Ok(self.connection.answer(ticket, Answer::Compile)?)
    }

    /// Gives the linker a kept object, and prints the warnings of its compiler again.
    pub fn give_kept(&self, ticket: u32, module: LinkModule, object: &File) -> Result<(), LinkError> {
        self.connection.give(ticket, object)?;
        if let Some(object) = module.object.as_ref().filter(|object| !object.warnings.is_empty()) {
            self.link.reporter.report(ProgressEvent::Printed(&object.warnings));
        }
        let mut progress = lock(self.progress);
        progress.answered = Some(Instant::now());
        progress.modules.push(module);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::expected_misses;

    #[test]
    fn modules_to_come_miss_like_those_that_came() {
        assert_eq!(expected_misses(0, 3, 3), 3, "nothing is known of the link");
        assert_eq!(expected_misses(232, 1, 1), 232);
        assert_eq!(expected_misses(232, 100, 50), 50 + 66);
        assert_eq!(expected_misses(232, 231, 1), 2);
        assert_eq!(expected_misses(232, 240, 9), 9, "modules were added");
    }
}
