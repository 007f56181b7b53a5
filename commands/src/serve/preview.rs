//! A dry run: reports the backends that a link would run.
//!
//! State is only read; new files go to a scratch folder. Runs no backend.

use std::path::Path;

use distlto_executor::trace::memory;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::graph::{Action, ActionGraph, BackendWork, Decided, Work};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_prepare::io_error::IoError;
use distlto_record::action::ActionRecord;
use distlto_record::why::Change;

use super::describe::Described;
use super::link::Link;
use super::module::{LinkModule, triple};
use super::module_record::{self, Provenance, RecordedObject};
use super::modules::{ModuleFiles, Temporaries};
use super::protocol::{Answer, PACKET, Question};
use super::socket::{Connection, Message, heard, read};
use super::thin_link::ThinLink;
use crate::link::dry_run::DryRunLink;
use crate::link::error::LinkError;

/// Reports which backends of a linker would run. False if there was none to ask about.
pub fn report(link: &Link<'_>, shown: Shown<'_>) -> Result<bool, LinkError> {
    let modules = match shown {
        Shown::Shards(shards, kept) => look_at_all(link, shards, kept)?,
        Shown::Questions(linker) => ask(link, linker)?,
    };
    if modules.is_empty() {
        return Ok(false);
    }
    let (graph, wanted) = graph(link, &modules);
    let first = wanted.len();
    let mut actions: Vec<ActionRecord> = Vec::with_capacity(modules.len());
    let mut kept = Vec::new();
    for (module, why) in modules {
        match why {
            Some(why) => actions.push(link.action_record(actions.len(), &module, why)),
            None => kept.push(module),
        }
    }
    actions.extend(kept.iter().enumerate().map(|(at, module)| link.kept_record(first + at, module)));
    let printed = DryRunLink {
        output: link.command.line.output(),
        state: link.state(),
        earlier: link.earlier_state(),
        jobs: link.settings.jobs,
        has_steps: link.settings.shows_imports,
    };
    printed.print(&link.build.options.run, &graph, &actions)?;
    Ok(true)
}

/// What a linker shows of its modules.
pub enum Shown<'a> {
    /// It has ended after its thin link. Modules that a driver has compiled for it may be gone.
    Shards(ThinLink, Temporaries),
    /// It asks for objects.
    Questions(&'a Connection),
}

/// Answers a linker that asks with an object that is none, and ends it before it reads one.
fn ask(link: &Link<'_>, linker: &Connection) -> Result<Vec<Looked>, LinkError> {
    let mut files = ModuleFiles::new(link.root(), link.state()).with_slices(&link.settings);
    let empty = memory(1).map_err(heard)?;
    let mut modules = Vec::new();
    let mut bytes = vec![0; PACKET];
    loop {
        let (question, shard) = match linker.message(&mut bytes, None)? {
            Message::Question(question, shard) => (question, shard),
            Message::HasAll(ticket) | Message::Succeeded(ticket) => {
                linker.answer(ticket, Answer::End(0))?;
                continue;
            }
            Message::Resolution(_) | Message::Compiled(..) | Message::Nothing => continue,
            Message::Gone => return Ok(modules),
        };
        if let Ok(id) = std::str::from_utf8(question.module) {
            let shard = read(shard).map_err(IoError::on("read the index shard of", id))?;
            modules.extend(look_up(link, &mut files, &question, id, &shard));
        }
        linker.give(question.ticket, &empty)?;
    }
}

/// Looks for the object that a linker asks for. `None` if its shard cannot be read.
fn look_up(
    link: &Link<'_>,
    files: &mut ModuleFiles,
    question: &Question<'_>,
    id: &str,
    shard: &[u8],
) -> Option<Looked> {
    let (key, _) = module_record::key(&link.identity, question, shard, &[], None);
    let is_kept = link.objects().has(&key);
    let (module, why) = link.missed(files, question, (id, key), shard).ok()?;
    let last = link.earlier.last(&module.label);
    let is_changed =
        last.is_some_and(|last| last.key == module.key && last.changed_read(&link.digests).is_some());
    Some((module, (!is_kept || is_changed).then_some(why)))
}

fn look_at_all(link: &Link<'_>, shards: ThinLink, kept: Temporaries) -> Result<Vec<Looked>, LinkError> {
    let mut files = ModuleFiles::new(link.root(), link.state()).with_kept(kept).with_slices(&link.settings);
    let found = shards.modules(&mut files, &link.settings)?;
    found.into_iter().map(|(id, described)| look(link, &id, described)).collect()
}

/// A module, and why its backend would run, if it would.
type Looked = (LinkModule, Option<Vec<Change>>);

/// Looks at a module.
fn look(link: &Link<'_>, id: &str, described: Described) -> Result<Looked, LinkError> {
    let Described { label, archive, file, imports, labels, shard, cost, flags } = described;
    let names = ModulePlaces::of(link.state(), &label);
    keep::shard_at(Path::new(&names.shard), &shard)?;
    let dwo = link.settings.flags.dwo(&label);
    let content = link.content(&file, &names.shard, &imports, &flags.args, dwo.as_ref());
    let known = content.as_ref().and_then(|content| link.earlier.of_content(&content.digest));
    let holds = |object: &&RecordedObject| {
        link.objects().has(&object.key) && object.changed_read(&link.digests).is_none()
    };
    if let Some(object) = known.filter(holds) {
        let module = LinkModule::kept(id, label, archive, object.key.clone(), object.clone());
        return Ok((module, None));
    }
    let key = known.map_or_else(String::new, |object| object.key.clone());
    let (parts, contents) = content.map(|content| (content.parts, content.imports)).unzip();
    let (file, imports) = (Some(file), labels);
    let mut provenance = Provenance { parts, ..Provenance::default() };
    provenance.set_cost(cost);
    let module = LinkModule { label, archive, key, file, imports, provenance, ..LinkModule::default() };
    let why = link.why(&module, &contents.unwrap_or_default());
    Ok((module, Some(why)))
}

/// The actions of the backends that would run, and the numbers of their modules.
fn graph(link: &Link<'_>, modules: &[Looked]) -> (ActionGraph, Vec<usize>) {
    let mut graph = ActionGraph::new();
    let prefix = graph.prefix(link.settings.shared_words().to_vec());
    let wanted = (0..modules.len()).filter(|&number| modules[number].1.is_some()).collect::<Vec<_>>();
    for &number in &wanted {
        let (module, _) = &modules[number];
        let names = ModulePlaces::of(link.state(), &module.label);
        let file = module.file.as_deref().unwrap_or_default();
        let args = BackendFiles { module: file, shard: &names.shard, object: &names.object, dwo: None };
        let args = args.args(&triple(&link.here(file)));
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
        let (label, cost) = (module.label.clone(), module.provenance.cost().total());
        graph.add(Action { work, label, prefix: Some(prefix), args, cost });
    }
    (graph, wanted)
}
