//! `distlto explain --edit`: the backends that an edit of a module would run, their cost, and the imports from it.
//!
//! Computed from imports and recorded times. The kind of change decides which of the importers an edit really concerns.

use std::collections::HashMap;
use std::fmt;

use distlto_prepare::text::printable;
use distlto_record::inspect::{Inspection, ModuleFacts, linker_time, longest_first};
use distlto_record::progress::text::{counted, human_us};
use serde::Serialize;

use super::{SHOWN, counts, more, shard_of};
use crate::link_description::LinkDescription;

/// The version of the JSON.
const VERSION: u32 = 1;

/// The effect of an edit.
#[derive(Debug, Serialize)]
pub(super) struct Edit {
    version: u32,
    module: String,
    /// Its own first, then those that take longest.
    backends: Vec<EditedBackend>,
    /// The sum of the known times.
    cpu_us: u64,
    /// Until the last of them ends, with as many at once as in the last run.
    wall_us: u64,
    jobs: usize,
    /// The linker's time in the last run that ended well.
    linker_us: Option<u64>,
}

#[derive(Debug, Serialize)]
struct EditedBackend {
    module: String,
    cpu_us: Option<u64>,
    /// Its time on its worker.
    took_us: Option<u64>,
    /// How many functions it imports from the edited module, if its shard is kept.
    functions: Option<u64>,
    instructions: Option<u64>,
}

impl Edit {
    pub(super) fn of(seen: &LinkDescription, number: usize) -> Self {
        let inspection = Inspection::of(&seen.output, &seen.modules, &seen.runs);
        let edited = &seen.modules[number].label;
        let labels = seen.modules.iter().map(|module| module.label.as_str());
        let numbers: HashMap<&str, usize> = labels.zip(0..).collect();
        let backend = |facts: &ModuleFacts| {
            let &ModuleFacts { ref label, cpu_us, took_us, .. } = facts;
            let taken = (label != edited)
                .then(|| counts(&shard_of(seen, *numbers.get(label.as_str())?)?, edited))
                .flatten();
            let (functions, instructions) = taken.unzip();
            EditedBackend { module: label.clone(), cpu_us, took_us, functions, instructions }
        };
        let mut backends: Vec<EditedBackend> = inspection.edit_runs(number).map(backend).collect();
        backends.sort_by_key(|one| (one.module != *edited, std::cmp::Reverse(one.cpu_us)));
        let took = backends.iter().filter_map(|one| one.took_us).collect();
        let jobs = seen.runs.iter().rev().find_map(|run| run.jobs).unwrap_or(1).max(1);
        Self {
            version: VERSION,
            module: edited.clone(),
            cpu_us: backends.iter().filter_map(|one| one.cpu_us).sum(),
            backends,
            wall_us: longest_first(took, jobs),
            jobs,
            linker_us: seen.runs.iter().rev().find(|run| run.exit_code == Some(0)).and_then(linker_time),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = counted(self.backends.len(), "backend");
        write!(out, "{}: an edit of it runs {runs}", printable(&self.module))?;
        let known = self.backends.iter().filter(|one| one.cpu_us.is_some()).count();
        match known {
            0 => write!(out, ", whose times no run has left")?,
            _ => {
                let (cpu, wall) = (human_us(self.cpu_us), human_us(self.wall_us));
                write!(out, ": {cpu} of processor time, about {wall} with {} at once", self.jobs)?;
            }
        }
        if (1..self.backends.len()).contains(&known) {
            write!(out, " (times are known of {known})")?;
        }
        match self.linker_us {
            Some(us) => writeln!(out, "; then the linker, which took {}", human_us(us))?,
            None => writeln!(out)?,
        }
        writeln!(
            out,
            "importers run if what they take from it changes; after the edit `distlto link --dry-run` says it exactly"
        )?;
        for EditedBackend { module, cpu_us, functions, instructions, .. } in self.backends.iter().take(SHOWN)
        {
            let takes = match (functions, instructions) {
                _ if *module == self.module => "  the module itself".to_owned(),
                (Some(functions), Some(instructions)) => {
                    let functions = counted(*functions, "function");
                    format!("  takes {functions} of {instructions} instructions from it")
                }
                _ => String::new(),
            };
            let took = cpu_us.map_or_else(|| "-".to_owned(), human_us);
            writeln!(out, "{took:>10}  {}{takes}", printable(module))?;
        }
        out.write_str(&more(self.backends.len()))
    }
}
