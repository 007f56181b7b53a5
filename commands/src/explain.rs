//! `distlto explain`, of one module: why its backend ran, its imports, and why there are not more. Also its importers,
//! and the backends that an edit of it would run.
//!
//! Reads the records of a link. For functions it has the linker repeat its thin link.

mod edit;
mod functions;
mod miss;

use camino::Utf8PathBuf;
use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_planner::shard::{self, Shard};
use distlto_planner::state::{Place, VARIABLE};
use distlto_prepare::exit;
use distlto_prepare::json_lines::shown;
use distlto_prepare::names::escape_path;
use distlto_prepare::regular;
use distlto_prepare::text::printable;
use distlto_prepare::write::to_standard_output;
use distlto_record::action::{ActionRecord, ActionStatus};
use distlto_record::inspect::Inspection;
use distlto_record::progress::text::{counted, human_us};
use distlto_record::run::RunRecord;
use miette::Report;
use serde_json::json;

use crate::link_description::LinkDescription;
use edit::Edit;
use functions::Functions;
use miss::ExplainedMiss;

/// How many names of a kind are printed.
const SHOWN: usize = 20;

/// Say why a module's backend ran, and what it imports and why
///
/// And who imports from it, and what an edit of it would run. With FROM, which functions of that module it imports, and
/// LLVM's reason for each one that it refused: the linker repeats its thin link for that, and writes no program. Modules are
/// named as in `distlto inspect --modules`; the end of a name will do.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct ExplainArgs {
    /// The link, as for distlto inspect
    #[arg(value_name = "THING")]
    pub thing: Utf8PathBuf,
    /// The module
    #[arg(value_name = "MODULE")]
    pub module: String,
    /// A module that it imports from, or might
    #[arg(value_name = "FROM")]
    pub from: Option<String>,
    /// Say why no kept object served when its backend ran last
    ///
    /// Of all earlier keys that are on record the nearest one, and where the two differ.
    #[arg(long, conflicts_with = "from")]
    pub miss: bool,
    /// Say what an edit of it would run and cost, and who imports what from it
    #[arg(long, conflicts_with_all = ["from", "miss"])]
    pub edit: bool,
    /// The directory of distlto link --state
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Explains and prints.
pub fn run(args: &ExplainArgs, cancel: &Cancel) -> Result<u8, Report> {
    let seen = LinkDescription::find(&args.thing, args.state.as_deref())?;
    let number = seen.module(&args.module)?;
    let text = match &args.from {
        Some(from) => shown(&Functions::of(&seen, [number, seen.module(from)?], cancel)?, args.json),
        None if args.miss => shown(&ExplainedMiss::of(&seen, number), args.json),
        None if args.edit => shown(&Edit::of(&seen, number), args.json),
        None => {
            let module = ExplainedModule::of(&seen, number);
            if args.json { module.to_json() } else { module.text() }
        }
    };
    to_standard_output(text.as_bytes())?;
    Ok(0)
}

/// The facts about a module.
struct ExplainedModule<'a> {
    seen: &'a LinkDescription,
    number: usize,
    inspection: Inspection,
    /// With the instructions and functions of each, where the shard is kept.
    imports: Vec<(String, Option<(u64, u64)>)>,
    /// The last run that had it, and its record there.
    last: Option<(&'a RunRecord, &'a ActionRecord)>,
}

