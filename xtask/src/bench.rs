//! `cargo xtask bench`: what distlto costs beside its peers, as ratios of the same run. One module for each thing measured.

pub mod buck2;
pub mod dtlto;
pub mod edits;
pub mod executor;
pub mod farm;
pub mod floor;
pub mod link;
pub mod measure;
pub mod picture;
pub mod processes;
pub mod program;
pub mod remote;
pub mod report;
mod tree;

use std::fs;
use std::thread::available_parallelism;

/// The machine, for the head of a table.
fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        model.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("an unknown processor");
    let processors = available_parallelism().map_or(1, usize::from);
    format!("{processors} processors of {}", model.trim_start_matches([' ', '\t', ':']))
}
