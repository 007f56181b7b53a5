//! Answers about a link: its bound, the use of more workers, its hubs, its memory.
//!
//! A function of the known modules and of the records of runs. Times are those of each backend's last run, from its
//! beginning to its end on its worker. Estimates are of runs in which all backends run, each as long as then. So an estimate
//! for the workers of a run agrees with that run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::fmt;

use distlto_planner::graph::ActionKind;
use distlto_prepare::text::printable;
use serde::Serialize;

use crate::action::{ActionRecord, ActionStatus, OutputRecord};
use crate::progress::text::{counted, human_us, size};
use crate::report::Origin;
use crate::report::summary::{Summary, same_imports};
use crate::run::RunRecord;
use crate::why::{self, Change, ChangeKind};

/// The version of the JSON.
const VERSION: u32 = 1;
/// How many entries of a kind are shown.
const TOP: usize = 3;

/// The known facts of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    version: u32,
    /// The program.
    pub output: String,
    /// In link order.
    pub modules: Vec<ModuleFacts>,
    /// Whether the imports of each module are known.
    imports_known: bool,
    /// The time of the last run in which no backend ran, in microseconds.
    linker_us: Option<u64>,
    last_run: Option<LastRun>,
    /// The module with the most expensive edits in the recorded runs.
    costly: Option<Costly>,
    /// For 1, 2, 4, ... workers: how long the link would take if all backends ran, in microseconds.
    workers: Vec<(usize, u64)>,
}

/// A module of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleFacts {
    /// The module's label.
    pub label: String,
    /// Its instructions.
    pub own_instructions: u64,
    /// Those that it imports.
    pub imported_instructions: u64,
    /// The modules that it imports from, by their places in the list.
    pub imports: Vec<u32>,
    /// How many modules import from it.
    pub importers: u32,
    /// The processor time that its backend took last, in microseconds.
    pub cpu_us: Option<u64>,
    /// The time that its backend took last on its worker, in microseconds: with the checks, and with waits for a processor.
    pub took_us: Option<u64>,
    /// The most memory that it held, in bytes.
    pub peak_memory: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct LastRun {
    begun_ms: u64,
    wall_us: u64,
    exit_code: Option<u8>,
    jobs: Option<usize>,
    /// Backends that ran.
    ran: usize,
    /// Backends with a cache hit.
    cached: usize,
    /// Those that kept their object since they import the same, though shard or imports changed.
    same_imports: usize,
    /// Those that ran and wrote another object than before; absent where objects are not kept.
    changed: Option<usize>,
    /// The steps that followed each other, with their times: its longest chain.
    chain: Vec<(String, u64)>,
}

/// The cost of a module's edits, over several runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Costly {
    label: String,
    /// The runs after its edits.
    runs: usize,
    backends: usize,
    took_us: u64,
}

/// A module as a plan, a graph or a record knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownModule {
    /// The module's label.
    pub label: String,
    /// Its instructions.
    pub own_instructions: u64,
    /// Those that it imports.
    pub imported_instructions: u64,
    /// The modules that it imports from, by their places in the list; `None` where that is not known.
    pub imports: Option<Vec<u32>>,
}

impl ModuleFacts {
    /// Takes in what its backend took in a run, or when it made the object that was found.
    fn measured(&mut self, action: &ActionRecord) {
        let took = action.took;
        if action.kind != ActionKind::Opt {
        } else if action.result == ActionStatus::Done && took.origin == Origin::Ran {
            self.cpu_us = Some(took.cpu_us.unwrap_or(took.wall_us));
            self.took_us = action.end_us.map(|end| action.worked_us(end)).or(self.cpu_us);
            self.peak_memory = took.peak_memory.or(self.peak_memory);
        } else if self.cpu_us.is_none() {
            (self.cpu_us, self.took_us) = (took.spared_us, took.spared_us);
        }
    }
}

impl Inspection {
    /// Of a link's modules and the records of its runs, the oldest first.
    pub fn of(output: &str, known: &[KnownModule], runs: &[RunRecord]) -> Self {
        let numbers: HashMap<&str, u32> =
            known.iter().zip(0..).map(|(module, number)| (module.label.as_str(), number)).collect();
        let number = |label: &str| numbers.get(label).copied();
        let mut modules: Vec<ModuleFacts> = known
            .iter()
            .map(|module| ModuleFacts {
                label: module.label.clone(),
                own_instructions: module.own_instructions,
                imported_instructions: module.imported_instructions,
                imports: module
                    .imports
                    .iter()
                    .flatten()
                    .copied()
                    .filter(|&import| (import as usize) < known.len())
                    .collect(),
                importers: 0,
                cpu_us: None,
                took_us: None,
                peak_memory: None,
            })
            .collect();
        let mut importers = vec![0; modules.len()];
        for &import in modules.iter().flat_map(|module| &module.imports) {
            importers[import as usize] += 1;
        }
        for (module, importers) in modules.iter_mut().zip(importers) {
            module.importers = importers;
        }
        // The latest time counts.
        for action in runs.iter().flat_map(|run| &run.actions) {
            let Some(number) = number(&action.label) else { continue };
            modules[number as usize].measured(action);
        }
        let linker_us = runs.iter().rev().find(|run| run.exit_code == Some(0)).and_then(linker_time);
        Self {
            version: VERSION,
            output: output.to_owned(),
            workers: workers(&modules, linker_us.unwrap_or(0)),
            imports_known: known.iter().all(|module| module.imports.is_some()),
            modules,
            linker_us,
            last_run: runs.last().map(LastRun::of),
            costly: costly(runs),
        }
    }