impl<'a> ExplainedModule<'a> {
    fn of(seen: &'a LinkDescription, number: usize) -> Self {
        let known = &seen.modules[number];
        let kept = shard_of(seen, number);
        let counts = |label: &String| counts(kept.as_ref()?, label);
        let labels = known.imports.iter().flatten().map(|&import| &seen.modules[import as usize].label);
        let mut imports: Vec<_> = labels.map(|label| (label.clone(), counts(label))).collect();
        imports.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.map(|(_, instructions)| instructions)));
        let in_run =
            |run: &'a RunRecord| Some((run, run.actions.iter().rev().find(|one| one.label == known.label)?));
        let last = seen.runs.iter().rev().find_map(in_run);
        Self {
            seen,
            number,
            inspection: Inspection::of(&seen.output, &seen.modules, &seen.runs),
            imports,
            last,
        }
    }

    fn importers(&self) -> Vec<&str> {
        let runs = self.inspection.edit_runs(self.number);
        let own = &self.seen.modules[self.number].label;
        runs.map(|module| module.label.as_str()).filter(|label| label != own).collect()
    }

    fn edit_us(&self) -> u64 {
        self.inspection.edit_runs(self.number).filter_map(|module| module.cpu_us).sum()
    }

    fn text(&self) -> String {
        let facts = &self.inspection.modules[self.number];
        let mut text = format!(
            "{}: {}, and {} imported from {}\n",
            printable(&facts.label),
            counted(facts.own_instructions, "instruction"),
            facts.imported_instructions,
            counted(self.imports.len(), "module")
        );
        text += &self.last_run();
        let note = self.last.and_then(|(run, _)| run.default_names_note());
        text.extend(note.map(|note| format!("{}\n", printable(&note))));
        for (label, counts) in self.imports.iter().take(SHOWN) {
            let what = counts.map_or_else(String::new, |(functions, instructions)| {
                let functions = counted(functions, "function");
                format!(": {functions}, {}", counted(instructions, "instruction"))
            });
            text += &format!("imports from {}{what}\n", printable(label));
        }
        text += &more(self.imports.len());
        let importers = self.importers();
        for label in importers.iter().take(SHOWN) {
            text += &format!("is imported by {}\n", printable(label));
        }
        text += &more(importers.len());
        text += &format!("an edit of it runs {}", counted(importers.len() + 1, "backend"));
        if self.edit_us() > 0 {
            text += &format!(", {} of processor time", human_us(self.edit_us()));
        }
        text + ", if what it exports to them stays; `distlto link --dry-run` says it exactly\n"
    }

    /// Describes its result in the last run.
    fn last_run(&self) -> String {
        let Some((_, action)) = self.last else { return "no run has left a record of it\n".to_owned() };
        let why: Vec<String> =
            action.why.iter().map(|why| printable(&why.to_string()).into_owned()).collect();
        let reasons = |word: &str| {
            if why.is_empty() { String::new() } else { format!(", {word} {}", why.join("; ")) }
        };
        let why = reasons("since");
        let was_cached = action.cache.as_ref().is_some_and(|cache| cache.hit);
        let (ran, why) =
            if was_cached { ("a cache had its object", String::new()) } else { ("its backend ran", why) };
        match action.result {
            ActionStatus::Done => {
                let same = action.outputs.iter().all(|out| out.before == out.after);
                let object = match same {
                    _ if action.outputs.iter().all(|out| out.before.is_none() || out.after.is_none()) => "",
                    true => "; the object is the same as before",
                    false => "; the object is another one",
                };
                format!("in the last run {ran}{why}{object}\n")
            }
            ActionStatus::SameImports => {
                let although = reasons("although");
                format!(
                    "in the last run its backend did not have to run: what it imports is the same{although}\n"
                )
            }
            ActionStatus::Kept | ActionStatus::UpToDate => {
                "in the last run its backend did not have to run\n".to_owned()
            }
            ActionStatus::Failed => format!("in the last run its backend failed{why}\n"),
            _ => format!("in the last run its backend did not end{why}\n"),
        }
    }

    fn to_json(&self) -> String {
        let facts = &self.inspection.modules[self.number];
        let import = |(label, counts): &(String, Option<(u64, u64)>)| {
            let (functions, instructions) = counts.unzip();
            json!({ "module": label, "functions": functions, "instructions": instructions })
        };
        let value = json!({
            "version": 1,
            "label": facts.label,
            "own_instructions": facts.own_instructions,
            "imported_instructions": facts.imported_instructions,
            "cpu_us": facts.cpu_us,
            "imports": self.imports.iter().map(import).collect::<Vec<_>>(),
            "importers": self.importers(),
            "edit_cpu_us": self.edit_us(),
            "last": self.last.map(|(run, action)| json!({ "begun_ms": run.begun_ms, "action": action })),
        });
        format!("{value}\n")
    }
}

/// Returns the shard of a module, if it is known and kept.
fn shard_of(seen: &LinkDescription, number: usize) -> Option<Shard> {
    shard::read(&regular::read(seen.shard(number)?.as_std_path()).ok()?).ok()
}

/// The functions and instructions that a shard has imported from a module.
fn counts(shard: &Shard, label: &str) -> Option<(u64, u64)> {
    let module = shard.modules.iter().find(|module| is_called(&module.path, label))?;
    Some((module.functions, module.instructions))
}

/// Whether a shard's module has this label. A member of an archive has a file in the link's state.
fn is_called(path: &[u8], label: &str) -> bool {
    let file = format!("/{}/{}.bc", Place::Members.name(), escape_path(label.as_bytes()));
    path == label.as_bytes() || path.ends_with(file.as_bytes())
}

/// Says how many were left out.
fn more(number: usize) -> String {
    if number > SHOWN { format!("... and {} more (--json has all)\n", number - SHOWN) } else { String::new() }
}
