//! Describes one file: an index shard, a bitcode object, a native one, an archive.
//!
//! Reads the file alone. Sentences come first; tables only on request.

use std::collections::BTreeMap;

use camino::Utf8Path;
use distlto_planner::module::{self, SummaryKind};
use distlto_planner::shard::{self, Shard};
use distlto_prepare::archive::NamedMembers;
use distlto_prepare::input::Input;
use distlto_prepare::kind::{Kind, bitcode_of, classify};
use distlto_prepare::text::printable;
use distlto_record::progress::text::counted;
use serde::Serialize;

use super::InspectArgs;
use crate::configuration::options;
use crate::link_description::{LinkDescriptionError, unreadable};
use crate::store;

/// The version of the JSON.
const VERSION: u32 = 1;

/// The facts about a file.
#[derive(Debug, Serialize)]
pub struct Facts {
    version: u32,
    file: String,
    bytes: u64,
    #[serde(flatten)]
    what: FileFacts,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum FileFacts {
    Shard { stub: bool, flags: u64, summary_version: u64, modules: Vec<Imported> },
    Object(ObjectFacts),
    Archive { members: Vec<Member> },
}

/// A module that a shard names: its own, or one that it imports from.
#[derive(Debug, Serialize)]
struct Imported {
    module: String,
    functions: u64,
    instructions: u64,
}

#[derive(Debug, Serialize)]
struct Member {
    name: String,
    bytes: u64,
    #[serde(flatten)]
    object: ObjectFacts,
}

/// The facts about an object, or about anything that is linked.
#[derive(Debug, Serialize)]
struct ObjectFacts {
    /// In words: `bitcode`, `ELF x86-64 object`.
    contents: String,
    /// Whether it is a ThinLTO module.
    thin_lto: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<FileModuleFacts>,
    /// Why it is none, where its bitcode cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<String>,
}

#[derive(Debug, Serialize)]
struct FileModuleFacts {
    summary: &'static str,
    source: String,
    target: String,
    producer: String,
    has_hash: bool,
    unified: bool,
    split_unit: bool,
    instructions: Option<u64>,
}

impl Facts {
    /// Returns the facts about a file of one of these kinds. `None` for other kinds, and for the output of a link with
    /// a state directory.
    pub fn of(path: &Utf8Path, folder: Option<&str>) -> Result<Option<Self>, LinkDescriptionError> {
        let record = options::links(folder).map(|folder| store::record_of(path.as_str(), &folder));
        if !path.is_file() || record.is_some_and(|record| Utf8Path::new(&record).is_dir()) {
            return Ok(None);
        }
        let input = Input::open(path.as_std_path())?;
        let what = match classify(&input) {
            Kind::Archive { .. } | Kind::Universal => FileFacts::Archive { members: members(path)? },
            Kind::Bitcode { .. } => of_bitcode(path, &input)?,
            Kind::FatLto(_) | Kind::Native(_) => FileFacts::Object(ObjectFacts::of(&input)),
            _ => return Ok(None),
        };
        Ok(Some(Self { version: VERSION, file: path.to_string(), bytes: input.len() as u64, what }))
    }

