//! The backends of a link that was recorded, from its records, its plan, and the sizes of its files.
//!
//! A backend takes what the newest run took that compiled it; one that no run did is estimated from the others by its
//! cost. Files are measured where the link left them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{self, ActionGraph, ActionKind, FileId};
use distlto_planner::state::Place;
use distlto_record::action::{ActionRecord, Fate};
use distlto_record::report::Origin;
use distlto_record::run::{self, FOLDER, RunRecord};

use super::SimulateError;
use super::program::{SimulatedBackend, SimulatedLink};
use crate::plan::GraphSource;
use crate::store;

/// Bytes of bitcode for an instruction, for a module that lies in an archive: as the executor's estimates have it.
const BYTES_PER_INSTRUCTION: u64 = 12;

/// A link, and where it ran.
pub(super) struct RecordedLink {
    pub(super) program: SimulatedLink,
    /// Jobs at a time.
    pub(super) jobs: usize,
    /// What is not known, in sentences.
    pub(super) left_out: Vec<String>,
}

/// Reads the runs of an output or of the folder of its record, or one record of a run.
///
/// By the clock, what a backend took has in it what else the machine did, and a worker's delay.
pub(super) fn read(place: &Utf8Path, by_clock: bool) -> Result<RecordedLink, SimulateError> {
    let nothing = || SimulateError::NothingTimed { path: place.to_owned() };
    let record =
        store::links_of(None).map(|folder| Utf8PathBuf::from(store::record_of(place.as_str(), &folder)));
    let place = record.as_deref().filter(|record| !place.is_dir() && record.is_dir()).unwrap_or(place);
    let files =
        if place.is_dir() { run::list(place.as_std_path())? } else { vec![place.as_std_path().to_owned()] };
    let records = files.iter().map(|file| run::read(file)).collect::<Result<Vec<_>, _>>()?;
    let mut timed = HashMap::new();
    for action in records.iter().flat_map(|record| record.backends()).filter(|action| is_timed(action)) {
        timed.insert(action.label.as_str(), action);
    }
    let full =
        records.iter().rev().max_by_key(|record| record.backends().filter(|one| is_timed(one)).count());
    let full = full.filter(|_| !timed.is_empty()).ok_or_else(nothing)?;
    let graph = graph_of(place, &files, full)?;
    let took = if by_clock { |action: &ActionRecord| action.took.wall_us } else { processor_time };
    Ok(recorded(&graph, full, &timed, took))
}

/// Whether it tells how long its command takes.
fn is_timed(action: &ActionRecord) -> bool {
    action.result == Fate::Done && action.took.origin == Origin::Ran && action.took.wall_us > 0
}

fn processor_time(action: &ActionRecord) -> u64 {
    // Other processes of a busy machine do not count.
    action.took.cpu_us.unwrap_or(action.took.wall_us)
}

fn graph_of(place: &Utf8Path, files: &[PathBuf], record: &RunRecord) -> Result<ActionGraph, SimulateError> {
    // A state directory may have been moved since.
    let state = match files.first().and_then(|file| file.parent()?.parent()) {
        Some(state) if files.iter().all(|file| file.parent().is_some_and(|runs| runs.ends_with(FOLDER))) => {
            Utf8Path::from_path(state)
        }
        _ => None,
    };
    let has =
        |state: &&Utf8Path| [Place::Graph, Place::LinkGraph].iter().any(|place| place.path(state).exists());
    let kept = state.filter(has).map(Utf8Path::to_owned);
    let named = record.graph.as_ref().map(|graph| Utf8PathBuf::from(&record.directory).join(&graph.file));
    let found = kept.or(named).unwrap_or_else(|| place.to_owned());
    Ok(GraphSource::find(&found, None)?.read()?)
}

