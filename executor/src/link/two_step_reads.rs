//! What a link in two steps reads and writes, from its plan.
//!
//! Knows nothing of how that is recorded.

use std::path::{Path, PathBuf};

use distlto_planner::front::LinkCommand;
use distlto_planner::index::PlannedLink;

use super::reads::{Outputs, Reads};

/// What the links of a plan read, and what they write.
pub fn of_plan(directory: &str, planned: &PlannedLink, link: &LinkCommand) -> (Reads, Outputs) {
    let plan = &planned.plan;
    let mut reads = Reads::new(directory);
    let archives = plan.archives.iter().map(|archive| archive.path.as_std_path());
    let extra =
        plan.modules.iter().flat_map(|module| module.extra_inputs.iter().map(|path| path.as_std_path()));
    let named = plan.thin_link.inputs.iter().chain(&plan.link.inputs).map(|path| path.as_std_path());
    reads.files(named.chain(archives).chain(extra).map(Path::to_owned));
    reads.program(&link.linker[0]);
    reads.program(&plan.backend[0].clone().into_bytes());
    planned.absent.iter().for_each(|path| reads.absent(path));
    if !link.compilations.is_empty() {
        reads.doubt("the command also compiles, and what a source includes is not known");
    }
    (reads, Outputs::new(PathBuf::from(plan.output.as_str())))
}
