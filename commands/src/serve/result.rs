//! What a served link leaves in its state directory: its plan, the record of its objects, and what was read, by which the next
//! link sees that there is nothing to do.
//!
//! The plan says what the link did in the words of every other plan. Nothing here decides what runs.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::link_plan::{LinkPlan, ObjectPlan, PlanStep, VERSION};
use distlto_planner::state::Place;
use distlto_planner::words::lossy;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;
use distlto_record::progress::Progress;

use super::kept::{self, KeptObject};
use super::module::LinkModule;
use super::settings::CompileSettings;
use crate::link::file_state::Start;
use crate::link::reads::{Outputs, Reads};
use crate::link::{LinkError, Session, unchanged};
use crate::up_to_date::Records;

/// A link whose program is there.
pub struct Finished<'a> {
    pub session: &'a Session<'a>,
    pub compilation: &'a CompileSettings,
    pub records: &'a Records,
    pub modules: &'a [LinkModule],
    /// What the linker has read, where that was observed.
    pub inputs: BTreeSet<Utf8PathBuf>,
}

impl Finished<'_> {
    /// Keeps what the next link needs; returns the link's graph.
    pub fn keep(&self, observed: Option<(Reads, Outputs, Start)>) -> Result<ActionGraph, LinkError> {
        let session = self.session;
        let objects: Vec<KeptObject> =
            self.modules.iter().filter_map(|module| module.object.clone()).collect();
        kept::settle(session.directory, &objects)?;
        let plan = self.plan();
        let graph = plan.to_graph()?;
        keep::plan(session.directory, &plan)?;
        // For whoever asks what would run. What is kept has its record. A driver has removed what it compiled for the link itself.
        let found: HashSet<&str> = self
            .modules
            .iter()
            .filter(|module| module.file.is_none())
            .map(|module| module.label.as_str())
            .collect();
        let is_there = |file| graph.path(file).is_file();
        let steps = graph.actions().filter(|(_, action)| {
            !found.contains(action.label.as_str()) && action.inputs().chain(action.outputs()).all(is_there)
        });
        let steps: Vec<ActionId> = steps.map(|(id, _)| id).collect();
        self.records.record(&graph, &steps)?;
        sweep_objects(session.directory, &objects)?;
        if let Some((reads, outputs, start)) = observed {
            let digests = self.records.digests();
            let doubt = unchanged::record(session.directory, session.key, &reads, &outputs, &start, digests)?;
            if let Some(doubt) = doubt {
                session.reporter.noted(&format!("the next link is made whatever has changed: {doubt}"));
            }
        }
        self.records.save()?;
        session.summarise(&plan, self.modules.iter().filter(|module| module.ran).count());
        Ok(graph)
    }

    fn plan(&self) -> LinkPlan {
        let link = self.session.link;
        let output: Utf8PathBuf = link.line.output().into();
        let modules: Vec<ObjectPlan> = self.modules.iter().map(|module| self.object_plan(module)).collect();
        let linker = link.linker.iter().chain(link.line.words());
        let command: Vec<String> = ["distlto", "link", "--"]
            .map(str::to_owned)
            .into_iter()
            .chain(linker.map(|word| lossy(word)))
            .collect();
        let objects: BTreeSet<Utf8PathBuf> = modules.iter().map(|module| module.object.clone()).collect();
        let inputs: Vec<Utf8PathBuf> = self.inputs.iter().cloned().collect();
        LinkPlan {
            version: VERSION,
            by_linker: true,
            archives: Vec::new(),
            thin_link: PlanStep { command: command.clone(), inputs: inputs.clone(), outputs: Vec::new() },
            backend: self.compilation.shared_words().to_vec(),
            modules,
            link: PlanStep {
                command,
                inputs: objects.into_iter().chain(inputs).collect::<BTreeSet<_>>().into_iter().collect(),
                outputs: vec![output.clone()],
            },
            output,
        }
    }

    fn object_plan(&self, module: &LinkModule) -> ObjectPlan {
        let (directory, flags) = (self.session.directory, &self.compilation.flags);
        let label = &module.label;
        let places = ModulePlaces::of(directory, label);
        let dwo = flags.dwo(label);
        let names = BackendFiles {
            module: label,
            shard: &places.shard,
            object: &places.object,
            dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut extra_inputs = flags.inputs.clone();
        extra_inputs.push(keep::toolchain_place(directory).into());
        extra_inputs.sort();
        ObjectPlan {
            id: label.clone().into(),
            archive: module.archive.as_ref().map(|(archive, _)| archive.into()),
            args: names.args(""),
            shard: places.shard.clone().into(),
            imports: module.imports.iter().map(Utf8PathBuf::from).collect(),
            extra_inputs,
            object: places.object.clone().into(),
            extra_outputs: dwo.into_iter().collect(),
            own_instructions: module.cost.own_instructions,
            imported_instructions: module.cost.imported_instructions,
        }
    }
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