/// The rest is a function of what was read, but for the sizes of files.
fn recorded(
    graph: &ActionGraph,
    record: &RunRecord,
    timed: &HashMap<&str, &ActionRecord>,
    took: fn(&ActionRecord) -> u64,
) -> RecordedLink {
    let directory = Path::new(&record.directory);
    let opt = || graph.actions().map(|(_, action)| action).filter(|action| action.kind() == ActionKind::Opt);
    let known = || opt().filter_map(|action| Some((action, *timed.get(action.label.as_str())?)));
    let (time, cost) =
        known().fold((0, 0), |(time, cost), (action, timed)| (time + took(timed), cost + action.cost));
    let objects: HashMap<&str, u64> =
        known().map(|(action, timed)| (action.label.as_str(), output(timed))).collect();
    let mut sizes =
        Sizes { graph, directory, blobs: Vec::new(), numbers: HashMap::new(), missing: HashSet::new() };
    let mut estimated = 0;
    let mut backends = Vec::new();
    for action in opt() {
        let Some(files) = action.backend() else { continue };
        let instructions = timed.get(action.label.as_str()).and_then(|timed| Some(timed.instructions?.own));
        let inputs = sizes.modules(files, &action.label, instructions.unwrap_or(action.cost));
        let took = timed.get(action.label.as_str()).map_or_else(
            || {
                estimated += 1;
                (action.cost as f64 * time as f64 / cost.max(1) as f64) as u64
            },
            |timed| took(timed),
        );
        let shard = sizes.size(files.shard);
        let object = objects.get(action.label.as_str()).copied().unwrap_or(0);
        backends.push(SimulatedBackend::new(took, inputs, shard, object));
    }
    let mut left_out = Vec::new();
    if estimated > 0 {
        left_out
            .push(format!("{estimated} backends that no recorded run compiled are estimated by their cost."));
    }
    if !sizes.missing.is_empty() {
        left_out.push(format!("{} files that are gone count as empty.", sizes.missing.len()));
    }
    let phases = record.phases.iter().filter_map(|phase| Some(phase.end_us?.saturating_sub(phase.start_us)));
    let name =
        record.output.as_deref().and_then(|output| Utf8Path::new(output).file_name()).unwrap_or("the link");
    RecordedLink {
        jobs: record.jobs.unwrap_or(1),
        program: SimulatedLink { name: name.to_owned(), backends, blobs: sizes.blobs, rest: phases.sum() },
        left_out,
    }
}

/// Bytes that a backend wrote.
fn output(timed: &ActionRecord) -> u64 {
    let size = |digest: &String| digest.rsplit_once('/')?.1.parse::<u64>().ok();
    timed.outputs.iter().filter_map(|output| output.after.as_ref().and_then(size)).sum()
}

/// Modules as blobs, each with a number.
struct Sizes<'a> {
    graph: &'a ActionGraph,
    directory: &'a Path,
    blobs: Vec<u64>,
    numbers: HashMap<String, usize>,
    missing: HashSet<FileId>,
}

impl Sizes<'_> {
    fn size(&mut self, file: FileId) -> u64 {
        let found = fs::metadata(self.directory.join(self.graph.path(file)));
        if found.is_err() {
            self.missing.insert(file);
        }
        found.map_or(0, |found| found.len())
    }

    /// What a backend reads: its own module of so many instructions, and those that it imports from, each once.
    fn modules(&mut self, files: &graph::BackendWork, label: &str, instructions: u64) -> Vec<usize> {
        // The file is the archive's where the module has none of its own.
        let mut inputs = vec![match self.graph.path(files.module).as_str() == label {
            true => self.blob(files.module),
            false => self.member(label, instructions * BYTES_PER_INSTRUCTION),
        }];
        for &import in &files.imports {
            let number = self.blob(import);
            if !inputs.contains(&number) {
                inputs.push(number);
            }
        }
        inputs
    }

    /// A module that has a file.
    fn blob(&mut self, file: FileId) -> usize {
        let name = self.graph.path(file).to_string();
        match self.numbers.get(&name) {
            Some(&number) => number,
            None => {
                let size = self.size(file);
                self.member(&name, size)
            }
        }
    }

    /// A module of this size.
    fn member(&mut self, name: &str, size: u64) -> usize {
        let next = self.blobs.len();
        let number = *self.numbers.entry(name.to_owned()).or_insert(next);
        if number == next {
            self.blobs.push(size);
        }
        number
    }
}