    /// Returns the module itself and the modules that import from it: an edit of it runs these.
    pub fn edit_runs(&self, number: usize) -> impl Iterator<Item = &ModuleFacts> {
        let concerned = move |(at, module): &(usize, &ModuleFacts)| {
            *at == number || module.imports.iter().any(|&import| import as usize == number)
        };
        self.modules.iter().enumerate().filter(concerned).map(|(_, module)| module)
    }

    /// The numbers of modules and imports, and the last run with its longest chain.
    pub fn heading(&self) -> String {
        let imports: usize = self.modules.iter().map(|module| module.imports.len()).sum();
        let imports =
            if self.imports_known { counted(imports, "import") } else { "imports not known".to_owned() };
        let modules = counted(self.modules.len(), "module");
        let mut text = format!("{}: {modules}, {imports}\n", printable(&self.output));
        if let Some(run) = &self.last_run {
            let code = match run.exit_code {
                Some(0) | None => String::new(),
                Some(code) => format!(", failed with exit code {code}"),
            };
            let steps = run.chain.iter().map(|(name, us)| format!("{} {}", printable(name), human_us(*us)));
            let steps: Vec<String> = steps.collect();
            let chain = if steps.is_empty() {
                String::new()
            } else {
                format!("; its longest chain: {}", steps.join(", then "))
            };
            text.push_str(&format!("the last link took {}{code}{chain}\n", human_us(run.wall_us)));
            let cached = match run.cached {
                0 => String::new(),
                cached => format!(", caches had {}", counted(cached, "object")),
            };
            let changed = match run.changed {
                None => String::new(),
                Some(0) => ", no object differs from the one before".to_owned(),
                Some(changed) => format!(", the objects of {changed} differ from those before"),
            };
            text.push_str(&format!(
                "{} of {} ran{cached}{}{changed}\n",
                run.ran,
                counted(self.modules.len(), "backend"),
                same_imports(run.same_imports),
            ));
        }
        text
    }
}

/// Returns the time of a run in which no backend ran or waited for another run, in microseconds: that of the linker, its
/// driver and distlto. `None` if the run is that of a distributor, which sees nothing of its linker.
pub fn linker_time(run: &RunRecord) -> Option<u64> {
    let has_linker = run.started().any(|action| action.kind != ActionKind::Opt) || !run.phases.is_empty();
    let others = run.backends_us().saturating_add(run.waited.idle_us);
    has_linker.then(|| run.wall_us.saturating_sub(others))
}

/// Returns the backends that ran and wrote another object than before; `None` where no earlier object is known.
pub fn changed(run: &RunRecord) -> Option<Vec<&ActionRecord>> {
    let done: Vec<&ActionRecord> = run.done_backends().collect();
    let known =
        done.is_empty() || done.iter().any(|action| action.outputs.iter().any(|out| out.before.is_some()));
    let is_other = |out: &OutputRecord| out.before.is_some() && out.before != out.after;
    let changed = |action: &&ActionRecord| action.outputs.iter().any(is_other);
    known.then(|| done.into_iter().filter(changed).collect())
}

