//! The stores of the links under test: one for each folder of a test, so that no test finds what another has compiled.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use distlto_planner::digests::Digest;
use distlto_planner::state;
use serde::Deserialize;

/// The user's cache folder in a folder of a test.
pub const CACHE: &str = ".cache";
const VARIABLE: &str = "XDG_CACHE_HOME";

/// Makes a folder with a store of its own.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join(CACHE))
}

/// Has a command use the store of the folder in which it runs.
pub fn give(command: &mut Command) {
    if command.get_envs().any(|(name, _)| name == OsStr::new(VARIABLE)) {
        return;
    }
    if let Some(cache) = command.get_current_dir().and_then(cache_of) {
        command.env(VARIABLE, cache);
    }
}

fn cache_of(place: &Path) -> Option<PathBuf> {
    place.ancestors().map(|place| place.join(CACHE)).find(|cache| cache.is_dir())
}

/// The store for links in a place.
pub fn of(place: &Path) -> Result<PathBuf> {
    let cache = cache_of(place).with_context(|| format!("{} has no store", place.display()))?;
    Ok(cache.join("distlto"))
}

/// Where the record of a link lies, in a store.
pub fn record_in(store: &Path, output: &Path) -> PathBuf {
    record_of(output, &store.join("links-v1").to_string_lossy())
}

/// Where the record of a link lies, in a folder of records.
pub fn record_of(output: &Path, folder: &str) -> PathBuf {
    state::directory(&output.to_string_lossy(), folder).into()
}

/// One module of a record.
#[derive(Deserialize)]
struct Module {
    files: Vec<(String, String)>,
}

/// The native objects of the last link of an output, by their names, from a store.
pub fn objects_in(store: &Path, record: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let Ok(text) = fs::read_to_string(record.join("modules")) else { return Ok(Vec::new()) };
    let object = |line: &str| {
        let module: Module = serde_json::from_str(line)?;
        let (name, digest) = module.files.first().context("a module without an object")?;
        let name = name.split_once("/objects/").map_or(name.as_str(), |(_, name)| name);
        let digest = Digest::parse(digest).context("no digest")?;
        let blob = blob(store, &digest.hex());
        let bytes = fs::read(&blob).with_context(|| format!("cannot read {}", blob.display()))?;
        Ok((name.into(), bytes))
    };
    let mut objects: Vec<_> = text.lines().skip(1).map(object).collect::<Result<_>>()?;
    objects.sort();
    Ok(objects)
}

/// The file of a store that holds the content of a digest.
pub fn blob(store: &Path, hex: &str) -> PathBuf {
    store.join("results-v1/blobs").join(&hex[..2]).join(&hex[2..])
}
