//! Which backends a link has and what each reads, asked of lld alone: its separate thin link, whose shards llvm-dis prints.
//!
//! A shard names the modules that it imports from, with their hashes, so equal entries stand for equal inputs. A member goes
//! by which one of its name it is, and not by where it stands. Knows nothing of distlto but that and the events of `--json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::ptr;

use anyhow::{Context, Result, ensure};
use object::read::archive::{ArchiveFile, ArchiveMember};
use serde_json::Value;

use super::line;
use super::model::Program;
use super::ways::{COLLISION, asks};
use super::workspace::Workspace;
use crate::run::{capture, succeed, told};

/// The shards of a link, by what their modules are called; members of one name are one entry.
type Shards = BTreeMap<String, Vec<String>>;

/// The shards of a link, with and without the names of modules.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Backends {
    /// Modules by path, the order of paths, in which a backend imports: that of members that are called by their places; and what
    /// lld has resolved of the symbols of its modules.
    by_order: Shards,
    /// Modules by hash: one that moves into an archive stays the same.
    by_hash: Shards,
    /// Whether all of them are members of the library that only objects name.
    pub noted: bool,
}

impl Backends {
    /// Asks lld in a directory that may be littered. `None` where it names two modules alike, and refuses them.
    pub fn of(program: &Program, workspace: &Workspace) -> Result<Option<Self>> {
        let dir = "by-index";
        fs::create_dir_all(workspace.path.join(dir))?;
        let mut command = workspace.tool("clang")?;
        command.args(line::words(program, dir)).arg("-Wl,--thinlto-index-only=by-index/list");
        // lld leaves a stub for a lazy object that nothing needs. That of `./o/u1.o` must not overwrite the shard of a
        // loaded `o/u1.o`.
        command.arg("-Wl,--thinlto-prefix-replace=./;by-index/again/");
        if asks(workspace.toolchain) {
            command.arg("-Wl,--save-temps=resolution");
        }
        let output = capture(&mut command)?;
        if !output.status.success() {
            let told = told(&command, &output);
            ensure!(told.contains(COLLISION), "{told}");
            return Ok(None);
        }
        let list = fs::read_to_string(workspace.path.join("by-index/list")).unwrap_or_default();
        let members = members(workspace)?;
        let resolved = workspace.path.join(format!("{}.resolution.txt", line::output(program, dir)));
        let resolutions = fs::read_to_string(resolved).unwrap_or_default();
        let resolved = Resolved::read(&resolutions);
        let noted = list.lines().all(|id| id.contains("libdep.a("));
        let mut backends = Self { noted, ..Self::default() };
        for id in list.lines() {
            let text = shard_text(workspace, id)?;
            let name = stem(id).to_owned();
            let by_path = canonical(&text, |entry| without_place(entry, &members), Order::Kept);
            let own = number_of(&text, id).with_context(|| format!("the shard of {id} lacks its module"))?;
            let by_hash = canonical(&text, |entry| what_keys_say(entry, own), Order::Sorted);
            let by_order = format!("{by_path}\n{}\n{}", order(&text, &members), resolved.of(&text));
            for (shards, text) in [(&mut backends.by_order, by_order), (&mut backends.by_hash, by_hash)] {
                shards.entry(name.clone()).or_default().push(text);
            }
        }
        for shards in [&mut backends.by_order, &mut backends.by_hash] {
            shards.values_mut().for_each(|texts| texts.sort());
        }
        Ok(Some(backends))
    }

    /// How many there are.
    pub fn number(&self) -> usize {
        self.by_hash.values().map(Vec::len).sum()
    }

    /// Those that have to run after others, and those that may, by name; one for each member of that name. Backends run by content,
    /// and one whose modules are only called otherwise may run or not.
    pub fn unlike(&self, before: &Self) -> Unlike {
        let [must, may] = [(&self.by_hash, &before.by_hash), (&self.by_order, &before.by_order)]
            .map(|(shards, before)| unlike(shards, before));
        Unlike { must, may }
    }
}

