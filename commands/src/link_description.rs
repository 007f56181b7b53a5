//! A link after the fact: found by its output, its state directory, a record of a run, or a graph.
//!
//! Reads files that distlto has written. Runs nothing, except the thin link of a command (`link_description/command.rs`).

pub mod command;
mod error;
mod files;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::digests::Digest;
use distlto_planner::graph::{Action, ActionGraph, ActionKind, BackendWork, json};
use distlto_planner::state::SUFFIX;
use distlto_prepare::input::Input;
use distlto_prepare::regular;
use distlto_record::action::ActionRecord;
use distlto_record::diff::Side;
use distlto_record::inspect::KnownModule;
use distlto_record::run::{self, GraphFile, RunRecord};

use miette::Report;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::configuration::options;
use crate::link::lock::{Activity, activity};
use crate::link::unchanged::changed_outputs;
use crate::plan::{GraphSource, PlanCommandError};
use crate::stats;
use crate::store;
pub use error::LinkDescriptionError;
use files::Listing;

/// A link, as far as the named thing describes it.
pub struct LinkDescription {
    /// The thing that the user named.
    pub named: Utf8PathBuf,
    /// The state directory, or that of the graph.
    pub directory: Option<Utf8PathBuf>,
    /// The program.
    pub output: String,
    /// Its modules.
    pub modules: Vec<KnownModule>,
    /// Where their files are.
    listing: Listing,
    /// The link command, if the link's graph is known: in a record the linker's own, elsewhere the user's.
    pub command: Vec<String>,
    /// Whether it is the linker's own.
    pub is_record: bool,
    /// The records of its runs, the oldest first.
    pub runs: Vec<RunRecord>,
    /// Further notes, in sentences.
    pub notes: Vec<String>,
    /// Whether these are the modules of an unfinished link.
    pub is_partial: bool,
}

