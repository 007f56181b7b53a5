//! Which backends a link has and what each reads, asked of lld alone: its separate thin link, whose shards llvm-dis prints.
//!
//! A shard names the modules that it imports from, with their hashes, so equal text stands for equal inputs. Where a
//! member stands in its archive is taken out: it is part of a name and of nothing else. Knows nothing of distlto but the
//! events of `--json`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::line;
use super::model::Program;
use super::workspace::Workspace;
use crate::run::{capture, succeed, told};

/// The shards of a link, by what their modules are called; members of one name are one entry.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Backends(BTreeMap<String, Vec<String>>);

impl Backends {
    /// Asks lld in a directory that may be littered.
    pub fn of(program: &Program, workspace: &Workspace) -> Result<Self> {
        let dir = "by-index";
        fs::create_dir_all(workspace.path.join(dir))?;
        let mut command = workspace.tool("clang")?;
        command.args(line::words(program, dir)).arg("-Wl,--thinlto-index-only=by-index/list");
        let output = capture(&mut command)?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        let list = fs::read_to_string(workspace.path.join("by-index/list")).unwrap_or_default();
        let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for id in list.lines() {
            let text = shard(workspace, id)?;
            shards.entry(stem(id).to_owned()).or_default().push(text);
        }
        shards.values_mut().for_each(|texts| texts.sort());
        Ok(Self(shards))
    }

    /// How many there are.
    pub fn number(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The names of those that are not among others; one for each member of that name.
    pub fn unlike(&self, before: &Self) -> Vec<String> {
        let mut names = Vec::new();
        for (name, texts) in &self.0 {
            let mut left = before.0.get(name).cloned().unwrap_or_default();
            for text in texts {
                match left.iter().position(|other| other == text) {
                    Some(at) => drop(left.swap_remove(at)),
                    None => names.push(name.clone()),
                }
            }
        }
        names
    }
}

/// What a shard says, without the places of members, and without the numbers and the order of its entries.
fn shard(workspace: &Workspace, id: &str) -> Result<String> {
    let mut print = Command::new(workspace.toolchain.tool("llvm-dis")?);
    print.current_dir(&workspace.path).arg(format!("{id}.thinlto.bc")).args(["-o", "-"]);
    let text = String::from_utf8(succeed(&mut print)?.stdout).context("llvm-dis prints UTF-8")?;
    Ok(canonical(&text))
}

/// The entries of an index by what they are about: `^3 = gv: (guid: 7, ...)` is named by others as `^3`.
fn canonical(text: &str) -> String {
    let entries: Vec<(&str, String)> = text
        .lines()
        .filter(|line| line.starts_with('^'))
        .filter_map(|line| line.split_once(" = "))
        .map(|(number, entry)| (number, without_place(entry)))
        .collect();
    let about = |entry: &str| {
        let end = entry.find(", hash:").or_else(|| entry.find(", summaries:")).unwrap_or(entry.len());
        format!("<{}>", &entry[..end])
    };
    let names: BTreeMap<&str, String> =
        entries.iter().map(|(number, entry)| (*number, about(entry))).collect();
    let mut lines: Vec<String> = entries.iter().map(|(_, entry)| with_names(entry, &names)).collect();
    lines.sort();
    lines.join("\n")
}

/// An entry with what others are about in the places of their numbers.
fn with_names(entry: &str, names: &BTreeMap<&str, String>) -> String {
    let mut out = String::new();
    let mut rest = entry;
    while let Some(at) = rest.find('^') {
        let digits =
            rest[at + 1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| at + 1 + end);
        out.push_str(&rest[..at]);
        out.push_str(names.get(&rest[at..digits]).map_or(&rest[at..digits], String::as_str));
        rest = &rest[digits..];
    }
    out + rest
}

/// A line without the number of `lib.a(member.o at 120)`.
fn without_place(line: &str) -> String {
    match line.split_once(" at ") {
        Some((before, after)) if line.starts_with("module: ") => {
            let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}{after}")
        }
        _ => line.to_owned(),
    }
}

/// What a module is called, wherever it lies: `u1` of `o/u1.o`, `liba.a(u1.o at 78)` and `members/liba.a/u1.o`. A second
/// member of one name may be unpacked as `u1_1.o`.
fn stem(id: &str) -> &str {
    let name = id.rsplit(['/', '(']).next().unwrap_or(id);
    name.split(['.', '_']).next().unwrap_or(name)
}

/// The backends that ran, of the events that `--json` prints.
pub fn ran(events: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for line in events.lines() {
        let event: Value =
            serde_json::from_str(line).with_context(|| format!("--json prints a line `{line}`"))?;
        if event["event"] == "finish" && event["kind"] == "opt" && event["origin"] == "ran" {
            names.push(stem(event["label"].as_str().context("a finished action has a label")?).to_owned());
        }
    }
    names.sort();
    Ok(names)
}
