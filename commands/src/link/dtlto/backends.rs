//! The backends of one link by lld: which of them are out of date, and running those.
//!
//! lld's job file says which modules there are, with their shards and imports, and where it wants the objects; how they
//! are compiled follows from the link line. Objects are compiled into the state directory and linked into lld's places. One
//! that is there from an earlier link serves if its key is the same: compiler, flags, environment, the contents of
//! module, imports and profiles, and the shard without the names of files, which differ from link to link.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::alias::needs_alias;
use distlto_planner::backend_flags::{BackendFiles, stable_names};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::dtlto::{self, JobFile};
use distlto_planner::graph::{self, Action, ActionGraph, ActionId, Work};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::shard::Cost;
use distlto_planner::words::shell_line;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::JsonLines;
use distlto_prepare::write::link_or_copy;
use rayon::prelude::*;

use super::failed::FailedBackends;
use super::kept::{self, Kept, KeptObject};
use super::modules::{CompileSettings, LinkModule, Ran, cost, labels, triple};
use super::names::{self, Name};
use super::parts::{Identity, Parts};
use super::shards;
use super::told::Told;
use crate::link::{LinkError, Session, dry_run, nothing_to_do, state};
use crate::run_args::Assembly;
use crate::up_to_date::Records;
use distlto_executor::describe::framed::Framed;
use distlto_executor::describe::inputs::Inputs;
use distlto_executor::execute::cc1::Cc1Commands;
use distlto_executor::process_stat::resident;
use distlto_executor::run::{self, Hooks};
use distlto_executor::verify::Backend;
use distlto_planner::dtlto::temporaries;
use distlto_record::progress::Reporter;
use distlto_record::report::Measured;

/// What lld hands over.
pub struct Jobs {
    file: JobFile,
    /// lld's process number, where the job file's name has it.
    process: Option<u32>,
}

impl Jobs {
    /// A module whose name lld cannot spell in a job file or a shard.
    pub fn odd_name(&self) -> Option<&str> {
        let modules = self.file.jobs.iter().map(|&job| self.file.module(job));
        modules.into_iter().find(|module| needs_alias(Path::new(module)))
    }

    /// The modules, each by what people call it and by its file.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &Path)> {
        let modules = self.file.jobs.iter().map(|&job| self.file.module(job));
        modules.map(|module| (module, Path::new(module)))
    }
}

/// All that running backends takes.
pub struct Backends<'a> {
    pub session: &'a Session<'a>,
    pub compilation: &'a CompileSettings,
    /// Stands for the compiler, with the environment that it reads, and its flags.
    pub identity: Identity,
    pub cc1_commands: &'a Cc1Commands,
    pub records: &'a Records,
    pub kept: &'a Kept,
}

