//! Reads the shards of a linker that stops after its thin link, and reports the backends that would run.
//!
//! State is only read; new files go to a scratch folder. Runs no backend.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use distlto_executor::trace::memory;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::graph::{Action, ActionGraph, BackendWork, Decided, Work};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::shard;
use distlto_prepare::io_error::IoError;
use distlto_record::action::ActionRecord;

use super::answering::Answering;
use super::backends::{give_file, send};
use super::describe::{Described, Unfit, describe};
use super::link::read;
use super::module::{LinkModule, triple};
use super::module_record::{self, RecordedObject};
use super::modules::{ModuleFiles, Temporaries};
use super::protocol::{Answer, PACKET, Question, RESOLUTIONS};
use super::settings::CompileSettings;
use super::socket::{Caller, Received};
use crate::link::{LinkError, dry_run};

/// A linker's shards and its symbol resolution.
#[derive(Default)]
pub struct Heard {
    /// Each with the id of its module, in the order in which the linker wrote them.
    pub shards: Vec<(String, Vec<u8>)>,
    pub resolutions: Option<Vec<u8>>,
}

/// Describes each module that a linker loads, by its id. Modules that the linker compiles itself are left out.
pub fn collect(
    heard: Heard,
    files: &mut ModuleFiles,
    compilation: &CompileSettings,
) -> Result<Vec<(String, Described)>, LinkError> {
    let mut completion = heard.resolutions.as_deref().map(|text| compilation.completion(text));
    // A module that the linker did not load has a stub.
    let is_loaded = |bytes: &[u8]| shard::read(bytes).is_ok_and(|read| !read.is_stub());
    let loaded: Vec<_> = heard.shards.into_iter().filter(|(_, bytes)| is_loaded(bytes)).collect();
    files.place(&loaded.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())?;
    let mut modules = Vec::new();
    for (id, bytes) in loaded {
        match describe(files, completion.as_mut(), &id, &bytes) {
            Ok(described) => modules.push((id, described)),
            Err(Unfit::Because(why)) if compilation.is_distributed() => {
                return Err(LinkError::Unnamed { module: id, why });
            }
            Err(Unfit::Because(_)) => {}
            Err(Unfit::Io(error)) => return Err(error.into()),
        }
    }
    Ok(modules)
}

/// Reports which backends of a linker would run. False if there was none to ask about.
pub fn report(answering: &Answering<'_>, seen: Seen<'_>) -> Result<bool, LinkError> {
    let modules = match seen {
        Seen::Shards(heard, kept) => look_at_all(answering, heard, kept)?,
        Seen::Questions(caller) => ask(answering, caller)?,
    };
    if modules.is_empty() {
        return Ok(false);
    }
    let (graph, wanted) = graph(answering, &modules);
    let record = answering.action_records();
    let first = wanted.len();
    let mut actions: Vec<ActionRecord> = Vec::with_capacity(modules.len());
    let mut kept = Vec::new();
    for (module, why) in modules {
        match why {
            Some(why) => actions.push(record.action(actions.len(), &module, why)),
            None => kept.push(module),
        }
    }
    actions.extend(kept.iter().enumerate().map(|(at, module)| record.kept(first + at, module)));
    let compilation = answering.compilation;
    dry_run::print(answering.session, &graph, &actions, (compilation.jobs, compilation.shows_imports))?;
    Ok(true)
}

/// What a linker shows of its modules.
pub enum Seen<'a> {
    /// It has ended after its thin link. Modules that a driver has compiled for it may be gone.
    Shards(Heard, Temporaries),
    /// It asks for objects.
    Questions(&'a Caller),
}

/// Answers a linker that asks with an object that is none, and ends it before it reads one.
fn ask(answering: &Answering<'_>, caller: &Caller) -> Result<Vec<Looked>, LinkError> {
    let heard = |error| IoError::on("hear", "the linker")(error);
    let root = answering.directory.unwrap_or(Path::new(""));
    let mut files = ModuleFiles::new(root, answering.session.directory).with_slices(answering.compilation);
    let empty = memory(1).map_err(heard)?;
    let mut modules = Vec::new();
    let mut bytes = vec![0; PACKET];
    loop {
        let (bytes, shard) = match caller.receive(&mut bytes, None).map_err(heard)? {
            Received::Packet(bytes, _) if bytes == RESOLUTIONS => continue,
            Received::Packet(bytes, shard) => (bytes, shard),
            Received::Nothing => continue,
            Received::Gone => return Ok(modules),
        };
        let question = Question::from_bytes(bytes).ok_or_else(|| heard(ErrorKind::InvalidData.into()))?;
        if question.key.is_empty() {
            send(caller, question.ticket, Answer::End(0))?;
            continue;
        }
        if let Ok(id) = std::str::from_utf8(question.module) {
            let shard = read(shard).map_err(IoError::on("read the index shard of", id))?;
            modules.extend(look_up(answering, &mut files, &question, id, &shard));
        }
        give_file(caller, question.ticket, &empty)?;
    }
}