impl LinkDescription {
    /// Finds it; `folder` is the directory of `distlto link --state`.
    pub fn find(named: &Utf8Path, folder: Option<&str>) -> Result<Self, Report> {
        if named.is_file() {
            let bytes = Input::open(named.as_std_path())?;
            if bytes.trim_ascii_start().starts_with(b"{") {
                return if is_record(&bytes) { Self::of_record(named) } else { Self::of_graph_file(named) };
            }
        }
        let Some(directory) = places(named, folder).into_iter().find(|place| place.is_dir()) else {
            // Fails here for a file that is not regular.
            if named.exists() {
                Input::open(named.as_std_path())?;
            }
            let record = options::links(folder).map(|folder| store::record_of(named.as_str(), &folder));
            let record = record.unwrap_or_else(|| "a record of it".to_owned());
            return Err(LinkDescriptionError::Unknown { path: named.to_owned(), record }.into());
        };
        let source = GraphSource::latest(&directory);
        // Each may hold a hundred thousand modules.
        let (graph, runs) = rayon::join(
            || source.as_ref().map_or(Ok(None), |source| source.read().map(Some)),
            || read_runs(&directory),
        );
        let mut runs = runs?;
        if let Ok(Some(state)) = source.as_ref().map(GraphSource::run_state)
            && runs.is_empty()
        {
            runs = read_runs(Utf8Path::new(&state))?;
        }
        match (source, runs.last()) {
            (Ok(_), last) => {
                let notes = record_notes(&directory, last);
                let known = graph?.map(|graph| Self::of_graph(named, &graph));
                let known = known.unwrap_or_else(|| Self::without_runs(named));
                Ok(Self { directory: Some(directory), runs, notes, ..known })
            }
            // A distributor's runs, and those of a graph, are beside no graph.
            (Err(PlanCommandError::NotAnIndex { .. }), Some(last)) => {
                let unfinished = unfinished(&directory, Some(last));
                Ok(Self {
                    output: last.output.clone().unwrap_or_else(|| named.to_string()),
                    directory: Some(directory),
                    modules: of_run(last),
                    runs,
                    is_partial: unfinished.is_some(),
                    notes: unfinished.into_iter().collect(),
                    ..Self::without_runs(named)
                })
            }
            (Err(error @ PlanCommandError::NotAnIndex { .. }), None) => match unfinished(&directory, None) {
                None => Err(error.into()),
                Some(note) => Ok(Self { is_partial: true, notes: vec![note], ..Self::without_runs(named) }),
            },
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Returns a link without any information.
    fn without_runs(named: &Utf8Path) -> Self {
        Self {
            named: named.to_owned(),
            directory: None,
            output: named.to_string(),
            modules: Vec::new(),
            listing: Listing::default(),
            command: Vec::new(),
            is_record: false,
            runs: Vec::new(),
            notes: Vec::new(),
            is_partial: false,
        }
    }

    fn of_graph_file(named: &Utf8Path) -> Result<Self, Report> {
        let source = GraphSource::find(named, None)?;
        let state = source.run_state();
        let runs = state.map_or(Ok(Vec::new()), |state| read_runs(Utf8Path::new(&state)))?;
        Ok(Self { runs, ..Self::of_graph(named, &source.read()?) })
    }

    fn of_graph(named: &Utf8Path, graph: &ActionGraph) -> Self {
        let link = graph.actions().find(|(_, action)| action.kind() == ActionKind::Link);
        let output = link.map_or_else(|| named.to_string(), |(_, action)| action.label.clone());
        let words = link.map(|(id, _)| graph.command(id)).unwrap_or_default();
        let command = words.iter().skip_while(|word| **word != "--").skip(1);
        Self {
            output,
            modules: of_graph(graph),
            listing: Listing::of(graph),
            command: command.map(|&word| word.to_owned()).collect(),
            is_record: graph.is_record(),
            ..Self::without_runs(named)
        }
    }

    fn of_record(named: &Utf8Path) -> Result<Self, Report> {
        let run = run::read(named.as_std_path())?;
        let graph = run.graph.as_ref().and_then(|graph| graph_of(&run, graph));
        let known = match graph {
            Some(graph) => Self::of_graph(named, &graph),
            None => Self { modules: of_run(&run), ..Self::without_runs(named) },
        };
        Ok(Self {
            directory: run.state.as_ref().map(|state| Utf8PathBuf::from(&run.directory).join(state)),
            output: run.output.clone().unwrap_or_else(|| named.to_string()),
            runs: vec![run],
            ..known
        })
    }

    /// The number of a module by its name, or by the end of it.
    pub fn module(&self, name: &str) -> Result<usize, LinkDescriptionError> {
        let labels = || self.modules.iter().map(|module| module.label.as_str()).enumerate();
        if let Some((number, _)) = labels().find(|(_, label)| *label == name) {
            return Ok(number);
        }
        let ends = |label: &str| {
            let rest = label.strip_suffix(name).or_else(|| label.strip_suffix(')')?.strip_suffix(name));
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '(']))
        };
        let found: Vec<(usize, &str)> = labels().filter(|(_, label)| ends(label)).collect();
        if let [(number, _)] = found.as_slice() {
            return Ok(*number);
        }
        const SHOWN: usize = 5;
        let similar: Vec<String> = match found.is_empty() {
            true => labels()
                .filter(|(_, label)| label.contains(name))
                .map(|(_, label)| label.to_owned())
                .collect(),
            false => found.into_iter().map(|(_, label)| label.to_owned()).collect(),
        };
        let similar = similar.into_iter().take(SHOWN).collect();
        Err(LinkDescriptionError::NoModule { path: self.named.clone(), name: name.to_owned(), similar })
    }

    /// Where a file of the link is: paths of a plan are relative to where the link ran.
    pub fn place(&self, path: &Utf8Path) -> Utf8PathBuf {
        let there = self.root().join(path);
        if !path.exists() && there.exists() { there } else { path.to_owned() }
    }

    /// Where the link ran: by its record, or else here.
    pub fn root(&self) -> &Utf8Path {
        let last = self.runs.last();
        last.map_or(".", |run| run.linker_directory.as_ref().unwrap_or(&run.directory)).into()
    }

    /// For comparing: with the newest run, or with none.
    pub fn side(mut self) -> Side {
        let run = self.runs.pop();
        let label = |&number: &u32| self.modules[number as usize].label.clone();
        let imports = |module: &KnownModule| {
            let imports = module.imports.as_ref().map(|imports| imports.iter().map(label).collect());
            (module.label.clone(), imports)
        };
        Side { modules: self.modules.iter().map(imports).collect(), run }
    }
}

/// Whether a JSON text is the record of a run, and no graph.
fn is_record(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Top {
        #[serde(rename = "begun_ms")]
        _begun_ms: IgnoredAny,
    }
    serde_json::from_slice::<Top>(bytes).is_ok()
}

