//! What a link by the linker leaves in its state directory: its plan, shards and objects for the next link, and what was
//! read, by which the next link sees that there is nothing to do.
//!
//! The plan says what the link did in the words of every other plan, modules by the names that they have in every link.
//! Nothing here decides what runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::dependency_file::DependencyFile;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::link_plan::{LinkPlan, ObjectPlan, PlanStep, VERSION};
use distlto_planner::linker::options::written;
use distlto_planner::state::Place;
use distlto_planner::words::{lossy, path_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;
use rayon::prelude::*;

use super::Link;
use super::kept::{self, KeptObject};
use super::line::Line;
use super::modules::{LinkModule, Ran, labels};
use super::sweep;
use crate::link::file_state::Start;
use crate::link::reads::{Outputs, Reads};
use crate::link::{LinkError, line_cache, unchanged};
use crate::up_to_date::Records;

/// Keeps what the next link needs; all of it after a link that ended well, whose graph it returns.
pub fn leave(
    link: &Link<'_>,
    line: &Line,
    records: &Records,
    ran: &Ran,
    (before, start): (Reads, Start),
    code: u8,
) -> Result<Option<ActionGraph>, LinkError> {
    let session = link.session;
    settle_digests(records, ran);
    sweep::after(session)?;
    if code != 0 {
        records.save()?;
        return Ok(None);
    }
    let objects: Vec<KeptObject> = ran.modules.iter().filter_map(|module| module.object.clone()).collect();
    kept::settle(session.directory, &objects)?;
    let read = read_files(line)?;
    let plan = plan(link, line, ran, &read);
    let graph = plan.to_graph()?;
    keep::plan(session.directory, &plan)?;
    // For whoever asks what would run.
    let steps: Vec<ActionId> = graph.actions().map(|(id, _)| id).collect();
    records.record(&graph, &steps)?;
    sweep_objects(session.directory, &objects)?;
    line_cache::save(session.directory, session.key, session.link, Some(true))?;
    let (reads, outputs) = reads(before, link, line)?;
    unchanged::record(session.directory, session.key, &reads, &outputs, &start, records.digests())?;
    records.save()?;
    session.summarise(&plan, ran.modules.iter().filter(|module| module.ran).count());
    Ok(Some(graph))
}

/// What a module imports from, sorted.
fn imports(module: &LinkModule, labels: &HashMap<&str, &str>) -> Vec<String> {
    let label =
        |path: &String| labels.get(path.as_str()).map_or_else(|| path.clone(), |&label| label.to_owned());
    let found: BTreeSet<String> = module.imports.iter().map(label).collect();
    found.into_iter().collect()
}

/// Names with the linker's process number are of no use to the next link. The objects were linked into the linker's places,
/// which are gone.
fn settle_digests(records: &Records, ran: &Ran) {
    let made = ran.modules.iter().filter(|module| module.name.is_temporary);
    let modules = made.map(|module| Utf8Path::new(&module.path));
    let shards = ran.modules.iter().map(|module| module.shard.as_path());
    modules.chain(shards).for_each(|path| records.digests().forget(path));
    let objects = ran.modules.par_iter().with_min_len(64).filter_map(|module| module.object.as_ref());
    objects
        .filter_map(|object| Utf8Path::from_path(object.path()))
        .for_each(|path| records.digests().relinked(path));
}

/// Every file that the linker says it has read, sorted.
fn read_files(line: &Line) -> Result<BTreeSet<Utf8PathBuf>, IoError> {
    let listed = DependencyFile::parse(&line.read_dependencies()?);
    let files = listed.into_iter().flat_map(|listed| listed.files);
    // lld writes a slash for a backslash in a name.
    let there = files.map(|path| path_of(&path)).filter(|path| path.is_file());
    Ok(there.filter_map(|path| Utf8PathBuf::from_path_buf(path).ok()).collect())
}

/// What the link has read and written, for the question whether anything is to be done. `before` is what was known of
/// that before the linker had ended.
fn reads(before: Reads, link: &Link<'_>, line: &Line) -> Result<(Reads, Outputs), IoError> {
    let mut reads = before;
    reads.dependency_file(&line.read_dependencies()?, link.arguments);
    let mut outputs = Outputs::new(&line.output);
    written(link.arguments).into_iter().for_each(|path| outputs.file(path));
    Ok((reads, outputs))
}

/// What a link reads as far as it is known before it ends: what the line names, and the programs that it runs.
pub fn known_reads(link: &Link<'_>) -> Reads {
    let session = link.session;
    let mut reads = Reads::new(session.directory);
    reads.line(link.arguments);
    reads.files(link.compilation.flags.inputs.iter().map(|path| path.as_std_path().to_owned()));
    reads.driver(session.link);
    reads.program(&session.link.linker[0]);
    reads.compiler(&link.compilation.compiler.clone().into_bytes(), &session.link.driver);
    reads
}

/// The plan of a link that is done.
fn plan(link: &Link<'_>, line: &Line, ran: &Ran, read: &BTreeSet<Utf8PathBuf>) -> LinkPlan {
    let session = link.session;
    let labels = labels(&ran.modules);
    let archives = archives(read);
    let output: Utf8PathBuf = line.output.to_string_lossy().into_owned().into();
    let modules: Vec<ObjectPlan> =
        ran.modules.iter().map(|module| object_plan(link, module, &labels, &archives)).collect();
    let linker = session.link.linker.iter().chain(link.words);
    let command: Vec<String> = ["distlto", "link", "--"]
        .map(str::to_owned)
        .into_iter()
        .chain(linker.map(|word| lossy(word)))
        .collect();
    let objects: BTreeSet<Utf8PathBuf> = modules.iter().map(|module| module.object.clone()).collect();
    let inputs: Vec<Utf8PathBuf> = read.iter().cloned().collect();
    LinkPlan {
        version: VERSION,
        by_linker: true,
        archives: Vec::new(),
        thin_link: PlanStep { command: command.clone(), inputs: inputs.clone(), outputs: Vec::new() },
        backend: link.compilation.flags.shared_words(&link.compilation.compiler),
        modules,
        link: PlanStep {
            command,
            inputs: objects.into_iter().chain(inputs).collect::<BTreeSet<_>>().into_iter().collect(),
            outputs: vec![output.clone()],
        },
        output,
    }
}

fn object_plan(
    link: &Link<'_>,
    module: &LinkModule,
    labels: &HashMap<&str, &str>,
    archives: &BTreeMap<String, Utf8PathBuf>,
) -> ObjectPlan {
    let (directory, flags) = (link.session.directory, &link.compilation.flags);
    let label = &module.name.label;
    let places = ModulePlaces::of(directory, label);
    let object =
        module.object.as_ref().map_or(places.object, |object| object.path().to_string_lossy().into_owned());
    let dwo = flags.dwo(label);
    let names = BackendFiles {
        module: label,
        shard: &places.shard,
        object: &object,
        dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
    };
    let mut extra_inputs = flags.inputs.clone();
    extra_inputs.push(keep::toolchain_place(directory).into());
    extra_inputs.sort();
    let archive = module.name.archive.as_ref();
    ObjectPlan {
        id: label.clone().into(),
        archive: archive.map(|name| archives.get(name).cloned().unwrap_or_else(|| name.into())),
        args: names.args(""),
        shard: places.shard.clone().into(),
        imports: imports(module, labels).into_iter().map(Utf8PathBuf::from).collect(),
        extra_inputs,
        object: object.clone().into(),
        extra_outputs: dwo.into_iter().collect(),
        own_instructions: module.cost.own_instructions,
        imported_instructions: module.cost.imported_instructions,
    }
}

/// Files by their names; of several with one name, the first.
fn archives(read: &BTreeSet<Utf8PathBuf>) -> BTreeMap<String, Utf8PathBuf> {
    let named = |path: &Utf8PathBuf| Some((path.file_name()?.to_owned(), path.clone()));
    read.iter().rev().filter_map(named).collect()
}

/// Removes what no module of this link has left in the directory of objects.
fn sweep_objects(directory: &str, objects: &[KeptObject]) -> Result<(), IoError> {
    let kept: HashSet<PathBuf> = objects.iter().map(|object| object.path().to_owned()).collect();
    sweep_below(&Place::Objects.path(directory), &kept)
}

fn sweep_below(directory: &Path, kept: &HashSet<PathBuf>) -> Result<(), IoError> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(IoError::on("read", directory))?;
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            sweep_below(&path, kept)?;
        } else if !kept.contains(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}
