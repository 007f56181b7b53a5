//! `distlto inspect`: describes a link, in sentences first, then in tables.
//!
//! Reads the records of a link. Runs nothing, except the thin link of a given command.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_planner::state::VARIABLE;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;
use distlto_prepare::json_lines::line;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::text::printable;
use distlto_prepare::write::to_standard_output;
use distlto_record::inspect::{Inspection, ModuleFacts};
use distlto_record::progress::text::{human_us, size};
use miette::Report;

use crate::link_description::LinkDescription;

/// Say what bounds a link, and whether more workers would help
///
/// Also shows the modules that many others import from, memory, and inputs without ThinLTO. Name the link by its output, its state
/// directory, a record of a run (STATE/runs/*.json), an index directory of distlto-index, or an action graph in JSON. Times come
/// from its recorded runs. For a link command after --, distlto performs the thin link in a scratch directory.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct InspectArgs {
    /// The link
    #[arg(value_name = "THING", required_unless_present = "command", conflicts_with = "command")]
    pub thing: Option<Utf8PathBuf>,
    /// The directory of distlto link --state
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// List the modules, those that took longest first
    #[arg(long)]
    pub modules: bool,
    /// List which module imports from which
    #[arg(long)]
    pub imports: bool,
    /// List the inputs that are no ThinLTO modules, and what they are
    #[arg(long)]
    pub native: bool,
    /// List only what has this text in its name
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Print JSON, times in microseconds and sizes in bytes
    #[arg(long)]
    pub json: bool,
    /// A link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

/// Inspects and prints.
pub fn run(args: &InspectArgs, cancel: &Cancel) -> Result<u8, Report> {
    let seen = match &args.thing {
        Some(thing) => LinkDescription::find(thing, args.state.as_deref())?,
        None => {
            let words: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
            match LinkDescription::of_command(&words, cancel)? {
                Ok(seen) => seen,
                Err(code) => return Ok(code),
            }
        }
    };
    print(args, &seen)?;
    // The process ends, and to free millions of names takes a while.
    std::mem::forget(seen);
    Ok(0)
}

fn print(args: &InspectArgs, seen: &LinkDescription) -> Result<(), Report> {
    let inspection = Inspection::of(&seen.output, &seen.modules, &seen.runs);
    let mut text = String::new();
    if args.json {
        text += &line(&inspection);
    } else if !(args.modules || args.imports || args.native) {
        text += &answers(seen, &inspection);
    }
    if args.modules && !args.json {
        text += &args.modules(&inspection);
    }
    if args.imports && !args.json {
        text += &args.imports(&inspection);
    }
    if args.native && !args.json {
        let native = native(seen);
        let lines = native.iter().filter(|(path, _)| args.shows(path.as_str()));
        text.extend(lines.map(|(path, kind)| format!("{}  {kind}\n", printable(path.as_str()))));
    }
    Ok(to_standard_output(text.as_bytes())?)
}

/// Returns the sentences about a link, one per line.
pub fn answers(seen: &LinkDescription, inspection: &Inspection) -> String {
    let notes: String = seen.notes.iter().map(|note| printable(note).into_owned() + "\n").collect();
    if seen.is_partial {
        // Neither a bound nor hubs follow from a part of the modules.
        return inspection.heading() + &notes;
    }
    inspection.to_string() + &notes + &summary_of(&native(seen))
}

impl InspectArgs {
    fn shows(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter))
    }

    fn modules(&self, inspection: &Inspection) -> String {
        let mut modules: Vec<&ModuleFacts> =
            inspection.modules.iter().filter(|module| self.shows(&module.label)).collect();
        modules.sort_by_key(|module| {
            let instructions = module.own_instructions + module.imported_instructions;
            (Reverse(module.took_us), Reverse(instructions))
        });
        let mut text = format!(
            "{:>10} {:>10} {:>12} {:>9} {:>8} {:>9}  module\n",
            "time", "memory", "instructions", "imported", "imports", "importers"
        );
        for module in modules {
            let time = module.took_us.map_or_else(|| "-".to_owned(), human_us);
            let memory = module.peak_memory.map_or_else(|| "-".to_owned(), size);
            let ModuleFacts { label, own_instructions, imported_instructions, imports, importers, .. } =
                module;
            text += &format!(
                "{time:>10} {memory:>10} {own_instructions:>12} {imported_instructions:>9} {:>8} {importers:>9}  {}\n",
                imports.len(),
                printable(label)
            );
        }
        text
    }

    fn imports(&self, inspection: &Inspection) -> String {
        let label = |number: u32| inspection.modules[number as usize].label.as_str();
        let pairs = inspection.modules.iter().flat_map(|module| {
            module.imports.iter().map(move |&import| (module.label.as_str(), label(import)))
        });
        let pairs = pairs.filter(|(importer, import)| self.shows(importer) || self.shows(import));
        pairs
            .map(|(importer, import)| format!("{} from {}\n", printable(importer), printable(import)))
            .collect()
    }
}

/// Returns the inputs of the final link that are not its modules, each with its present kind.
fn native(seen: &LinkDescription) -> Vec<(&Utf8Path, String)> {
    let kind = |path: &Utf8Path| {
        classify_file(seen.place(path).as_std_path())
            .map_or_else(|error| error.to_string(), |kind| kind.to_string())
    };
    // Files of the system that a driver reads, and the linker itself, are no inputs of a link.
    let is_input = |path: &&Utf8PathBuf| {
        !path.starts_with("/etc")
            && !matches!(classify_file(seen.place(path).as_std_path()), Ok(Kind::Executable(_)))
    };
    let others = seen.others().iter().filter(is_input);
    others.map(|path| (path.as_path(), kind(path))).collect()
}

/// How many inputs of each kind are no modules.
fn summary_of(native: &[(&Utf8Path, String)]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    native.iter().for_each(|(_, kind)| *kinds.entry(kind.as_str()).or_default() += 1);
    if kinds.is_empty() {
        return String::new();
    }
    let list: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    format!("not ThinLTO: {} (--native lists them)\n", list.join(", "))
}
