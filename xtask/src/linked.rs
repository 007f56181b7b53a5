//! What a link by distlto did, from the events that it printed and from its store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::measure::{Cost, measure_with_output};

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

/// Native objects by the names of their modules.
pub type Objects = BTreeMap<String, Vec<u8>>;

/// Has a link use a store of its own, in the user's cache folder of this name.
pub fn with_store(command: &mut Command, cache: &Path) {
    command.env("XDG_CACHE_HOME", cache);
}

/// The folder of the record of a store's only link.
pub fn record(cache: &Path) -> Result<PathBuf> {
    only_record(&cache.join("distlto/links-v1"))
}

/// The only record in a folder of records.
pub fn only_record(links: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(links).with_context(|| format!("no links in {}", links.display()))?;
    let mut records = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    records.retain(|record| record.join("lock").exists());
    match <[PathBuf; 1]>::try_from(records) {
        Ok([record]) => Ok(record),
        Err(records) => bail!("{} links in {}", records.len(), links.display()),
    }
}

/// The objects of a store's only link.
pub fn objects(cache: &Path) -> Result<Objects> {
    objects_of(&record(cache)?, &cache.join("distlto"))
}

/// The objects of a link, from a store.
pub fn objects_of(record: &Path, store: &Path) -> Result<Objects> {
    let modules = record.join("modules");
    let text = fs::read_to_string(&modules).with_context(|| format!("cannot read {}", modules.display()))?;
    let mut found = Objects::new();
    for line in text.lines().skip(1) {
        let module: Value = serde_json::from_str(line)?;
        let label = module["label"].as_str().context("a module has a name")?;
        let digest = module["files"][0][1].as_str().context("an object has a digest")?;
        let (first, rest) =
            digest.split('/').next().and_then(|hex| hex.split_at_checked(2)).context("a digest")?;
        let blob = store.join("results-v1/blobs").join(first).join(rest);
        let bytes = fs::read(&blob).with_context(|| format!("cannot read {}", blob.display()))?;
        found.insert(label.to_owned(), bytes);
    }
    Ok(found)
}

/// The newest record of a run of a store's only link.
pub fn newest_record(cache: &Path) -> Result<Value> {
    let record = record(cache)?;
    let file = runs(&record)?.pop().with_context(|| format!("no record in {}", record.display()))?;
    read_record(&file)
}

/// The records of a link's runs, the newest last.
pub fn runs(record: &Path) -> Result<Vec<PathBuf>> {
    let folder = record.join("runs");
    let mut files = fs::read_dir(&folder)
        .with_context(|| format!("no records in {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// One record.
pub fn read_record(file: &Path) -> Result<Value> {
    serde_json::from_slice(&fs::read(file)?).with_context(|| format!("{} is no record", file.display()))
}