    /// Returns the sentences, or the requested table.
    pub fn text(&self, args: &InspectArgs) -> String {
        let file = printable(&self.file);
        match &self.what {
            FileFacts::Shard { stub: true, .. } => {
                format!(
                    "{file}: the index shard of a module that the linker did not load; its backend writes an empty object\n"
                )
            }
            FileFacts::Shard { modules, .. } => shard_text(&file, modules, args),
            FileFacts::Object(object) => format!("{file}: {}\n", printable(&object.text())),
            FileFacts::Archive { members } => archive_text(&file, members, args),
        }
    }
}

fn of_bitcode(path: &Utf8Path, bytes: &[u8]) -> Result<FileFacts, LinkDescriptionError> {
    // A module has no path table, and a shard has no summary of its own.
    let (shard, module) = (shard::read(bytes), module::read(bytes));
    let is_named = path.as_str().ends_with(".thinlto.bc");
    match (shard, module) {
        (Ok(shard), module) if is_named || !shard.modules.is_empty() || module.is_err() => {
            Ok(of_shard(&shard))
        }
        (Err(error), _) if is_named => Err(unreadable(path, &error)),
        (_, Err(error)) => Err(unreadable(path, &error)),
        (_, Ok(_)) => Ok(FileFacts::Object(ObjectFacts::of(bytes))),
    }
}

fn of_shard(shard: &Shard) -> FileFacts {
    let module = |module: &shard::ShardModule| Imported {
        module: module.name().into_owned(),
        functions: module.functions,
        instructions: module.instructions,
    };
    FileFacts::Shard {
        stub: shard.is_stub(),
        flags: shard.flags,
        summary_version: shard.version,
        modules: shard.modules.iter().map(module).collect(),
    }
}

fn members(path: &Utf8Path) -> Result<Vec<Member>, LinkDescriptionError> {
    let archive = NamedMembers::open(path.as_std_path())?;
    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    let member = |(place, name): (usize, String)| {
        let bytes = archive.member(place)?;
        Ok(Member { name, bytes: bytes.len() as u64, object: ObjectFacts::of(&bytes) })
    };
    names.into_iter().enumerate().map(member).collect()
}

impl ObjectFacts {
    fn of(bytes: &[u8]) -> Self {
        let read = bitcode_of(bytes).map(module::read);
        let (module, damaged) = match read {
            None => (None, None),
            Some(Ok(module)) => (Some(FileModuleFacts::of(module)), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        let thin_lto = module.as_ref().is_some_and(|module| module.summary == THIN);
        Self { contents: classify(bytes).to_string(), thin_lto, module, damaged }
    }

    fn text(&self) -> String {
        match (&self.module, &self.damaged) {
            (_, Some(error)) => format!("{}, damaged: {error}", self.contents),
            (None, None) => format!("{}: not ThinLTO, the linker takes it as it is", self.contents),
            (Some(module), None) => module.text(&self.contents),
        }
    }
}

const THIN: &str = "ThinLTO";

impl FileModuleFacts {
    fn of(module: module::Module) -> Self {
        Self {
            summary: match module.summary {
                SummaryKind::ThinLto => THIN,
                SummaryKind::FullLto => "full LTO",
                SummaryKind::None => "none",
            },
            source: module.source_name,
            target: module.triple,
            producer: module.producer,
            has_hash: module.hash.is_some(),
            unified: module.unified,
            split_unit: module.split_unit,
            instructions: module.instructions,
        }
    }

    fn text(&self, contents: &str) -> String {
        let what = match self.summary {
            THIN if self.split_unit => "a ThinLTO module with a part for regular LTO (-fsplit-lto-unit)",
            THIN if self.unified => "a module for ThinLTO or full LTO (-funified-lto)",
            THIN => "a ThinLTO module",
            "none" => "not ThinLTO: it has no summary, and is merged with others",
            _ => "not ThinLTO: it is for full LTO (-flto), and is merged with others",
        };
        let known = |text: &String| if text.is_empty() { "unknown".to_owned() } else { text.clone() };
        let instructions = self.instructions.map_or_else(
            || "an unknown number of instructions".to_owned(),
            |number| counted(number, "instruction"),
        );
        let hash = if self.has_hash { "" } else { "; it records no hash of its content" };
        let (source, target) = (known(&self.source), known(&self.target));
        format!(
            "{contents}, {what} of {instructions}; from {source} for {target} by {}{hash}",
            known(&self.producer)
        )
    }
}

fn shard_text(file: &str, modules: &[Imported], args: &InspectArgs) -> String {
    let functions: u64 = modules.iter().map(|module| module.functions).sum();
    let instructions: u64 = modules.iter().map(|module| module.instructions).sum();
    let mut text = String::new();
    if !args.imports && !args.modules {
        text += &format!(
            "{file}: an index shard, by which a backend compiles {functions} functions of {instructions} instructions\n\
             it names {}: the one that it is for, and those that this imports from (--imports lists them)\n",
            counted(modules.len(), "module")
        );
    }
    let mut shown: Vec<&Imported> = modules.iter().filter(|module| args.shows(&module.module)).collect();
    shown.sort_by_key(|module| std::cmp::Reverse(module.instructions));
    if args.imports || args.modules {
        text += &format!("{:>12} {:>9}  module\n", "instructions", "functions");
        for Imported { module, functions, instructions } in shown {
            text += &format!("{instructions:>12} {functions:>9}  {}\n", printable(module));
        }
    }
    text
}

fn archive_text(file: &str, members: &[Member], args: &InspectArgs) -> String {
    if args.modules || args.native {
        let wanted = |member: &&Member| {
            (member.object.thin_lto && args.modules || !member.object.thin_lto && args.native)
                && args.shows(&member.name)
        };
        let line = |member: &Member| {
            format!(
                "{:>10}  {}: {}\n",
                member.bytes,
                printable(&member.name),
                printable(&member.object.text())
            )
        };
        return members.iter().filter(wanted).map(line).collect();
    }
    let thin = members.iter().filter(|member| member.object.thin_lto).count();
    let mut text = format!(
        "{file}: an archive of {}, {thin} of which are ThinLTO modules (--modules lists them)\n",
        counted(members.len(), "member")
    );
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for member in members.iter().filter(|member| !member.object.thin_lto) {
        *kinds.entry(member.object.contents.as_str()).or_default() += 1;
    }
    let list: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    if !list.is_empty() {
        text += &format!("not ThinLTO: {} (--native lists them)\n", list.join(", "));
    }
    let damaged = members.iter().filter(|member| member.object.damaged.is_some()).count();
    if damaged > 0 {
        text += &format!("damaged: {}\n", counted(damaged, "member"));
    }
    text
}
