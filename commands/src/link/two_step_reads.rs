//! What a link in two steps reads and writes, told while it goes on.
//!
//! Knows nothing of how that is recorded.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use distlto_planner::dependency_file::DependencyFile;
use distlto_planner::first_words;
use distlto_planner::link_command::LinkCommand;
use distlto_planner::link_line::Argument;
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::linker::options::written;
use distlto_planner::state::Place;
use distlto_planner::words::{Word, path_of};
use distlto_prepare::names::escape_path;
use distlto_prepare::regular;

use super::reads::{Outputs, Reads};

/// Where the final link's list of files is kept, in a state directory.
pub fn dependencies(directory: &str) -> PathBuf {
    Place::Dependencies.of(directory).into()
}

/// What a link reads as far as it is known before it begins.
pub fn before(directory: &str, link: &LinkCommand, arguments: &[Argument]) -> Reads {
    let mut reads = Reads::new(directory);
    reads.line(arguments);
    reads.driver(link);
    reads.program(&link.linker[0]);
    reads
}

/// Adds what planning and the final link have told, the final link of an earlier run if nothing was linked.
pub fn after(
    mut reads: Reads,
    directory: &str,
    plan: &LinkPlan,
    link: &LinkCommand,
    arguments: &[Argument],
) -> (Reads, Outputs) {
    reads.compiler(&plan.backend[0].clone().into_bytes(), &link.driver);
    // What the line does not name is searched.
    match regular::read(&dependencies(directory)) {
        Ok(text) => reads.dependency_file(&text, arguments),
        Err(_) => reads.doubt("the final link has written no list of what it read"),
    }
    reads.files(compared(plan).map(Path::to_owned));
    let mut outputs = Outputs::new(plan.output.as_str());
    written(arguments).into_iter().for_each(|path| outputs.file(path));
    (reads, outputs)
}

/// The files whose contents decide which steps of a plan run again.
pub fn compared(plan: &LinkPlan) -> impl Iterator<Item = &Path> {
    let archives = plan.archives.iter().map(|archive| &archive.path);
    let extra = plan.modules.iter().flat_map(|module| &module.extra_inputs);
    let named = plan.thin_link.inputs.iter().chain(&plan.link.inputs);
    named.chain(archives).chain(extra).map(|path| path.as_std_path())
}

/// The dependency file of a final link as that of a link in one step: modules in the places of their objects, archives in
/// those of their members, and what an excerpt or a copy was made of in its place.
pub fn as_one_link(read: DependencyFile, plan: &LinkPlan, directory: &str) -> DependencyFile {
    let word = |path: &Utf8Path| path.as_str().as_bytes().to_vec();
    let objects = plan.modules.iter().map(|module| (word(&module.object), word(&module.id)));
    let places: HashMap<Word, Word> = objects.collect();
    let members: HashMap<Word, Word> = plan
        .archives
        .iter()
        .flat_map(|archive| archive.members.iter().map(|member| (word(&member.path), word(&archive.path))))
        .collect();
    let made_of = |path: &Path| {
        let source =
            path.strip_prefix(first_words::directory(directory)).ok()?.parent()?.parent()?.to_str()?;
        plan.thin_link.inputs.iter().find(|input| escape_path(input.as_str().as_bytes()) == source)
    };
    let origin = |file: Word| {
        let file = places.get(&file).cloned().unwrap_or(file);
        let file = members.get(&file).cloned().unwrap_or(file);
        let path = path_of(&file);
        match path.starts_with(directory) {
            false => Some(file),
            // An alias of an input with an odd name. All else there is our own.
            true => made_of(&path)
                .map(|input| word(input))
                .or_else(|| fs::read_link(path).ok().map(|path| path.into_os_string().into_encoded_bytes())),
        }
    };
    let mut seen = HashSet::new();
    let files = read.files.into_iter().filter_map(origin).filter(|file| seen.insert(file.clone())).collect();
    DependencyFile { target: plan.output.as_str().as_bytes().to_vec(), files }
}
