//! `distlto explain --miss`: why no kept object served when a module was compiled last: the nearest earlier key on record, and
//! the parts in which the two differ.
//!
//! A link by one lld records the parts of each key. Of other links the reasons are known that the run itself gave.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use distlto_prepare::text::printable;
use distlto_record::action::{ActionRecord, ActionStatus};
use distlto_record::run::RunRecord;
use serde::Serialize;

use crate::link_description::LinkDescription;

/// The version of the JSON.
const VERSION: u32 = 1;
/// How much of a key is shown to a person.
const DIGITS: usize = 16;

/// Why there was no kept object.
#[derive(Debug, Serialize)]
pub(super) struct ExplainedMiss {
    version: u32,
    module: String,
    /// The last run in which it was compiled; absent if no record has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Last>,
}

#[derive(Debug, Serialize)]
struct Last {
    /// When that run began, in milliseconds since 1970.
    begun_ms: u64,
    key: Option<String>,
    /// The key that a cache was asked for, and whether it had it.
    cache_key: Option<String>,
    cache_hit: Option<bool>,
    /// The reason that the run itself recorded.
    why: Vec<String>,
    /// How many earlier keys there are on record.
    earlier: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<Nearest>,
}

/// The earlier key that differs in the fewest parts, the newest of those.
#[derive(Debug, Serialize)]
struct Nearest {
    begun_ms: u64,
    key: String,
    /// How many runs lie between.
    runs_ago: usize,
    /// Names of parts; of files that only one of the two reads, too.
    differs_in: Vec<String>,
    /// The imports with different content, if imports differ.
    imports: Vec<String>,
    parts: usize,
}

impl ExplainedMiss {
    pub(super) fn of(seen: &LinkDescription, number: usize) -> Self {
        let label = &seen.modules[number].label;
        let compiled = |action: &&ActionRecord| action.label == *label && action.result == ActionStatus::Done;
        let in_run =
            |(at, run): (usize, &'_ RunRecord)| Some((at, run.actions.iter().rev().find(compiled)?.clone()));
        let last = seen.runs.iter().enumerate().rev().find_map(in_run);
        let imports = seen.modules[number].imports.iter().flatten();
        let imports: Vec<String> =
            imports.map(|&import| seen.modules[import as usize].label.clone()).collect();
        Self {
            version: VERSION,
            module: label.clone(),
            last: last.map(|(at, action)| Last::of(&seen.runs, at, &action, &imports)),
        }
    }
}

impl Last {
    fn of(runs: &[RunRecord], at: usize, action: &ActionRecord, imports: &[String]) -> Self {
        let cache = action.cache.as_ref();
        let earlier: Vec<(usize, &ActionRecord)> = runs[..at]
            .iter()
            .enumerate()
            .filter_map(|(at, run)| Some((at, find(run, &action.label).filter(|one| !one.parts.is_empty())?)))
            .collect();
        let distance = |other: &ActionRecord| differing(&action.parts, &other.parts).len();
        // Of equals the last one is taken.
        let nearest = earlier.iter().rev().min_by_key(|(_, other)| distance(other));
        let nearest = nearest.filter(|_| !action.parts.is_empty()).and_then(|&(then, other)| {
            let differs_in = differing(&action.parts, &other.parts);
            let of_imports = differs_in.iter().any(|part| part == "imports");
            let content =
                |run: usize, label: &str| Some(find(&runs[run], label)?.parts.get("module")?.clone());
            let changed = |label: &&String| of_imports && content(at, label) != content(then, label);
            Some(Nearest {
                begun_ms: runs[then].begun_ms,
                key: other.key.clone()?,
                runs_ago: at - then,
                differs_in,
                imports: imports.iter().filter(changed).cloned().collect(),
                parts: action.parts.len(),
            })
        });
        let keys: BTreeSet<&String> = earlier.iter().filter_map(|(_, other)| other.key.as_ref()).collect();
        Self {
            begun_ms: runs[at].begun_ms,
            key: action.key.clone(),
            cache_key: cache.map(|cache| cache.key.clone()),
            cache_hit: cache.map(|cache| cache.hit),
            why: action.why.iter().map(ToString::to_string).collect(),
            earlier: keys.len(),
            nearest,
        }
    }
}

/// Finds the record of a module, whether it was compiled or kept.
fn find<'r>(run: &'r RunRecord, label: &str) -> Option<&'r ActionRecord> {
    run.actions.iter().rev().find(|action| action.label == label)
}

/// The names of parts that are not equal.
fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    names.into_iter().filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

impl fmt::Display for ExplainedMiss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = printable(&self.module);
        let Some(last) = &self.last else {
            return writeln!(out, "{module}: no record has a run in which its backend ran");
        };
        let why: Vec<String> = last.why.iter().map(|why| printable(why).into_owned()).collect();
        writeln!(
            out,
            "{module}: its backend ran last since {}",
            if why.is_empty() { "it was asked for".to_owned() } else { why.join("; ") }
        )?;
        if let (Some(key), Some(hit)) = (&last.cache_key, last.cache_hit) {
            let answer = if hit { "had its result: nothing was compiled" } else { "had no result for it" };
            writeln!(out, "the cache was asked for {}, and {answer}", short(key))?;
        }
        let Some(nearest) = &last.nearest else {
            return writeln!(
                out,
                "no record of an earlier run says what a key of it is made of: there is nothing to compare with"
            );
        };
        let key = last.key.as_deref().map_or("", short);
        let (old, ago) = (short(&nearest.key), nearest.runs_ago);
        let runs = if ago == 1 { "the run before".to_owned() } else { format!("{ago} runs before") };
        if nearest.differs_in.is_empty() {
            return writeln!(
                out,
                "its key {key} is that of {runs}, whose object is no longer kept, or not as it was left"
            );
        }
        writeln!(
            out,
            "its key {key} is nearest to {old} of {runs}, of {} on record: {} of {} parts differ: {}",
            last.earlier,
            nearest.differs_in.len(),
            nearest.parts,
            printable(&nearest.differs_in.join(", "))
        )?;
        for import in &nearest.imports {
            writeln!(out, "  import {} has other content", printable(import))?;
        }
        Ok(())
    }
}

fn short(key: &str) -> &str {
    key.get(..DIGITS).unwrap_or(key)
}
