//! The answers at the top of the page, as tiles: a name, a value, a detail, and the module that it leads to.
//!
//! Pure.

use std::collections::BTreeMap;

use distlto_planner::words::shell_line;
use distlto_prepare::text::printable;
use serde::Serialize;

use crate::action::{ActionRecord, ActionStatus};
use crate::inspect::{Inspection, linker_time};
use crate::progress::text::{counted, human_us};
use crate::report::Origin;
use crate::report::summary::Summary;
use crate::run::RunRecord;
use crate::usage::LinkUsage;
use crate::why::main_reason;

/// A tile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Tile {
    name: &'static str,
    value: String,
    detail: String,
    /// The label of the module that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
}

/// The tiles of a run.
pub(super) fn of(run: &RunRecord, inspection: &Inspection) -> Vec<Tile> {
    let summary = Summary::of(run, run.wall_us);
    let mut tiles = vec![time(run), backends(run, &summary, inspection.modules.len()), found(run, &summary)];
    tiles.extend(slowest(run));
    tiles.extend(reason(run));
    tiles
}

/// Facts about a run, each with its name: when, where and by which command.
pub(super) fn about(run: &RunRecord) -> Vec<[String; 2]> {
    let tools = run.tools.iter().map(|tool| format!("{} {}", tool.role, tool.name));
    let by: Vec<String> = [run.program.clone()].into_iter().chain(tools).collect();
    let facts = [
        ("host", run.host.clone().unwrap_or_default()),
        ("by", by.join(", ")),
        ("in", run.directory.clone()),
        ("command", shell_line(run.command_line.iter().map(String::as_str))),
    ];
    let known = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    known.map(|(name, fact)| [name.to_owned(), printable(&fact).into_owned()]).collect()
}

fn tile(name: &'static str, value: String, detail: String) -> Tile {
    Tile { name, value, detail, module: None }
}

fn time(run: &RunRecord) -> Tile {
    let detail = match (run.exit_code, linker_time(run)) {
        (Some(code), _) if code != 0 => format!("failed with exit code {code}"),
        (_, Some(us)) => format!("{} without a backend", human_us(us)),
        _ => String::new(),
    };
    tile("time", human_us(run.wall_us), detail)
}

fn backends(run: &RunRecord, summary: &Summary, modules: usize) -> Tile {
    let on_engine = match summary.on_engine {
        0 => String::new(),
        count => format!("{count} on the engine; "),
    };
    let detail = match (summary.failed, summary.efficiency) {
        (0, Some(part)) => {
            let jobs = counted(summary.jobs, "job");
            format!("{jobs}, {:.0} % of the best possible", (part * 100.0).floor())
        }
        (0, None) => run.jobs.map_or_else(String::new, |jobs| counted(jobs, "job")),
        (failed, _) => format!("{failed} failed"),
    };
    tile("backends run", format!("{} of {modules}", summary.ran), on_engine + &detail)
}

fn found(run: &RunRecord, summary: &Summary) -> Tile {
    let counts = LinkUsage::of(run).counts;
    let by_key = counts.kept - summary.same_imports as u64;
    let kinds = [
        (by_key, "by the linker's key"),
        (counts.cached, "by content"),
        (summary.same_imports as u64, "with the same imports"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}")).collect();
    let spared = (counts.spared_us > 0).then(|| format!("{} spared", human_us(counts.spared_us)));
    let detail: Vec<String> = spared.into_iter().chain(kinds).collect();
    tile("objects found", (counts.kept + counts.cached).to_string(), detail.join("; "))
}

/// Returns the backend that was on its worker longest.
fn slowest(run: &RunRecord) -> Option<Tile> {
    let longest = ran(run).max_by_key(|action| action.worked_us(run.wall_us))?;
    let tile = tile("slowest backend", human_us(longest.worked_us(run.wall_us)), short(&longest.label));
    Some(Tile { module: Some(printable(&longest.label).into_owned()), ..tile })
}

/// Returns the most frequent reason of the backends that ran.
fn reason(run: &RunRecord) -> Option<Tile> {
    let mut reasons: BTreeMap<(&str, Option<&str>), usize> = BTreeMap::new();
    for change in ran(run).filter_map(|action| main_reason(&action.why)) {
        *reasons.entry((change.what.noun(), change.name.as_deref())).or_default() += 1;
    }
    let ((noun, name), count) = reasons.into_iter().max_by_key(|&(_, count)| count)?;
    let of = name.map_or_else(String::new, |name| format!(": {}", short(name)));
    let tile = tile("why", noun.to_owned(), format!("{count} of {} backends{of}", ran(run).count()));
    let module = run.actions.iter().find(|action| Some(action.label.as_str()) == name);
    Some(Tile { module: module.map(|action| printable(&action.label).into_owned()), ..tile })
}

/// The last part of a path.
fn short(name: &str) -> String {
    printable(name.rsplit('/').next().unwrap_or(name)).into_owned()
}

/// The backends whose command ran to a good end.
fn ran(run: &RunRecord) -> impl Iterator<Item = &ActionRecord> {
    let is_ran =
        |action: &&ActionRecord| action.result == ActionStatus::Done && action.took.origin == Origin::Ran;
    run.backends().filter(is_ran)
}
