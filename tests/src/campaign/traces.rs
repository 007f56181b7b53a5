//! `campaign traces`: what the record of a link says that its processes have read, against what strace saw.
//!
//! Every file that a process of the link has opened for reading has to be in the record, but for what the link wrote itself,
//! what distlto reads for itself, and what the kernel makes up. The links are those of `reads`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::links::{Request, each};
use super::reads::{Link, PROGRAM};
use crate::distlto;
use crate::run::{succeed, told};
use crate::store;
use crate::toolchain::{Toolchain, system_tool};

/// What came of all links.
#[derive(Debug, Default)]
pub struct Found {
    /// Links with a record.
    pub links: usize,
    /// Links that leave none, since they print something.
    pub without: usize,
    /// Files that strace saw.
    pub files: usize,
    /// Files that a record lacks.
    pub missing: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, without, files, missing } = self;
        let missing = missing.len();
        write!(
            formatter,
            "{links} links, {without} more without a record; {files} files read, {missing} missing"
        )
    }
}

/// Runs the campaign; tells what is missing as it is found.
pub fn traces(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(
        request,
        |seed| link(request, toolchain, seed),
        |all: &mut Found, one: Found| {
            one.missing.iter().for_each(|message| println!("{message}"));
            all.links += one.links;
            all.without += one.without;
            all.files += one.files;
            all.missing.extend(one.missing);
        },
    )
}

fn link(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let link = Link::create(request, toolchain, seed)?;
    // What has just been written is not recorded.
    std::thread::sleep(std::time::Duration::from_millis(60));
    // What distlto asks of a linker once is no part of a link.
    succeed(&mut link.command(&link.path)?)?;
    let store = store::of(&link.path)?;
    for kept in ["links-v1", "results-v1"] {
        fs::remove_dir_all(store.join(kept))?;
    }
    fs::remove_file(link.path.join(PROGRAM))?;
    let log = link.path.join("strace.log");
    let inner = link.command(&link.path)?;
    let mut command = Command::new(system_tool("strace")?);
    command
        .args(["-f", "-qq", "-s", "4096", "-e", "trace=open,openat,clone,clone3,fork,vfork,chdir", "-o"])
        .arg(&log);
    command.arg(inner.get_program()).args(inner.get_args()).current_dir(&link.path);
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => drop(command.env(name, value)),
            None => drop(command.env_remove(name)),
        }
    }
    let ended = succeed(&mut command)?;
    let own = distlto::state_dir(&link.path.join(PROGRAM))?;
    let Ok(record) = fs::read(own.join("last-link.json")) else {
        return Ok(Found { without: 1, ..Found::default() });
    };
    let record: Value = serde_json::from_slice(&record)?;
    let files = record["files"].as_array().context("a list of files")?;
    let known: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|file| file["path"].as_str())
        .filter_map(|path| link.path.join(path).canonicalize().ok())
        .collect();
    let opened = Opened::of(&fs::read_to_string(&log)?, &link.path);
    ensure!(opened.read.len() > 20, "strace saw next to nothing: {}", told(&command, &ended));
    let mut found = Found { links: 1, ..Found::default() };
    for path in opened.read {
        let Ok(file) = path.canonicalize() else { continue };
        let is_other = !file.is_file()
            || file.starts_with(&own)
            || ["/proc", "/sys", "/dev"].iter().any(|place| file.starts_with(place))
            || opened.written.contains(&path)
            || ["libdistlto_hook.so", "libdistlto_exec.so"].iter().any(|name| file.ends_with(name));
        if is_other {
            continue;
        }
        found.files += 1;
        if !known.contains(&file) {
            found.missing.push(format!("seed {seed}: {} is not in the record", path.display()));
        }
    }
    if !request.keep {
        fs::remove_dir_all(&link.path)?;
    }
    Ok(found)
}

/// What processes other than the first have opened.
#[derive(Default)]
struct Opened {
    read: BTreeSet<PathBuf>,
    written: BTreeSet<PathBuf>,
}

impl Opened {
    /// From a log of `strace -f`, whose lines begin with the number of a thread.
    fn of(log: &str, directory: &Path) -> Self {
        let mut opened = Self::default();
        let calls = calls(log);
        let first = calls.first().map(|(thread, _)| *thread);
        // A thread may call before the call that has started it returns.
        let mut processes: BTreeMap<&str, &str> = BTreeMap::new();
        for (thread, call) in calls.iter().filter(|(_, call)| call.contains("CLONE_THREAD")) {
            let owner = processes.get(thread).copied().unwrap_or(thread);
            processes.insert(call.rsplit(' ').next().unwrap_or_default(), owner);
        }
        let mut places: BTreeMap<&str, PathBuf> = BTreeMap::new();
        for (thread, call) in &calls {
            let process = processes.get(thread).copied().unwrap_or(thread);
            let Some((call, result)) = call.rsplit_once(" = ") else { continue };
            if call.starts_with("clone") || call.starts_with("fork") || call.starts_with("vfork") {
                let place = places.get(process).filter(|_| !processes.contains_key(result)).cloned();
                places.extend(place.map(|place| (result, place)));
                continue;
            }
            let Some(name) = call.split('"').nth(1) else { continue };
            let place = places.entry(process).or_insert_with(|| directory.to_owned());
            let path = place.join(name);
            if call.starts_with("chdir") {
                *place = path;
            } else if Some(process) != first && !result.starts_with('-') {
                let is_read = call.contains("O_RDONLY");
                let list = if is_read { &mut opened.read } else { &mut opened.written };
                list.insert(path);
            }
        }
        opened
    }
}

/// The calls of a log of `strace -f` that have returned, each with its thread.
fn calls(log: &str) -> Vec<(&str, String)> {
    let mut calls = Vec::new();
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    for line in log.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread, begun);
        } else if let Some(rest) = call.strip_prefix("<... ") {
            let rest = rest.split_once(" resumed>").map_or(rest, |(_, rest)| rest);
            calls.push((thread, format!("{}{rest}", unfinished.remove(thread).unwrap_or_default())));
        } else {
            calls.push((thread, call.to_owned()));
        }
    }
    calls
}
