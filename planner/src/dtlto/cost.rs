//! The cost of each job, read from its shard, so that the costliest can begin first.
//!
//! The one module of the front end that reads files besides the job file. A shard that cannot be read is no error
//! here: the job itself reports the error.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use super::JobFile;
use crate::graph::ActionId;
use crate::shard;

/// Bytes of bitcode for each IR instruction, own or imported, to compare a module's size with costs in instructions.
/// 11.7 for the 232 modules of libgit2 at -O3.
const BYTES_PER_INSTRUCTION: u64 = 12;

/// Sets the cost of every action: IR instructions, own and imported, as the job's shard has them, or as the size of
/// the module suggests. Paths are relative to `directory`, or to the current one when `None`.
pub fn set_costs(file: &mut JobFile, directory: Option<&Path>) {
    let costs: Vec<_> = file.jobs.par_iter().map(|&job| cost(file, job, directory)).collect();
    for (&job, cost) in file.jobs.iter().zip(costs) {
        file.graph.set_cost(job, cost);
    }
}

fn cost(file: &JobFile, job: ActionId, directory: Option<&Path>) -> u64 {
    let place = |path: &str| directory.map_or_else(|| path.into(), |directory| directory.join(path));
    let module = file.module(job);
    let from_shard = fs::read(place(file.shard(job).as_str())).ok().and_then(|bytes| {
        let cost = shard::read(&bytes).ok()?.cost(module).ok()?;
        Some(cost.total())
    });
    from_shard.filter(|&cost| cost > 0).unwrap_or_else(|| by_size(&place(module)))
}

/// The cost that the size of a module's file suggests.
pub fn by_size(module: &Path) -> u64 {
    fs::metadata(module).map_or(0, |found| found.len() / BYTES_PER_INSTRUCTION)
}