impl Backends<'_> {
    fn told(&self) -> Told<'_> {
        Told { directory: self.session.directory, kept: self.kept, compilation: self.compilation }
    }

    /// Reads a job file.
    pub fn read(&self, job_file: &Path) -> Result<Jobs, LinkError> {
        let file = dtlto::read(&Input::open(job_file)?, &job_file.to_string_lossy())?;
        let process = job_file.file_name().and_then(|name| temporaries::process_of(name.to_str()?));
        Ok(Jobs { file, process })
    }

    /// Has the objects of a job file be where lld wants them.
    pub fn run(&self, jobs: &Jobs) -> Result<Ran, LinkError> {
        let mut modules = self.modules(&jobs.file, jobs.process);
        self.find_kept(&mut modules)?;
        let wanted = modules.par_iter_mut().filter(|module| module.object.is_none());
        wanted.for_each(|module| module.cost = cost(module));
        let (graph, actions) = self.graph(&modules);
        self.session.reporter.knows(self.told().actions(&modules, &actions));
        let (code, made) = self.compile(&graph, &actions, &modules, jobs.process)?;
        for (number, object) in made {
            modules[number].object = object;
            modules[number].ran = true;
        }
        Ok(Ran { code, modules })
    }

    /// Says which backends would run.
    pub fn preview(&self, jobs: &Jobs) -> Result<(), IoError> {
        let mut modules = self.modules(&jobs.file, jobs.process);
        modules.par_iter_mut().for_each(|module| {
            let found =
                module.key.as_ref().and_then(|key| self.kept.find(&key.hex(), self.records.digests()));
            module.object = found.cloned();
            module.cost = module.object.as_ref().map_or_else(|| cost(module), KeptObject::cost);
        });
        let (graph, wanted) = self.graph(&modules);
        let actions = self.told().actions(&modules, &wanted);
        dry_run::tell(self.session, &graph, &actions, self.compilation.jobs)
    }

    fn modules(&self, file: &JobFile, process: Option<u32>) -> Vec<LinkModule> {
        let paths = file.jobs.iter().map(|&job| file.module(job));
        let names = names::of(paths, process);
        let common: BTreeSet<&Utf8Path> = file.common_inputs.iter().map(|path| path.as_path()).collect();
        let module = |(name, &job): (Name, &ActionId)| {
            let imports = file.others(job).filter(|path| !common.contains(path));
            let mut module = LinkModule {
                name,
                path: file.module(job).to_owned(),
                shard: file.shard(job).to_owned(),
                wanted: file.object(job).to_owned(),
                imports: imports.map(|path| path.to_string()).collect(),
                cost: Cost::default(),
                key: None,
                parts: None,
                object: None,
                ran: false,
            };
            (module.key, module.parts) = self.key(&module).unzip();
            module
        };
        names.into_par_iter().zip(&file.jobs).map(module).collect()
    }

    /// Stands for what decides the object; `None` where that is not all known, so that the backend runs.
    fn key(&self, module: &LinkModule) -> Option<(Digest, Parts)> {
        let flags = &self.compilation.flags;
        let extra: Vec<&str> = flags.inputs.iter().map(|path| path.as_str()).collect();
        let others: Vec<&str> =
            module.imports.iter().map(String::as_str).chain(extra.iter().copied()).collect();
        let backend = Backend { module: &module.path, shard: module.shard.as_str(), others: &others };
        let inputs = Inputs::of(backend, Path::new(""), self.records.digests()).ok()?;
        let mut framed = Framed::new("distlto kept object 2");
        framed.content("compilation", &self.identity.digest);
        inputs.add_to(&mut framed);
        // The name of split debug information stands in the object.
        let dwo = flags.dwo(&module.name.label).map_or_else(String::new, Utf8PathBuf::into_string);
        framed.add("dwo", &dwo);
        Some((framed.finish(), Parts::of(&self.identity, &inputs, &extra, &dwo)))
    }

    /// Puts what is kept into lld's places.
    fn find_kept(&self, modules: &mut [LinkModule]) -> Result<(), IoError> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let (directory, labels) = (self.session.directory, labels(modules));
        let found = |module: &LinkModule| -> Result<Option<KeptObject>, IoError> {
            let key = module.key.as_ref().map(Digest::hex);
            let found = key.and_then(|key| self.kept.find(&key, self.records.digests()));
            let Some(object) = found else { return Ok(None) };
            link_or_copy(object.path(), module.wanted.as_std_path())?;
            if !shards::is_kept(directory, module) {
                shards::keep(directory, module, &labels)?;
            }
            Ok(Some(object.clone()))
        };
        let objects: Vec<_> = modules.par_iter().with_min_len(16).map(found).collect::<Result<_, _>>()?;
        for (module, object) in modules.iter_mut().zip(objects) {
            module.cost = object.as_ref().map(KeptObject::cost).unwrap_or_default();
            module.object = object.map(|object| self.in_own_place(module, object)).transpose()?;
        }
        Ok(())
    }

    /// An object that lies where the module's own belongs. Equal modules have one key, and a member may have got the name
    /// of another; lld has its object by now, whatever becomes of the file that it was found in.
    fn in_own_place(&self, module: &LinkModule, object: KeptObject) -> Result<KeptObject, IoError> {
        let place = ModulePlaces::of(self.session.directory, &module.name.label).object;
        let Some(key) = module.key.as_ref().filter(|_| object.path() != Path::new(&place)) else {
            return Ok(object);
        };
        let place = Utf8PathBuf::from(place);
        link_or_copy(module.wanted.as_std_path(), place.as_std_path())?;
        // The name of split debug information is in the key, so it has its place already.
        let dwo = self.compilation.flags.dwo(&module.name.label);
        let files = [place.as_path()].into_iter().chain(dwo.as_deref());
        let parts = module.parts.as_ref();
        KeptObject::of(key, parts, &module.name.label, module.cost, files, self.records.digests())
    }

    /// An action for each module that has to be compiled; with it the module's place in the list.
    fn graph(&self, modules: &[LinkModule]) -> (ActionGraph, Vec<usize>) {
        let mut graph = ActionGraph::new();
        let prefix = graph.prefix(self.compilation.flags.shared_words(&self.compilation.compiler));
        let wanted: Vec<usize> =
            (0..modules.len()).filter(|&number| modules[number].object.is_none()).collect();
        let triples: Vec<String> = wanted.par_iter().map(|&number| triple(&modules[number].path)).collect();
        for (&number, triple) in wanted.iter().zip(&triples) {
            let module = &modules[number];
            let object = ModulePlaces::of(self.session.directory, &module.name.label).object;
            let dwo = self.compilation.flags.dwo(&module.name.label);
            let names = BackendFiles {
                module: &module.path,
                shard: module.shard.as_str(),
                object: &object,
                dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
            };
            let imports = module.imports.iter().map(String::as_str);
            let extra = self.compilation.flags.inputs.iter().map(|path| path.as_str());
            let work = Work::Backend(graph::BackendWork {
                module: graph.file(&module.path),
                shard: graph.file(&module.shard),
                imports: imports.map(|path| graph.file(path)).collect(),
                extra: extra.map(|path| graph.file(path)).collect(),
                object: graph.file(&object),
                dwo: dwo.as_deref().map(|dwo| graph.file(dwo)),
                also: Vec::new(),
            });
            graph.add(Action {
                work,
                label: module.name.label.clone(),
                prefix: Some(prefix),
                args: names.args(triple),
                cost: module.cost.total(),
            });
        }
        (graph, wanted)
    }

    fn compile(
        &self,
        graph: &ActionGraph,
        numbers: &[usize],
        modules: &[LinkModule],
        process: Option<u32>,
    ) -> Result<(u8, Vec<Made>), LinkError> {
        let session = self.session;
        if numbers.is_empty() {
            nothing_to_do(session.options, session.reporter);
            return Ok((0, Vec::new()));
        }
        let args = &session.options.run;
        if numbers.len() > 1 {
            args.prewarm(session.spawner, OsStr::new(&self.compilation.compiler), numbers.len());
        }
        let jobserver = args.jobserver(numbers.len(), self.compilation.jobs);
        let state = Some(session.directory.as_ref());
        let is_stable = stable_names::are_in(graph);
        let assembly = Assembly::new(args, session.spawner, session.cancel, state, is_stable)?;
        let history = state::history(session.directory);
        let mut options = assembly.options(session.reporter, Some(&history), self.compilation.jobs);
        // lld stays for the whole link.
        options.beside = process.and_then(resident).unwrap_or(0);
        options.jobserver = jobserver.as_ref();
        options.cc1_commands = Some(self.cc1_commands);
        options.digests = Some(self.records.digests());
        let wanted: Vec<ActionId> = graph.actions().map(|(id, _)| id).collect();
        let kept = RefCell::new((kept::appender(session.directory)?, Vec::new(), None));
        let failed = FailedBackends { state: session.directory, compilation: self.compilation, modules };
        let keep_failed = |id: ActionId| {
            // What cannot be kept is repeated where it ran, for as long as its files are there.
            failed.keep(&modules[numbers[id.index()]]).unwrap_or_else(|_| shell_line(graph.command(id)))
        };
        options.keep_failed = Some(&keep_failed);
        let (digests, reporter) = (self.records.digests(), session.reporter);
        let (directory, labels) = (session.directory, labels(modules));
        let hooks = HandingBack { directory, labels, digests, reporter, graph, modules, numbers, kept };
        let report = run::run(graph, &wanted, &options, &hooks);
        match hooks.kept.into_inner() {
            (_, _, Some(error)) => Err(error.into()),
            (_, made, None) => Ok((report.exit_code(), made)),
        }
    }
}