/// Backends by what has changed of them.
#[derive(Debug)]
pub struct Unlike {
    /// What they read.
    pub must: Vec<String>,
    /// The names of it, or what they read.
    pub may: Vec<String>,
}

impl Unlike {
    /// Whether these are all that have to run, and no others than may.
    pub fn fits(&self, ran: &[String]) -> bool {
        let mut ran: Vec<String> = ran.iter().map(|label| stem(label).to_owned()).collect();
        ran.sort();
        within(&self.must, &ran) && within(&ran, &self.may)
    }
}

impl Unlike {
    /// Whether those that have to run are among these.
    pub fn are_among(&self, ran: &[String]) -> bool {
        let ran: Vec<String> = ran.iter().map(|label| stem(label).to_owned()).collect();
        within(&self.must, &ran)
    }
}

fn within(some: &[String], all: &[String]) -> bool {
    let count = |list: &[String], name| list.iter().filter(|other| *other == name).count();
    some.iter().all(|name| count(some, name) <= count(all, name))
}

/// The names of shards that are not among others.
fn unlike(shards: &Shards, before: &Shards) -> Vec<String> {
    let mut names = Vec::new();
    for (name, texts) in shards {
        let mut left = before.get(name).cloned().unwrap_or_default();
        for text in texts {
            match left.iter().position(|other| other == text) {
                Some(at) => drop(left.swap_remove(at)),
                None => names.push(name.clone()),
            }
        }
    }
    names
}

/// Whether the shards of two names say the same.
pub(super) fn same_meaning(workspace: &Workspace, names: &[String; 2]) -> Result<bool> {
    let [one, other] = names.each_ref().map(|name| shard_text(workspace, name));
    let [one, other] = [one?, other?].map(|text| canonical(&text, str::to_owned, Order::Kept));
    Ok(one == other)
}

/// What a shard says.
pub(super) fn shard_text(workspace: &Workspace, id: &str) -> Result<String> {
    let mut print = workspace.tool("llvm-dis")?;
    print.arg(format!("{id}.thinlto.bc")).args(["-o", "-"]);
    let text = String::from_utf8(succeed(&mut print)?.stdout).context("llvm-dis prints UTF-8")?;
    ensure!(text.contains(" = module: ("), "a stub lies in the place of the shard of {id}");
    Ok(text)
}

/// What the members of a program's archives are called: of `liba.a(m.o at 120)` which one of the name it is.
fn members(workspace: &Workspace) -> Result<BTreeMap<String, String>> {
    let mut members = BTreeMap::new();
    for entry in fs::read_dir(&workspace.path)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "a") {
            continue;
        }
        let library = path.file_name().context("an archive has a name")?.to_string_lossy();
        let bytes = fs::read(&path)?;
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for member in ArchiveFile::parse(&*bytes)?.members() {
            let member = member?;
            let name = String::from_utf8_lossy(member.name());
            let name = name.rsplit('/').next().unwrap_or(&name);
            let at = member_offset(&member, &bytes)?;
            let number = numbers.entry(name.to_owned()).or_default();
            members
                .insert(format!("{library}({name} at {at})"), format!("{library}({name}, number {number})"));
            *number += 1;
        }
    }
    Ok(members)
}

/// Where in its archive a member's header is. The content of a thin archive's member is elsewhere.
pub(super) fn member_offset(member: &ArchiveMember<'_>, archive: &[u8]) -> Result<usize> {
    let header = ptr::from_ref(member.header().context("GNU's archives have headers")?);
    Ok(header.addr() - archive.as_ptr().addr())
}

/// What is done with the summaries of one entry, which stand in the order of their modules' paths.
#[derive(Clone, Copy)]
enum Order {
    /// They stay so.
    Kept,
    /// They are sorted: the thin link beside names modules otherwise than DTLTO does, so they stand in another order there.
    Sorted,
}

