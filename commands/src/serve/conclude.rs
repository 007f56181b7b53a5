//! The end of a link: saves its graph, its objects and its reads, or puts the earlier program back.
//!
//! The graph is a record of the link. Nothing here decides which backends run.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use camino::Utf8PathBuf;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::graph::build::{BackendParts, LinkParts};
use distlto_planner::graph::{ActionGraph, json};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::state::Place;
use distlto_planner::words::lossy;
use distlto_prepare::io_error::IoError;
use distlto_prepare::prune::space;
use distlto_prepare::warning::warn;
use distlto_prepare::write::{remove, write_if_changed};
use distlto_record::progress::text;
use distlto_record::progress::{Phase, Progress, ProgressEvent};
use distlto_record::usage::LinkUsage;

use super::command::CommandEnd;
use super::inputs::{self, FULL_LTO, NO_THIN_LTO};
use super::link::Link;
use super::link_reads::{self, ReadFiles};
use super::module::LinkModule;
use super::module_record::{self, RecordedObject};
use super::observed::Observed;
use super::progress::{LinkResult, Outcome};
use crate::link::error::LinkError;
use crate::link::file_state::Start;
use crate::link::unchanged;
use crate::unoptimised::are_unoptimised;

/// A link whose linker has ended.
pub struct FinishedLink<'b> {
    pub link: Link<'b>,
    pub result: LinkResult,
    pub start: Start,
}

impl FinishedLink<'_> {
    /// Saves the link's plan, objects and reads, or puts the earlier program back. `end` is how the command ended, for a
    /// command that is one link; a link of a build has succeeded if its output is another file. Returns the exit code.
    pub fn conclude(mut self, end: Option<&CommandEnd>) -> Result<u8, LinkError> {
        let Self { link, result, start } = &mut self;
        let code = match (&result.outcome, end) {
            (Outcome::Complete, Some(end)) => end.code,
            (Outcome::Complete, None) => u8::from(link.previous.is_none()),
            // The run has reported the failure, and its exit code says more than the linker's.
            (Outcome::Failed(code), _) => *code,
            (Outcome::Broken(_) | Outcome::Anew, _) => 1,
        };
        let observed = end.map_or(&[][..], |end| &end.seen.observed);
        if code == 0 && result.modules.is_empty() {
            return self.conclude_alone(end.is_some(), observed);
        }
        link.settle(code == 0, observed)?;
        record_found(link, &result.modules);
        let mut graph = None;
        if code == 0 {
            graph = keep(link, result, start, end)?;
            warn_of_size(link, &result.modules);
            // The linker has read them, and the store has them.
            let objects = Place::Objects.path(link.state());
            match fs::remove_dir_all(&objects) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(IoError::on("remove", objects)(error).into());
                }
                _ => {}
            }
        }
        if let Some(answered) = result.answered {
            let end = end.map_or_else(Instant::now, |end| end.at);
            let phase = Phase { name: "final link", start: answered, end: Some(end) };
            link.reporter.report(ProgressEvent::Phase(phase));
        }
        link.reporter.conclude(&link.output().to_string_lossy(), graph.as_ref(), None);
        let Self { link, result, .. } = self;
        let ended = match result.outcome {
            Outcome::Broken(error) => Err(error),
            _ => Ok(code),
        };
        link.keep_run(&ended);
        let files = result.modules.iter().filter_map(|module| module.file.as_deref());
        let unoptimised = code == 0
            && result.modules.iter().all(|module| module.imports.is_empty())
            && are_unoptimised(files);
        // A probe of a configure script, for example, fails before its linker asks.
        if code == 0 || !result.modules.is_empty() {
            link.build.count(LinkUsage { unoptimised, ..link.reporter.usage() });
        }
        ended
    }

    /// Concludes a link whose linker had nothing to ask.
    fn conclude_alone(self, is_single: bool, observed: &[Observed]) -> Result<u8, LinkError> {
        let mut link = self.link;
        let inputs = inputs::of_line(link.root(), link.command.line.arguments());
        let inputs: Vec<_> = inputs.into_iter().map(|(path, _)| path).collect();
        let has_bitcode = inputs::has_bitcode(inputs.iter().cloned());
        let is_native = !has_bitcode && inputs::has_native(inputs.iter().cloned());
        let why = if inputs::lacks_thin_lto(inputs) { FULL_LTO } else { NO_THIN_LTO };
        let passed = if has_bitcode { link.build.pass_through(&link.output(), why) } else { Ok(()) };
        if is_native {
            link.build.count_native(&link.process.program);
        }
        if passed.is_err() {
            // The next build would take it for the link's, and not link again.
            remove(&link.output())?;
        }
        link.settle(passed.is_ok(), observed)?;
        if is_single {
            link.note(&format!("{why}: the linker links by itself"));
        }
        link.into_state().discard()?;
        passed.map(|()| 0)
    }
}

/// Records the modules that needed no action, since their objects were found.
fn record_found(link: &Link<'_>, modules: &[LinkModule]) {
    let first = modules.iter().filter(|module| module.file.is_some()).count();
    let found = modules.iter().filter(|module| module.file.is_none()).enumerate();
    link.reporter
        .record_more_actions(found.map(|(at, module)| link.kept_record(first + at, module)).collect());
}