/// Returns the notes about a record itself: a link of it runs or was killed, or its outputs have changed since.
fn record_notes(directory: &Utf8Path, last: Option<&RunRecord>) -> Vec<String> {
    let mut notes = Vec::new();
    match activity(directory.as_std_path()) {
        Activity::Running(process) => {
            notes.push(format!("a link of it runs, by process {process}: this is about the link before"));
        }
        Activity::Killed => notes.push("its last link was killed: this is about the link before".to_owned()),
        Activity::None => {}
    }
    if last.is_some_and(|run| run.exit_code.is_some_and(|code| code != 0)) {
        notes.push("its last link has failed: the modules are those of the link before".to_owned());
    }
    notes.extend(last.and_then(RunRecord::default_names_note));
    let root = last.map_or(Path::new(""), |run| Path::new(&run.directory));
    for output in changed_outputs(directory.as_str(), root) {
        let what = if output.exists() { "is another file by now" } else { "is gone" };
        notes.push(format!("{} {what}: this is about the one that distlto linked", output.display()));
    }
    notes
}

/// Returns a note on a link that no run has finished yet.
fn unfinished(directory: &Utf8Path, last: Option<&RunRecord>) -> Option<String> {
    let modules = "the modules are those that its linker asked for until then";
    match activity(directory.as_std_path()) {
        Activity::Running(process) => Some(format!("its first link runs, by process {process}: {modules}")),
        Activity::Killed => Some(format!("its link was killed: {modules}")),
        Activity::None => {
            let failed = last.is_some_and(|run| run.exit_code != Some(0));
            failed.then(|| format!("no link of it has ended well: {modules}"))
        }
    }
}

/// Returns the possible places of a link with this name: that directory, or the record of a link and the folder of an
/// index, the newer one first.
fn places(named: &Utf8Path, folder: Option<&str>) -> Vec<Utf8PathBuf> {
    if named.is_dir() {
        return vec![named.to_owned()];
    }
    let output = named.as_str().trim_end_matches('/');
    // A program may be named by a symbolic link, as libraries are, or by a hard link.
    let real = named.canonicalize_utf8().ok();
    let same = stats::linked_as(named.as_std_path()).and_then(|same| Utf8PathBuf::from_path_buf(same).ok());
    let names =
        [Some(output), real.as_ref().map(|real| real.as_str()), same.as_ref().map(|same| same.as_str())];
    let links = options::links(folder);
    let record = |name: &str| Some(Utf8PathBuf::from(store::record_of(name, links.as_ref()?)));
    let index = Utf8PathBuf::from(format!("{output}{SUFFIX}"));
    let mut places: Vec<_> = names.into_iter().flatten().filter_map(record).chain([index]).collect();
    let written = |place: &Utf8PathBuf| {
        let source = GraphSource::find(place, None).ok()?;
        fs::metadata(source.path()).and_then(|found| found.modified()).ok()
    };
    places.sort_by_cached_key(|place| Reverse(written(place)));
    places
}

/// The records of a state directory, or of a graph's runs.
fn read_runs(directory: &Utf8Path) -> Result<Vec<RunRecord>, Report> {
    let files = run::list(directory.as_std_path())?;
    Ok(files.par_iter().map(|file| run::read(file)).collect::<Result<_, _>>()?)
}

/// The graph that a run had, if it has not been written anew since.
fn graph_of(run: &RunRecord, graph: &GraphFile) -> Option<ActionGraph> {
    let bytes = regular::read(&Path::new(&run.directory).join(&graph.file)).ok()?;
    (Digest::of(&bytes).to_string() == graph.digest).then(|| json::read(&bytes).ok())?
}

fn of_graph(graph: &ActionGraph) -> Vec<KnownModule> {
    let backends = || graph.actions().filter_map(|(_, action)| Some((action, action.backend()?)));
    let numbers: HashMap<_, u32> =
        backends().zip(0..).map(|((_, backend), number)| (backend.module, number)).collect();
    let module = |(action, backend): (&Action, &BackendWork)| KnownModule {
        label: action.label.clone(),
        own_instructions: action.cost.saturating_sub(backend.decided.imported),
        imported_instructions: backend.decided.imported,
        imports: Some(backend.imports.iter().filter_map(|file| numbers.get(file).copied()).collect()),
    };
    backends().map(module).collect()
}

fn of_run(run: &RunRecord) -> Vec<KnownModule> {
    let opt = |action: &&ActionRecord| action.kind == ActionKind::Opt;
    let module = |action: &ActionRecord| KnownModule {
        label: action.label.clone(),
        own_instructions: action.instructions.map_or(action.cost, |both| both.own),
        imported_instructions: action.instructions.map_or(0, |both| both.imported),
        imports: None,
    };
    run.actions.iter().filter(opt).map(module).collect()
}
