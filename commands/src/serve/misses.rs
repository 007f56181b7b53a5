//! Modules without an object under the linker's key: an object with the same inputs, or a new action of the link's run.
//!
//! Does not run actions.

use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_executor::result::Key;
use distlto_executor::run::Arrival;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::module::source_name;
use distlto_planner::shard;
use distlto_prepare::blobs::from_hex;
use distlto_prepare::input::Input;
use distlto_prepare::mutex::lock;
use distlto_record::why::Change;

use super::compilations::{CachedModule, Waiting};
use super::connection::{AskedModule, LinkerConnection, NoAnswer};
use super::describe::{Described, Unfit, describe};
use super::import_steps::{self, PendingStep};
use super::key_parts::{Content, KeyParts};
use super::module::{LinkModule, triple};
use super::module_record::{Provenance, RecordedObject};
use super::protocol::Answer;
use super::settings::LinkerCode;
use crate::link::error::LinkError;
use crate::link::file_state::FileState;

/// What spares the linker a compilation.
#[derive(Default)]
struct Spared {
    /// The module's key in caches and its files.
    cached: Option<CachedModule>,
    step: Option<PendingStep>,
}

impl LinkerConnection<'_, '_, '_> {
    /// Handles a miss: finds an object with the same inputs, or adds an action to make one.
    pub fn miss(&mut self, asked: AskedModule<'_>) -> Result<(), NoAnswer> {
        if !self.link.settings.is_described && self.linker.is_some() {
            return self.compile_there(asked);
        }
        let (described, content) = self.inputs(&asked)?;
        let link = self.link;
        let source = self.source(&link.here(&described.file), &described.label)?;
        let shard = shard::digest_without_paths(asked.shard).unwrap_or_default();
        // The linker's key also covers the imports of others from this module, which its backend does not read.
        if let Some(content) = &content
            && let Some(earlier) = link.earlier.of_content(&content.digest)
            && let Some(mut found) =
                self.find(&earlier.key, &described.label, asked.dwo.as_deref(), sorted(&described.labels))?
        {
            found.object.key.clone_from(&asked.key);
            found.object.provenance.set_inputs(content, shard);
            link.objects().keep_again(&found);
            let Described { label, archive, .. } = described;
            let AskedModule { question, id, key, flags, shard, .. } = asked;
            let mut module = LinkModule { flags, ..LinkModule::kept(id, label, archive, key, found.object) };
            link.add_question(&mut module, question, shard);
            return self.give_kept(question.ticket, module, &found.file).map_err(NoAnswer::Failed);
        }
        let Content { digest, parts, imports: contents } = content.unwrap_or_default();
        let known_reads = self.known_reads(&described.label, &parts);
        let arrival = self.arrival(&asked, &described, &known_reads);
        let parts = (!digest.is_empty()).then_some(parts);
        let mut provenance = Provenance { content: digest, shard, source, parts, ..Provenance::default() };
        provenance.set_cost(described.cost);
        let mut module = LinkModule {
            id: asked.id.to_owned(),
            label: described.label,
            archive: described.archive,
            key: asked.key,
            provenance,
            file: Some(described.file),
            imports: described.labels,
            flags: asked.flags,
            known_reads,
            ticket: Some(asked.question.ticket),
            ..LinkModule::default()
        };
        link.add_question(&mut module, asked.question, asked.shard);
        // In the order of their contents.
        let why = link.why(&module, &contents);
        module.imports.sort_unstable();
        self.add(module, Spared::default(), arrival, why)
    }

    /// The action of a module that a compiler gets.
    fn arrival(
        &self,
        asked: &AskedModule<'_>,
        described: &Described,
        known_reads: &[Utf8PathBuf],
    ) -> Arrival {
        let link = self.link;
        let places = ModulePlaces::of(link.state(), &described.label);
        let files = BackendFiles {
            module: &described.file,
            shard: &places.shard,
            object: &places.object,
            dwo: asked.dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut args = asked.flags.args.clone();
        args.extend(files.args(&triple(&link.here(&described.file))));
        Arrival {
            label: described.label.clone(),
            prefix: link.settings.shared_words(),
            args,
            module: described.file.clone().into(),
            shard: places.shard.into(),
            imports: described.imports.iter().map(Utf8PathBuf::from).collect(),
            extra: link.settings.flags.inputs.iter().chain(known_reads).cloned().collect(),
            object: places.object.into(),
            dwo: asked.dwo.clone(),
            cost: described.cost.total(),
        }
    }

    /// Has the linker compile a module.
    fn compile_there(&mut self, asked: AskedModule<'_>) -> Result<(), NoAnswer> {
        let link = self.link;
        let AskedModule { question, id, key, shard, .. } = asked;
        link.build.store().into_iter().for_each(|store| store.count(false));
        let cached = if link.asks_caches() { self.cached(id, &key, shard) } else { None };
        let missed = link.missed(&mut self.files, question, (id, key), shard);
        let (mut module, why) = missed.map_err(|error| NoAnswer::Unfit(error.to_string()))?;
        module.provenance.source = self.source_there(id, &module.label)?;
        let step = self.import_step(&module, id, shard)?;
        let places = ModulePlaces::of(link.state(), &module.label);
        let arrival = Arrival {
            label: module.label.clone(),
            prefix: link.settings.shared_words(),
            args: vec![id.to_owned()],
            module: module.label.clone().into(),
            shard: places.shard.into(),
            imports: Vec::new(),
            extra: Vec::new(),
            object: places.object.into(),
            dwo: None,
            cost: module.provenance.cost().total(),
        };
        module.ticket = Some(question.ticket);
        self.add(module, Spared { cached, step }, arrival, why)
    }

    /// The source of a module that the linker compiles, where locals are to be called after it.
    fn source_there(&mut self, id: &str, label: &str) -> Result<Option<String>, NoAnswer> {
        if !self.link.build.options.stable_names {
            return Ok(None);
        }
        let source = self.sources.of(&mut self.files, id, label);
        if let Some(source) = source.as_ref().filter(|_| self.link.stable_names) {
            self.sources.claim(source, label).map_err(NoAnswer::Nameless)?;
        }
        Ok(source)
    }

    /// The source of a module that is about to be compiled, where locals are to be called after it.
    fn source(&mut self, module: &Path, label: &str) -> Result<Option<String>, NoAnswer> {
        if !self.link.build.options.stable_names {
            return Ok(None);
        }
        let input = Input::open(module).map_err(LinkError::from).map_err(NoAnswer::Failed)?;
        // A file that is no module fails its backend, which reports it.
        let Ok(source) = source_name(&input) else { return Ok(None) };
        if self.link.stable_names {
            self.sources.claim(&source, label).map_err(NoAnswer::Nameless)?;
        }
        Ok(Some(source))
    }

    /// The import step that may spare a module's backend.
    fn import_step(
        &mut self,
        module: &LinkModule,
        id: &str,
        shard: &[u8],
    ) -> Result<Option<PendingStep>, NoAnswer> {
        let link = self.link;
        let Some(earlier) = import_steps::candidate(link, module) else { return Ok(None) };
        let Some(compiler) = import_steps::importer(link) else { return Ok(None) };
        self.resolve(id)?;
        let described = match describe(&mut self.files, self.completion.as_mut(), id, shard) {
            Ok(described) => described,
            Err(Unfit::Because(_)) => return Ok(None),
            Err(Unfit::Io(error)) => return Err(error.into()),
        };
        let shard = ModulePlaces::of(link.state(), &described.label).shard;
        keep::shard_at(&link.here(&shard), &described.shard)?;
        Ok(Some(PendingStep::of(link, &described, compiler, earlier)))
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
    pub fn inputs(&mut self, asked: &AskedModule<'_>) -> Result<(Described, Option<Content>), NoAnswer> {
        self.resolve(asked.id)?;
        let link = self.link;
        let described = describe(&mut self.files, self.completion.as_mut(), asked.id, asked.shard)?;
        let shard = ModulePlaces::of(link.state(), &described.label).shard;
        keep::shard_at(&link.here(&shard), &described.shard)?;
        let (flags, dwo) = (&asked.flags.args, asked.dwo.as_ref());
        let content = link.content(&described.file, &shard, &described.imports, flags, dwo);
        Ok((described, content))
    }

    /// Adds an action to the run.
    fn add(
        &mut self,
        module: LinkModule,
        Spared { cached, step }: Spared,
        arrival: Arrival,
        why: Vec<Change>,
    ) -> Result<(), NoAnswer> {
        let (link, linker, connection) = (self.link, self.linker, self.connection);
        let progress = self.progress;
        let arrivals = self.arrivals()?;
        // Held until the action is known: it may end at once.
        let mut progress = lock(progress);
        let number = progress.modules.len();
        if let Some(linker) = linker {
            let is_for_all = !link.settings.linker.as_ref().is_some_and(LinkerCode::is_for_this_processor);
            let is_elsewhere = link.settings.is_described && is_for_all;
            let other_key = from_hex(&module.key).filter(|_| is_elsewhere).map(Key);
            linker.add(&module.label, Waiting { number, cached, step, other_key });
        }
        let Some(id) = arrivals.add(arrival) else {
            drop(progress);
            let Some(ticket) = module.ticket else { return Ok(()) };
            return Ok(connection.answer(ticket, Answer::End(1))?);
        };
        let record = link.action_record(id.index(), &module, why);
        link.reporter.record_more_actions(vec![record]);
        progress.modules.push(module);
        progress.actions.push(number);
        progress.open += 1;
        Ok(())
    }

    /// Returns the further files that the module's compiler read before, as far as they exist. As declared inputs,
    /// caches and other machines know of them. The reads of another module with this label do not count.
    fn known_reads(&self, label: &str, parts: &KeyParts) -> Vec<Utf8PathBuf> {
        let is_same = |last: &&RecordedObject| {
            last.provenance.parts.as_ref().is_some_and(|before| before.module() == parts.module())
        };
        let last = self.link.earlier.last(label).filter(is_same);
        let read = last.into_iter().flat_map(|last| &last.provenance.read);
        let root = self.link.absolute_root();
        let files = read.map(|(path, _)| Utf8Path::new(path)).filter(|path| path.is_file());
        files.map(|path| path.strip_prefix(&root).unwrap_or(path).to_owned()).collect()
    }
}

fn sorted(labels: &[String]) -> Vec<String> {
    let mut labels = labels.to_vec();
    labels.sort_unstable();
    labels
}