/// Keeps what the next link needs; returns the link's graph.
fn keep(
    link: &Link<'_>,
    result: &mut LinkResult,
    start: &Start,
    end: Option<&CommandEnd>,
) -> Result<Option<ActionGraph>, LinkError> {
    let modules = &mut result.modules;
    let objects = link.objects();
    for (object, bytes, measured) in &result.printed {
        objects.keep_bytes(object, bytes, *measured);
    }
    let observed = end.filter(|_| link.build.is_observed);
    let read = observed.map(|end| reads(link, modules, end));
    // As the linker has read them, which is their order on the line.
    let place = |path: &str| read.as_ref().map_or(0, |read| read.place(Path::new(path)));
    modules.sort_by_cached_key(|module| match &module.archive {
        Some((archive, offset)) => (place(archive), *offset, module.id.clone()),
        None => (place(&module.id), 0, module.id.clone()),
    });
    match keep_record(link, modules, read, start) {
        Ok(graph) => {
            link.record_graph();
            Ok(Some(graph))
        }
        // The program is there.
        Err(LinkError::Io(error)) => {
            warn(format_args!("nothing is kept of this link: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The files that the link has read and written.
fn reads(link: &Link<'_>, modules: &[LinkModule], end: &CommandEnd) -> ReadFiles {
    let mut read = link_reads::read(link, &end.seen.observed, &end.folders);
    let records = modules.iter().filter_map(|module| module.flags.file.as_ref());
    read.reads.observed(records.map(|file| std::path::absolute(file).unwrap_or_default()));
    let objects = modules.iter().filter_map(|module| module.object.as_ref());
    // Split debug information.
    let beside = objects.clone().flat_map(|object| object.files.iter().skip(1));
    beside.for_each(|(path, _)| read.outputs.file(link.here(path)));
    read.reads.objects(objects);
    read
}

/// Keeps the record for the next link; returns the link's graph.
fn keep_record(
    link: &Link<'_>,
    modules: &[LinkModule],
    read: Option<ReadFiles>,
    start: &Start,
) -> Result<ActionGraph, LinkError> {
    let objects: Vec<RecordedObject> = modules.iter().filter_map(|module| module.object.clone()).collect();
    module_record::keep(link.state(), &objects)?;
    let directory = link.directory.as_deref().unwrap_or(Path::new("."));
    let inputs = read.as_ref().map(|read| read.inputs(directory)).unwrap_or_default();
    let graph = parts(link, modules, inputs).to_graph()?.into_record();
    write_if_changed(&Place::LinkGraph.path(link.state()), &json::to_bytes(&graph))?;
    if let Some(ReadFiles { reads, outputs, .. }) = read {
        let key = &link.build.key;
        let doubt = unchanged::record(link.state(), key, &reads, &outputs, start, &link.digests)?;
        if let Some(doubt) = doubt {
            link.note(&format!("the next link is made whatever has changed: {doubt}"));
        }
    }
    let imports = modules.iter().map(|module| module.imports.len()).sum();
    let ran = modules.iter().filter(|module| module.ran).count();
    link.summarise(modules.len(), imports, ran);
    Ok(graph)
}

fn parts(link: &Link<'_>, modules: &[LinkModule], inputs: BTreeSet<Utf8PathBuf>) -> LinkParts {
    let line = link.command.linker.iter().chain(link.command.line.words()).map(|word| lossy(word));
    let command = ["distlto", "link", "--"].map(str::to_owned).into_iter().chain(line);
    LinkParts {
        output: link.command.line.output().into(),
        thin_link: None,
        written: Vec::new(),
        command: command.collect(),
        inputs: inputs.into_iter().collect(),
        backends: modules.iter().map(|module| backend(link, module)).collect(),
    }
}

/// Describes a backend. A member of an archive appears as a file of its own, named by its label.
fn backend(link: &Link<'_>, module: &LinkModule) -> BackendParts {
    let flags = &link.settings.flags;
    let label = &module.label;
    let places = ModulePlaces::of(link.state(), label);
    let dwo = flags.dwo(label);
    let names = BackendFiles {
        module: label,
        shard: &places.shard,
        object: &places.object,
        dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
    };
    let mut args = module.flags.args.clone();
    args.extend(names.args(""));
    let mut inputs = flags.inputs.clone();
    inputs.push(keep::toolchain_place(link.state()).into());
    BackendParts {
        label: label.clone(),
        shared: link.settings.shared_words().to_vec(),
        args,
        module: label.into(),
        shard: places.shard.into(),
        digest: None,
        imports: module.imports.iter().map(Utf8PathBuf::from).collect(),
        inputs,
        object: places.object.into(),
        outputs: dwo.into_iter().collect(),
        cost: module.provenance.cost(),
    }
}

/// Says that a store cannot hold the objects of one link, so that the next link compiles some of them again.
fn warn_of_size(link: &Link<'_>, modules: &[LinkModule]) {
    let Some(limit) = link.build.store().and_then(|store| store.size_limit()) else { return };
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