/// Looks for the object that a linker asks for. `None` if its shard cannot be read.
fn look_up(
    answering: &Answering<'_>,
    files: &mut ModuleFiles,
    question: &Question<'_>,
    id: &str,
    shard: &[u8],
) -> Option<Looked> {
    let (key, _) = module_record::key(answering.identity, question, shard, &[], None);
    let is_kept = answering.objects.has(&key);
    let (module, why) = answering.missed(files, question, (id, key), shard).ok()?;
    let last = answering.earlier.last(&module.label);
    let is_changed =
        last.is_some_and(|last| last.key == module.key && last.changed_read(answering.digests).is_some());
    Some((module, (!is_kept || is_changed).then_some(why)))
}

fn look_at_all(answering: &Answering<'_>, heard: Heard, kept: Temporaries) -> Result<Vec<Looked>, LinkError> {
    let mut files =
        ModuleFiles::new(answering.directory.unwrap_or(Path::new("")), answering.session.directory)
            .with_kept(kept)
            .with_slices(answering.compilation);
    let mut found = collect(heard, &mut files, answering.compilation)?;
    for (id, described) in &mut found {
        described.flags = answering.compilation.of_module(&mut files, id)?.args;
    }
    found.into_iter().map(|(id, described)| look(answering, &id, described)).collect()
}

/// Receives a linker's shards until it ends. `folder` has them, by their numbers.
pub fn hear(caller: &Caller, folder: &Path) -> Result<Heard, IoError> {
    let heard = |error| IoError::on("hear", "the linker")(error);
    let (mut numbers, mut resolved) = (HashMap::new(), None);
    let mut bytes = vec![0; PACKET];
    loop {
        match caller.receive(&mut bytes, None).map_err(heard)? {
            Received::Packet(bytes, file) if bytes == RESOLUTIONS => resolved = file,
            Received::Packet(bytes, _) => {
                let question =
                    Question::from_bytes(bytes).ok_or_else(|| heard(ErrorKind::InvalidData.into()))?;
                // A module with an id that is not UTF-8 gets no backend.
                if let Ok(id) = std::str::from_utf8(question.module) {
                    numbers.insert(id.to_owned(), question.ticket);
                }
            }
            Received::Nothing | Received::Gone => break,
        }
    }
    let mut numbers: Vec<_> = numbers.into_iter().map(|(id, number)| (number, id)).collect();
    numbers.sort_unstable();
    let shard = |(number, id): (u32, String)| {
        let path = folder.join(number.to_string());
        Ok((id, fs::read(&path).map_err(IoError::on("read the index shard", &path))?))
    };
    let shards = numbers.into_iter().map(shard).collect::<Result<_, IoError>>()?;
    let resolutions = resolved.map(|file| read(Some(file))).transpose().map_err(heard)?;
    Ok(Heard { shards, resolutions })
}

/// A module, and why its backend would run, if it would.
type Looked = (LinkModule, Option<Vec<distlto_record::why::Change>>);

/// Looks at a module.
fn look(answering: &Answering<'_>, id: &str, described: Described) -> Result<Looked, LinkError> {
    let Described { label, archive, file, imports, labels, shard, cost, flags } = described;
    let names = ModulePlaces::of(answering.session.directory, &label);
    distlto_planner::keep::shard_at(Path::new(&names.shard), &shard)?;
    let dwo = answering.compilation.flags.dwo(&label);
    let content = answering.content(&file, &names.shard, &imports, &flags, dwo.as_ref());
    let known = content.as_ref().and_then(|content| answering.earlier.of_content(&content.digest));
    let holds = |object: &&RecordedObject| {
        answering.objects.has(&object.key) && object.changed_read(answering.digests).is_none()
    };
    if let Some(object) = known.filter(holds) {
        let module = LinkModule::kept(id, label, archive, object.key.clone(), object.clone());
        return Ok((module, None));
    }
    let key = known.map_or_else(String::new, |object| object.key.clone());
    let (parts, contents) = content.map(|content| (content.parts, content.imports)).unzip();
    let (file, imports) = (Some(file), labels);
    let module = LinkModule { label, archive, key, file, imports, cost, parts, ..LinkModule::default() };
    let why = answering.action_records().why(&module, &contents.unwrap_or_default());
    Ok((module, Some(why)))
}

/// The actions of the backends that would run, and the numbers of their modules.
fn graph(answering: &Answering<'_>, modules: &[Looked]) -> (ActionGraph, Vec<usize>) {
    let mut graph = ActionGraph::new();
    let prefix = graph.prefix(answering.compilation.shared_words().to_vec());
    let wanted = (0..modules.len()).filter(|&number| modules[number].1.is_some()).collect::<Vec<_>>();
    for &number in &wanted {
        let (module, _) = &modules[number];
        let names = ModulePlaces::of(answering.session.directory, &module.label);
        let file = module.file.as_deref().unwrap_or_default();
        let args = BackendFiles { module: file, shard: &names.shard, object: &names.object, dwo: None };
        let args = args.args(&triple(&answering.here(file)));
        let work = Work::Backend(BackendWork {
            module: graph.file(file),
            shard: graph.file(&names.shard),
            imports: Vec::new(),
            extra: Vec::new(),
            object: graph.file(&names.object),
            dwo: None,
            also: Vec::new(),
            decided: Decided::default(),
        });
        let (label, cost) = (module.label.clone(), module.cost.total());
        graph.add(Action { work, label, prefix: Some(prefix), args, cost });
    }
    (graph, wanted)
}
