//! The plan of each object and of each archive as a file of its own, for build systems that read one at a time.
//!
//! `plans/<module>.json` holds the module's part of the link plan, `plans/<archive>.archive.json` the archive's. A
//! file is written only when its content differs, so a build system that compares contents re-runs only what it must.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;
use distlto_prepare::write::{remove, write_if_changed};
use rayon::prelude::*;
use serde::Serialize;

use crate::link_plan::LinkPlan;
use crate::state::Place;

/// Writes all plans below `<index>/plans`, and removes those of modules and archives that are gone.
pub fn write(index: &str, plan: &LinkPlan) -> Result<(), IoError> {
    let directory = Place::Plans.of(index);
    let module_name = |id: &str| format!("{}.json", escape_path(id.as_bytes()));
    let archive_name = |path: &str| format!("{}.archive.json", escape_path(path.as_bytes()));
    plan.modules
        .par_iter()
        .try_for_each(|module| write_one(&directory, &module_name(module.id.as_str()), module))?;
    plan.archives
        .par_iter()
        .try_for_each(|archive| write_one(&directory, &archive_name(archive.path.as_str()), archive))?;
    let modules = plan.modules.iter().map(|module| module_name(module.id.as_str()));
    let kept: BTreeSet<String> =
        modules.chain(plan.archives.iter().map(|archive| archive_name(archive.path.as_str()))).collect();
    sweep(Path::new(&directory), "", &kept)
}

fn write_one(directory: &str, name: &str, plan: &impl Serialize) -> Result<(), IoError> {
    let mut text = serde_json::to_vec_pretty(plan).expect("strings, numbers and lists serialise");
    text.push(b'\n');
    write_if_changed(Path::new(&format!("{directory}/{name}")), &text).map(|_| ())
}

/// Removes plans that are not among `kept`; `below` is the path from the directory of plans.
fn sweep(directory: &Path, below: &str, kept: &BTreeSet<String>) -> Result<(), IoError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(IoError::on("read", directory)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(IoError::on("read", directory))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        if path.is_dir() {
            sweep(&path, &format!("{below}{name}/"), kept)?;
        } else if name.ends_with(".json") && !kept.contains(&format!("{below}{name}")) {
            remove(&path)?;
        }
    }
    Ok(())
}
