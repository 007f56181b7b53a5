//! Reads the shards of a linker that stops after its thin link, and reports the backends that would run.
//!
//! State is only read; new files go to a scratch folder. Runs no backend.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::graph::{Action, ActionGraph, BackendWork, Decided, Work};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::shard;
use distlto_prepare::io_error::IoError;
use distlto_record::action::ActionRecord;

use super::answering::Answering;
use super::describe::{Described, Unfit, describe};
use super::link::read;
use super::module::{LinkModule, triple};
use super::module_record::RecordedObject;
use super::modules::{ModuleFiles, Temporaries};
use super::protocol::{PACKET, Question, RESOLUTIONS};
use super::settings::CompileSettings;
use super::socket::{Caller, Received};
use crate::link::{LinkError, dry_run};

/// Receives a linker's shards until it ends, and describes each module that it loads, by its id. Modules that the
/// linker compiles itself are left out. `folder` has the shards.
pub fn collect(
    caller: &Caller,
    folder: &Path,
    files: &mut ModuleFiles,
    compilation: &CompileSettings,
) -> Result<Vec<(String, Described)>, LinkError> {
    let (shards, resolutions) = hear(caller).map_err(IoError::on("hear", "the linker"))?;
    let mut completion = resolutions.as_deref().map(|text| compilation.completion(text));
    let mut loaded = Vec::new();
    for (number, id) in shards {
        let path = folder.join(number.to_string());
        let bytes = fs::read(&path).map_err(IoError::on("read the index shard", &path))?;
        // A module that the linker did not load has a stub.
        if shard::read(&bytes).is_ok_and(|read| !read.is_stub()) {
            loaded.push((id, bytes));
        }
    }
    files.place(&loaded.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())?;
    let mut modules = Vec::new();
    for (id, bytes) in loaded {
        match describe(files, completion.as_mut(), &id, &bytes) {
            Ok(described) => modules.push((id, described)),
            Err(Unfit::Because(_)) => {}
            Err(Unfit::Io(error)) => return Err(error.into()),
        }
    }
    Ok(modules)
}

/// Reports which backends of a linker would run. False if there was no shard.
pub fn report(
    answering: &Answering<'_>,
    caller: &Caller,
    folder: &Path,
    kept: Temporaries,
) -> Result<bool, LinkError> {
    let mut files =
        ModuleFiles::new(answering.directory.unwrap_or(Path::new("")), answering.session.directory)
            .with_kept(kept)
            .with_slices(answering.compilation);
    let mut found = collect(caller, folder, &mut files, answering.compilation)?;
    if found.is_empty() {
        return Ok(false);
    }
    for (id, described) in &mut found {
        described.flags = answering.compilation.of_module(&mut files, id)?.args;
    }
    let modules: Vec<Looked> =
        found.into_iter().map(|(id, described)| look(answering, &id, described)).collect::<Result<_, _>>()?;
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
    dry_run::print(answering.session, &graph, &actions, answering.compilation.jobs)?;
    Ok(true)
}

/// The shards of a linker by their numbers, with the modules that they are of.
type Shards = Vec<(u32, String)>;

/// The shards of a linker, and its symbol resolution.
fn hear(caller: &Caller) -> std::io::Result<(Shards, Option<Vec<u8>>)> {
    let (mut shards, mut resolved) = (HashMap::new(), None);
    let mut bytes = vec![0; PACKET];
    while let Received::Packet(bytes, file) = caller.receive(&mut bytes, None)? {
        if bytes == RESOLUTIONS {
            resolved = file;
            continue;
        }
        let question = Question::from_bytes(bytes).ok_or(std::io::ErrorKind::InvalidData)?;
        // A module with an id that is not UTF-8 gets no backend.
        if let Ok(id) = std::str::from_utf8(question.module) {
            shards.insert(id.to_owned(), question.ticket);
        }
    }
    let mut shards: Vec<_> = shards.into_iter().map(|(id, number)| (number, id)).collect();
    shards.sort_unstable();
    let resolutions = resolved.map(|file| read(Some(file))).transpose()?;
    Ok((shards, resolutions))
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
