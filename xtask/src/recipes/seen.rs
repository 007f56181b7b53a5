//! What is seen of a build: the records of distlto's runs, programs and libraries, and what was installed.
//!
//! Knows the record's members by their names in `docs/run-record.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The first bytes of a program or a library, and the kinds of ELF file that those are.
const ELF: &[u8] = b"\x7fELF";
const LINKED: [u8; 2] = [2, 3];

/// Records of runs, and linked files with what tells that one was written.
pub struct Seen {
    records: BTreeSet<PathBuf>,
    linked: BTreeMap<PathBuf, (u64, i64, i64)>,
}

/// What distlto ran.
#[derive(Debug, Default)]
pub struct Ran {
    /// Links that had something to do.
    pub links: usize,
    /// Backends that ran.
    pub ran: usize,
    /// Backends whose objects were kept.
    pub kept: usize,
    /// Links that failed.
    pub failed: usize,
}

impl Seen {
    /// What there is below a directory.
    pub fn of(directory: &Path) -> Result<Self> {
        let mut seen = Self { records: BTreeSet::new(), linked: BTreeMap::new() };
        for path in files(directory)? {
            let folder = path.parent().and_then(Path::file_name);
            if folder.is_some_and(|folder| folder == "runs")
                && path.extension().is_some_and(|end| end == "json")
            {
                seen.records.insert(path);
            } else if is_linked(&path)? {
                let found = fs::metadata(&path)?;
                seen.linked.insert(path, (found.ino(), found.mtime(), found.mtime_nsec()));
            }
        }
        Ok(seen)
    }

    /// What was recorded since.
    pub fn since(&self, before: &Self) -> Result<Ran> {
        let mut sum = Ran::default();
        for path in self.records.difference(&before.records) {
            let record: Value = serde_json::from_slice(&fs::read(path)?)
                .with_context(|| format!("{} is no record", path.display()))?;
            let actions = record["actions"].as_array().context("a record has actions")?;
            let ended = |result: &str| {
                actions.iter().filter(|action| action["kind"] == "opt" && action["result"] == result).count()
            };
            sum.links += 1;
            sum.ran += ended("done");
            sum.kept += ended("kept");
            sum.failed += usize::from(record["exit_code"] != 0);
        }
        Ok(sum)
    }

    /// The programs and libraries that were written since.
    pub fn written_since(&self, before: &Self) -> Vec<&Path> {
        let differs = |(path, state): &(&PathBuf, &(u64, i64, i64))| before.linked.get(*path) != Some(*state);
        self.linked.iter().filter(differs).map(|(path, _)| path.as_path()).collect()
    }
}

/// How many files were installed: some, of which one is linked, and none of distlto's own.
pub fn installed(directory: &Path) -> Result<usize> {
    let files = files(directory)?;
    for path in &files {
        let below = path.strip_prefix(directory)?;
        ensure!(!below.to_string_lossy().contains("distlto"), "{} is installed", below.display());
    }
    let linked = files.iter().map(|path| is_linked(path)).collect::<Result<Vec<_>>>()?;
    ensure!(linked.contains(&true), "no program and no library is installed");
    Ok(files.len())
}

fn is_linked(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(17).read_to_end(&mut head)?;
    Ok(head.starts_with(ELF) && head.get(16).is_some_and(|kind| LINKED.contains(kind)))
}

/// All regular files below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries =
            fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}
