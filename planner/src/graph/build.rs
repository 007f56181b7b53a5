//! From a link plan to its action graph.
//!
//! One prepare action for each unpacked archive, the thin link, one opt action for each module, the final
//! link. Pure: knows nothing of files on disk.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::GraphError;
use super::{Action, ActionGraph, BackendWork, FileId, Work, is_dwo};
use crate::link_plan::{ArchivePlan, LinkPlan, ObjectPlan, PlanError, PlanStep};
use crate::state::Place;

impl LinkPlan {
    /// The plan's action graph, checked, in canonical order.
    pub fn to_graph(&self) -> Result<ActionGraph, PlanError> {
        self.check()?;
        let mut graph = ActionGraph::new();
        let archives = self.archives.iter().filter_map(|archive| prepare(&mut graph, archive));
        let mut actions: Vec<Action> = archives.collect();
        actions.push(thin_link(&mut graph, self));
        let holders: HashMap<&Utf8Path, &Utf8Path> =
            self.modules.iter().map(|module| (module.id.as_path(), module.file())).collect();
        for module in &self.modules {
            actions.push(opt(&mut graph, &self.backend, module, &holders)?);
        }
        actions.push(link(&mut graph, self));
        let files = graph.files().map(Utf8Path::to_owned).collect();
        let prefixes = graph.prefixes().map(<[String]>::to_vec).collect();
        Ok(ActionGraph::from_parts(files, prefixes, actions)?)
    }
}

/// `None` for an archive of which nothing lies in its directory, so that there is nothing to wait for.
fn prepare(graph: &mut ActionGraph, archive: &ArchivePlan) -> Option<Action> {
    // Another front end may take a thin archive's members where they are; no action writes those.
    let unpacked = archive.members.iter().filter(|member| member.path.starts_with(&archive.directory));
    let members: Vec<_> = unpacked.map(|member| graph.file(&member.path)).collect();
    if members.is_empty() {
        return None;
    }
    let words =
        ["distlto-prepare", "--archive", archive.path.as_str(), "--objects-out", archive.directory.as_str()];
    let fat_lto = archive.fat_lto.then_some("--fat-lto");
    Some(Action {
        work: Work::Prepare { sources: files(graph, &archive.inputs), members },
        label: archive.path.to_string(),
        prefix: None,
        args: words.into_iter().chain(fat_lto).map(str::to_owned).collect(),
        cost: 0,
    })
}

fn thin_link(graph: &mut ActionGraph, plan: &LinkPlan) -> Action {
    let mut outputs: Vec<Utf8PathBuf> = plan.thin_link.outputs.clone();
    for module in &plan.modules {
        outputs.push(module.shard.clone());
        // One process that does it all writes no lists.
        if !plan.by_linker {
            outputs.push(module.imports_file());
        }
    }
    outputs.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    let is_plan = |path: &&Utf8PathBuf| Place::LinkPlan.is_name_of(path);
    let work = Work::ThinLink {
        reads: files(graph, &plan.thin_link.inputs),
        writes: files(graph, &outputs),
        plan: plan.thin_link.outputs.iter().find(is_plan).map(|path| graph.file(path)),
    };
    step(work, plan, &plan.thin_link)
}

fn link(graph: &mut ActionGraph, plan: &LinkPlan) -> Action {
    let work = Work::Link {
        reads: files(graph, &plan.link.inputs),
        writes: files(graph, &plan.link.outputs),
        program: graph.file(&plan.output),
    };
    step(work, plan, &plan.link)
}

/// `holders` says in which file each module is.
fn opt(
    graph: &mut ActionGraph,
    backend: &[String],
    module: &ObjectPlan,
    holders: &HashMap<&Utf8Path, &Utf8Path>,
) -> Result<Action, GraphError> {
    let holder = |id: &Utf8Path| holders.get(id).map_or_else(|| id.to_owned(), |&file| file.to_owned());
    let mut imports: Vec<Utf8PathBuf> = module.imports.iter().map(|id| holder(id)).collect();
    imports.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    let elsewhere = |id: &Utf8PathBuf| holders.get(id.as_path()).is_some_and(|&file| file != id.as_path());
    if module.archive.is_some() || module.imports.iter().any(elsewhere) {
        // Members of one archive are in one file.
        imports.dedup();
        imports.retain(|file| file != module.file());
    }
    let dwo = module.extra_outputs.iter().find(|path| is_dwo(path));
    let also = module.extra_outputs.iter().filter(|&path| Some(path) != dwo);
    let work = Work::Backend(BackendWork {
        module: graph.file(module.file()),
        shard: graph.file(&module.shard),
        imports: files(graph, &imports),
        extra: files(graph, &module.extra_inputs),
        object: graph.file(&module.object),
        dwo: dwo.map(|dwo| graph.file(dwo)),
        also: also.map(|path| graph.file(path)).collect(),
    });
    Ok(Action {
        work,
        label: module.id.to_string(),
        prefix: Some(graph.prefix(backend.to_vec())),
        args: module.args.clone(),
        cost: module.own_instructions.saturating_add(module.imported_instructions),
    })
}

fn step(work: Work, plan: &LinkPlan, step: &PlanStep) -> Action {
    Action { work, label: plan.output.to_string(), prefix: None, args: step.command.clone(), cost: 0 }
}

fn files(graph: &mut ActionGraph, paths: &[Utf8PathBuf]) -> Vec<FileId> {
    paths.iter().map(|path| graph.file(path)).collect()
}
