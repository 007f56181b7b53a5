//! Two links side by side: modules and imports gained and lost, actions run with reasons, objects that changed, times.
//!
//! A function of the known facts of each link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use distlto_prepare::text::printable;
use serde::Serialize;

use crate::action::ActionRecord;
use crate::inspect::changed;
use crate::progress::text::{counted, human_us};
use crate::report::summary::same_imports;
use crate::run::RunRecord;

/// The version of the JSON.
const VERSION: u32 = 1;
/// How many names of a kind are shown.
const SHOWN: usize = 10;

/// The known facts of a link.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// The modules, each with those that it imports from, where that is known.
    pub modules: BTreeMap<String, Option<BTreeSet<String>>>,
    /// A run of it.
    pub run: Option<RunRecord>,
}

/// The differences between two links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    version: u32,
    /// Modules of the new link alone.
    modules_gained: Vec<String>,
    /// Modules of the old link alone.
    modules_lost: Vec<String>,
    /// Of modules of both: importer and new import. Absent where one side does not know its imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    imports_gained: Option<Vec<(String, String)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imports_lost: Option<Vec<(String, String)>>,
    /// The runs, where both sides have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Runs>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Runs {
    wall_us: [u64; 2],
    cpu_us: [u64; 2],
    /// How many backends ran.
    ran: [usize; 2],
    /// How many objects were kept since they import the same.
    same_imports: [usize; 2],
    /// Of the new run: the backends that ran, each with its reasons.
    why: Vec<(String, Vec<String>)>,
    /// Those of them that wrote another object than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    objects_changed: Option<Vec<String>>,
    /// Linker and compiler, where they differ.
    tools_changed: Vec<String>,
}

impl Side {
    /// The modules of a run that is known by its record alone.
    pub fn of_run(run: RunRecord) -> Self {
        let modules = run.actions.iter().map(|action| (action.label.clone(), None)).collect();
        Self { modules, run: Some(run) }
    }
}

impl Difference {
    /// Of an older and a newer link.
    pub fn of(old: &Side, new: &Side) -> Self {
        let without = |one: &Side, other: &Side| -> Vec<String> {
            one.modules.keys().filter(|label| !other.modules.contains_key(*label)).cloned().collect()
        };
        let runs = old.run.as_ref().zip(new.run.as_ref()).map(|(old, new)| Runs::of(old, new));
        Self {
            version: VERSION,
            modules_gained: without(new, old),
            modules_lost: without(old, new),
            imports_gained: imports_without(new, old),
            imports_lost: imports_without(old, new),
            runs,
        }
    }
}

/// The imports of one side's modules that are not among the other's.
fn imports_without(one: &Side, other: &Side) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (label, imports) in &one.modules {
        let Some(others) = other.modules.get(label) else { continue };
        let (imports, others) = (imports.as_ref()?, others.as_ref()?);
        found.extend(imports.difference(others).map(|import| (label.clone(), import.clone())));
    }
    Some(found)
}

impl Runs {
    fn of(old: &RunRecord, new: &RunRecord) -> Self {
        let both = [old, new];
        let ran = |run: &RunRecord| run.done_backends().count();
        let cpu = |run: &RunRecord| {
            run.backends().flat_map(|action| [action.took.cpu_us, action.took.import_cpu_us]).flatten().sum()
        };
        let why = new.done_backends().map(|action| {
            (action.label.clone(), action.why.iter().map(ToString::to_string).collect::<Vec<_>>())
        });
        let label = |action: &ActionRecord| action.label.clone();
        let tools = new.tools.iter().filter(|tool| {
            let before = old.tools.iter().find(|before| before.role == tool.role);
            before.is_none_or(|before| before != *tool)
        });
        Self {
            wall_us: both.map(|run| run.wall_us),
            cpu_us: both.map(cpu),
            ran: both.map(ran),
            same_imports: both.map(RunRecord::same_imports),
            why: why.collect(),
            objects_changed: changed(new).map(|changed| changed.into_iter().map(label).collect()),
            tools_changed: tools.map(|tool| tool.role.clone()).collect(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        names(out, "modules gained", self.modules_gained.iter())?;
        names(out, "modules lost", self.modules_lost.iter())?;
        let pair = |(importer, import): &(String, String)| format!("{importer} from {import}");
        names(out, "imports gained", self.imports_gained.iter().flatten().map(pair))?;
        names(out, "imports lost", self.imports_lost.iter().flatten().map(pair))?;
        let Some(Runs { wall_us, cpu_us, ran, same_imports: same, why, objects_changed, tools_changed }) =
            &self.runs
        else {
            let same = self.modules_gained.is_empty() && self.modules_lost.is_empty();
            return if same { writeln!(out, "the same modules") } else { Ok(()) };
        };
        writeln!(
            out,
            "{} ran{}{}; the run before ran {}{}",
            counted(ran[1], "backend"),
            same_imports(same[1]),
            objects_changed
                .as_ref()
                .map_or_else(String::new, |changed| format!(", the objects of {} differ", changed.len())),
            ran[0],
            same_imports(same[0])
        )?;
        writeln!(
            out,
            "wall {} -> {}, processor time of backends {} -> {}",
            human_us(wall_us[0]),
            human_us(wall_us[1]),
            human_us(cpu_us[0]),
            human_us(cpu_us[1])
        )?;
        tools_changed.iter().try_for_each(|role| writeln!(out, "the {role} is another one"))?;
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        why.iter().flat_map(|(_, why)| why).for_each(|why| *reasons.entry(why.clone()).or_default() += 1);
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (why, count) in reasons.iter().take(SHOWN) {
            writeln!(out, "{count:>7} x {}", printable(why))?;
        }
        names(out, "objects that differ", objects_changed.iter().flatten())
    }
}

/// A line with the first names of a list; nothing for an empty one.
fn names(
    out: &mut fmt::Formatter<'_>,
    what: &str,
    list: impl Iterator<Item = impl AsRef<str>>,
) -> fmt::Result {
    let list: Vec<String> = list.map(|name| printable(name.as_ref()).into_owned()).collect();
    if list.is_empty() {
        return Ok(());
    }
    let more = list.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    writeln!(out, "{what}: {}{more} ({})", list[..list.len().min(SHOWN)].join(", "), list.len())
}
