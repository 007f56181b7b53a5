//! What a link by distlto did, from the events that it printed, its records and its state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::measure::{Cost, measure_with_output};

/// Where a state has what was unpacked.
const MEMBERS: &str = "/members/";

/// One link.
#[derive(Debug, Default, Clone, Copy)]
pub struct Linked {
    /// Backends that ran.
    pub ran: usize,
    /// Objects that counted, since what is compiled is the same.
    pub kept: usize,
    /// Objects from a cache.
    pub cached: usize,
    /// What all of it cost.
    pub cost: Cost,
}

/// Runs a link that prints events (`--json`) and must succeed.
pub fn link(command: &mut Command) -> Result<Linked> {
    let (cost, events) = measure_with_output(command)?;
    let mut linked = Linked { cost, ..Linked::default() };
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).with_context(|| format!("not an event: {line}"))?;
        if event["event"] == "finish" && event["kind"] == "opt" {
            match event["origin"].as_str() {
                Some("ran") => linked.ran += 1,
                Some("same-imports") => linked.kept += 1,
                Some("cache") => linked.cached += 1,
                other => bail!("a backend's object is from {other:?}"),
            }
        }
    }
    Ok(linked)
}

/// Native objects by their names in the state.
pub type Objects = BTreeMap<PathBuf, Vec<u8>>;

/// Those of a state folder of one link.
pub fn objects(state: &Path) -> Result<Objects> {
    let mut found = BTreeMap::new();
    let root = state.join("objects");
    let mut left = if root.is_dir() { vec![root.clone()] } else { Vec::new() };
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(&root)?.to_string_lossy();
                // A member that was unpacked is named by where, which is in the state.
                let name = name.split_once(MEMBERS).map_or(&*name, |(_, member)| member);
                found.insert(PathBuf::from(name), fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// The newest record in a state folder.
pub fn newest_record(state: &Path) -> Result<Value> {
    let folder = state.join("runs");
    let mut files = fs::read_dir(&folder)
        .with_context(|| format!("no records in {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    let file = files.last().with_context(|| format!("no record in {}", folder.display()))?;
    serde_json::from_slice(&fs::read(file)?).with_context(|| format!("{} is no record", file.display()))
}