/// The entries of an index by what they are about, without their numbers and their order: `^3 = gv: (guid: 7, ...)` is
/// named by others as `^3`.
fn canonical(text: &str, entry_as: impl Fn(&str) -> String, order: Order) -> String {
    let entries: Vec<(&str, String)> = text
        .lines()
        .filter(|line| line.starts_with('^'))
        .filter_map(|line| line.split_once(" = "))
        .map(|(number, entry)| (number, entry_as(entry)))
        .collect();
    let about = |entry: &str| {
        let end = entry.find(", hash:").or_else(|| entry.find(", summaries:")).unwrap_or(entry.len());
        format!("<{}>", &entry[..end])
    };
    let names: BTreeMap<&str, String> =
        entries.iter().map(|(number, entry)| (*number, about(entry))).collect();
    let mut lines: Vec<String> = entries
        .iter()
        .map(|(_, entry)| match (order, summaries(entry)) {
            (Order::Sorted, Some(list)) => sorted(entry, list, &names),
            _ => with_names(entry, &names),
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Where in an entry its summaries are, without the parentheses around them.
fn summaries(entry: &str) -> Option<Range<usize>> {
    const BEGIN: &str = "summaries: (";
    let begin = entry.find(BEGIN)? + BEGIN.len();
    Some(begin..entry.rfind("))")?.max(begin))
}

/// An entry with names in the places of numbers, its summaries sorted.
fn sorted(entry: &str, list: Range<usize>, names: &BTreeMap<&str, String>) -> String {
    let mut depth = 0_usize;
    let mut summaries: Vec<String> = entry[list.clone()]
        .split_inclusive(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        })
        .map(|summary| with_names(summary.trim().trim_end_matches(','), names))
        .collect();
    summaries.sort();
    let (before, after) = (&entry[..list.start], &entry[list.end..]);
    format!("{}{}{}", with_names(before, names), summaries.join(", "), with_names(after, names))
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

/// The modules of a shard in the order of their paths.
fn order(text: &str, members: &BTreeMap<String, String>) -> String {
    let entries = text.lines().filter_map(|line| line.split_once(" = module: ")).map(|(_, entry)| entry);
    let mut entries: Vec<&str> = entries.collect();
    entries.sort_unstable();
    entries.iter().map(|entry| without_place(entry, members)).collect::<Vec<_>>().join("\n")
}

/// What lld says of symbols.
#[derive(Default)]
struct Resolved<'t> {
    /// The symbols of each module.
    modules: BTreeMap<&'t str, Vec<&'t str>>,
    /// What it says of each, in all modules.
    symbols: BTreeMap<&'t str, Vec<&'t str>>,
}

impl<'t> Resolved<'t> {
    fn read(text: &'t str) -> Self {
        let (mut read, mut module) = (Self::default(), "");
        for line in text.lines() {
            let symbol =
                line.strip_prefix("-r=").and_then(|line| line.strip_prefix(module)?.strip_prefix(','));
            match symbol.and_then(|symbol| symbol.rsplit_once(',')) {
                Some((symbol, flags)) => {
                    read.modules.entry(module).or_default().push(symbol);
                    read.symbols.entry(symbol).or_default().push(flags);
                }
                None => module = line,
            }
        }
        read.symbols.values_mut().for_each(|flags| flags.sort_unstable());
        read
    }

    /// What it says of the symbols of a shard's modules.
    fn of(&self, shard: &str) -> String {
        let paths =
            shard.lines().filter_map(|line| line.split_once("= module: (path: \"")?.1.split_once('"'));
        let symbols = paths.filter_map(|(path, _)| self.modules.get(path)).flatten();
        let symbols: BTreeSet<&str> = symbols.copied().collect();
        symbols.iter().map(|symbol| format!("{symbol} {:?}\n", self.symbols.get(symbol))).collect()
    }
}

/// The flags of an index that say whether modules were split, and whether only some were. Any module of a link changes them, and
/// they are no part of lld's own keys: where it splits some, lld refuses the type tests for which a backend would look at them.
const SPLIT: u64 = 0x18;

/// The number of a shard's own module. The thin link beside calls it otherwise than the shard does.
fn number_of<'t>(text: &'t str, id: &str) -> Option<&'t str> {
    let id = id.strip_prefix("by-index/again/").unwrap_or(id);
    let entries = text.lines().filter_map(|line| line.split_once(" = module: (path: \""));
    let mut entries = entries.filter_map(|(number, entry)| Some((number, entry.split_once('"')?.0)));
    entries.find(|(_, path)| path.strip_prefix("./").unwrap_or(path) == id).map(|(number, _)| number)
}