/// The number of a module that was compiled, and its object if that may serve again.
type Made = (usize, Option<KeptObject>);

/// Gives lld each object as it is made, and records it.
struct HandingBack<'a> {
    /// The state directory.
    directory: &'a str,
    labels: HashMap<&'a str, &'a str>,
    digests: &'a FileDigests,
    reporter: &'a Reporter,
    graph: &'a ActionGraph,
    modules: &'a [LinkModule],
    /// The module of each action.
    numbers: &'a [usize],
    kept: RefCell<(JsonLines, Vec<Made>, Option<IoError>)>,
}

impl HandingBack<'_> {
    fn keep(&self, action: ActionId) -> Result<(), IoError> {
        let number = self.numbers[action.index()];
        let module = &self.modules[number];
        let made_by = self.graph.action(action);
        let files = || made_by.outputs().map(|output| self.graph.path(output));
        if let Some(backend) = made_by.backend() {
            link_or_copy(self.graph.path(backend.object).as_std_path(), module.wanted.as_std_path())?;
            shards::keep(self.directory, module, &self.labels)?;
        }
        let (appender, made, _) = &mut *self.kept.borrow_mut();
        // An input that changed meanwhile fails the job, so the key is that of what was compiled.
        let key = module.key.as_ref();
        let object = key
            .map(|key| {
                let parts = module.parts.as_ref();
                KeptObject::of(key, parts, &module.name.label, module.cost, files(), self.digests)
            })
            .transpose()?;
        if let Some(object) = &object {
            self.reporter.wrote(action, object.files.iter().cloned());
        }
        object.iter().try_for_each(|object| appender.append(object))?;
        made.push((number, object));
        Ok(())
    }
}

impl Hooks for HandingBack<'_> {
    fn finished(&self, action: ActionId, _: Measured) {
        if let Err(error) = self.keep(action) {
            self.kept.borrow_mut().2.get_or_insert(error);
        }
    }
}