impl LastRun {
    fn of(run: &RunRecord) -> Self {
        let of = |origin| run.done_backends().filter(move |action| action.took.origin == origin).count();
        Self {
            begun_ms: run.begun_ms,
            wall_us: run.wall_us,
            exit_code: run.exit_code,
            jobs: run.jobs,
            ran: of(Origin::Ran),
            cached: of(Origin::Cache),
            same_imports: run.same_imports(),
            changed: changed(run).map(|changed| changed.len()),
            chain: Summary::of(run, run.wall_us)
                .critical_path
                .into_iter()
                .map(|(name, time)| (name, u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
                .collect(),
        }
    }
}

/// The module with the most expensive edits. Its own backend counts, and each that ran because this module had changed.
fn costly(runs: &[RunRecord]) -> Option<Costly> {
    let mut found: BTreeMap<&str, Costly> = BTreeMap::new();
    for run in runs {
        let mut seen = BTreeSet::new();
        for action in run.done_backends().filter(|action| action.took.origin == Origin::Ran) {
            let label = match why::main_reason(&action.why) {
                Some(Change { what: ChangeKind::Module, .. }) => action.label.as_str(),
                Some(Change { what: ChangeKind::Import, name: Some(name) }) => name.as_str(),
                _ => continue,
            };
            let costly = found.entry(label).or_insert_with(|| Costly {
                label: label.to_owned(),
                runs: 0,
                backends: 0,
                took_us: 0,
            });
            costly.runs += usize::from(seen.insert(label));
            costly.backends += 1;
            costly.took_us += action.worked_us(run.wall_us);
        }
    }
    found.into_values().max_by_key(|costly| costly.took_us)
}

/// How long the link takes with 1, 2, 4, ... workers, until more do not help. Empty where no time is known.
fn workers(modules: &[ModuleFacts], linker: u64) -> Vec<(usize, u64)> {
    let mut times: Vec<u64> = modules.iter().filter_map(|module| module.took_us).collect();
    // `longest_first` sorts again: sorted times take next to no time.
    times.sort_unstable_by(|a, b| b.cmp(a));
    let Some(&longest) = times.first() else { return Vec::new() };
    let mut found = Vec::new();
    let mut workers = 1;
    loop {
        let makespan = longest_first(times.clone(), workers);
        found.push((workers, makespan.saturating_add(linker)));
        if makespan <= longest || workers >= times.len() {
            return found;
        }
        workers *= 2;
    }
}

/// When the last of these ends if each of so many workers takes the longest that is left, whenever it is free. They do not
/// wait for each other, unlike the actions of a graph.
pub fn longest_first(mut times: Vec<u64>, workers: usize) -> u64 {
    times.sort_unstable_by(|a, b| b.cmp(a));
    let mut free: BinaryHeap<Reverse<u64>> = std::iter::repeat_n(Reverse(0), workers.max(1)).collect();
    for time in times {
        let Reverse(start) = free.pop().unwrap_or_default();
        free.push(Reverse(start.saturating_add(time)));
    }
    free.into_iter().map(|Reverse(end)| end).max().unwrap_or(0)
}

impl fmt::Display for Inspection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.heading())?;
        self.bound(out)?;
        if let Some(Costly { label, runs, backends, took_us }) = &self.costly {
            writeln!(
                out,
                "edits of {} have cost most: {} in {}, {}",
                printable(label),
                counted(*backends, "backend"),
                counted(*runs, "link"),
                human_us(*took_us)
            )?;
        }
        self.hubs(out)?;
        let heaviest = self.modules.iter().max_by_key(|module| module.peak_memory);
        if let Some((module, peak)) = heaviest.and_then(|module| Some((module, module.peak_memory?))) {
            writeln!(out, "memory: at most {} in one backend ({})", size(peak), printable(&module.label))?;
        }
        Ok(())
    }
}

impl Inspection {
    /// Writes the time by number of workers, and the backend that limits it.
    fn bound(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.modules.iter().filter(|module| module.took_us.is_some()).count();
        let longest = self.modules.iter().max_by_key(|module| module.took_us);
        let Some((longest, most)) = longest.and_then(|module| Some((module, module.took_us?))) else {
            return writeln!(out, "no link has left times of its backends");
        };
        if known < self.modules.len() {
            writeln!(out, "times are known of {known} of {}", counted(self.modules.len(), "backend"))?;
        }
        let took: u64 = self.modules.iter().filter_map(|module| module.took_us).sum();
        let list: Vec<String> =
            self.workers.iter().map(|(workers, us)| format!("{} with {workers}", human_us(*us))).collect();
        writeln!(out, "a link of everything by number of workers: {}", list.join(", "))?;
        writeln!(
            out,
            "more than {} would not help: {} alone takes {}, and the linker {}",
            counted(took.div_ceil(most.max(1)).max(1), "worker"),
            printable(&longest.label),
            human_us(most),
            self.linker_us.map_or_else(|| "an unknown time".to_owned(), human_us),
        )
    }

    /// The modules that most others import from.
    fn hubs(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hubs: Vec<usize> = (0..self.modules.len()).collect();
        hubs.sort_by_key(|&number| Reverse(self.modules[number].importers));
        for number in hubs.into_iter().take(TOP).filter(|&number| self.modules[number].importers > 0) {
            let ModuleFacts { label, importers, .. } = &self.modules[number];
            let runs: Vec<&ModuleFacts> = self.edit_runs(number).collect();
            let cost: u64 = runs.iter().filter_map(|module| module.took_us).sum();
            let cost = if cost > 0 { format!(", {}", human_us(cost)) } else { String::new() };
            writeln!(
                out,
                "{} import from {}: an edit of it may run {}{cost}",
                counted(*importers, "module"),
                printable(label),
                counted(runs.len(), "backend"),
            )?;
        }
        Ok(())
    }
}