/// An entry as lld's keys have it: modules without paths, flags without [`SPLIT`], and linkages of definitions in the own
/// module alone. All that a backend imports is available externally to it. Whether a symbol is local to the program counts
/// only where the module refers to it.
fn what_keys_say(entry: &str, own: &str) -> String {
    if let Some(flags) = entry.strip_prefix("flags: ").and_then(|flags| flags.parse::<u64>().ok()) {
        return format!("flags: {}", flags & !SPLIT);
    }
    match entry.starts_with("module: ") {
        true => entry.split_once("hash: ").map_or(entry, |(_, hash)| hash).to_owned(),
        false => without_linkages(entry, own).replace("dsoLocal: 1", "dsoLocal: 0"),
    }
}

/// An entry without the linkages of summaries of other modules than this.
fn without_linkages(entry: &str, own: &str) -> String {
    const LINKAGE: &str = ", flags: (linkage: ";
    let mut summaries = entry.split("(module: ");
    let mut out = summaries.next().unwrap_or_default().to_owned();
    for summary in summaries {
        out += "(module: ";
        match summary.split_once(LINKAGE) {
            Some((module, rest)) if module != own => {
                out += module;
                out += rest.split_once(", ").map_or(rest, |(_, rest)| rest);
            }
            _ => out += summary,
        }
    }
    out
}

/// An entry with the name of a member in the place of `liba.a(m.o at 120)` if it is a module's.
fn without_place(entry: &str, members: &BTreeMap<String, String>) -> String {
    if !entry.starts_with("module: ") {
        return entry.to_owned();
    }
    let known = entry.split(['/', '"']).find_map(|part| Some((part, members.get(part)?)));
    known.map_or_else(|| entry.to_owned(), |(part, name)| entry.replace(part, name))
}

/// What a module is called, wherever it lies: `u1` of `o/u1.o`, `liba.a(u1.o at 78)` and `members/liba.a/u1.o`. A second
/// member of one name may be unpacked as `u1_1.o`.
pub(super) fn stem(id: &str) -> &str {
    let name = id.rsplit(['/', '(']).next().unwrap_or(id);
    name.split(['.', '_']).next().unwrap_or(name)
}

/// The labels of the backends that came to their turn, of the events that `--json` prints: those that ran, and those whose
/// objects were kept when it showed what they import. How many of the latter there are.
pub fn came_up(events: &str) -> Result<(Vec<String>, usize)> {
    let (mut names, mut kept) = (Vec::<String>::new(), 0);
    for event in read(events) {
        let event = event?;
        let is_kept = event["origin"] == "same-imports";
        if event["event"] == "finish" && event["kind"] == "opt" && (event["origin"] == "ran" || is_kept) {
            let label = event["label"].as_str().context("a finished action has a label")?;
            // The first link of two modules of one source begins anew, without stable names.
            if names.iter().all(|name| name != label) {
                kept += usize::from(is_kept);
                names.push(label.to_owned());
            }
        }
    }
    Ok((names, kept))
}

/// Whether distlto has planned the link, rather than leave it to the linker.
pub fn is_planned(events: &str) -> Result<bool> {
    let events = read(events).collect::<Result<Vec<_>>>()?;
    Ok(events.iter().any(|event| event["event"] == "plan"))
}

fn read(events: &str) -> impl Iterator<Item = Result<Value>> {
    events
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("--json prints a line `{line}`")))
}
