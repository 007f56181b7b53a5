//! A summary of a graph for people before it runs: modules, imports, costs, and how well it spreads over workers.
//!
//! Pure: the same graph gives the same text. Costs are the relative ones of the actions; no time is
//! measured or preview.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use super::{Action, ActionGraph, ActionId, BackendWork};

/// How a list of numbers is spread. All 0 for an empty list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    /// The sum, saturating.
    pub total: u64,
    /// The smallest number that at least half of them do not exceed.
    pub median: u64,
    /// The smallest number that at least nine tenths of them do not exceed.
    pub ninth_decile: u64,
    /// The largest.
    pub max: u64,
}

impl Spread {
    /// The spread of these numbers.
    pub fn of(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        let quantile = |tenths: usize| {
            let rank = (numbers.len() * tenths).div_ceil(10);
            numbers.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        let total = numbers.iter().fold(0_u64, |sum, &number| sum.saturating_add(number));
        Self { total, median: quantile(5), ninth_decile: quantile(9), max: quantile(10) }
    }
}

/// Numbers about a graph; its [`fmt::Display`] is the text of `distlto-plan --summary`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphSummary {
    /// How many actions there are of each kind, in the order of [`super::ActionKind::ALL`].
    pub actions: [usize; 4],
    /// Files that some action names.
    pub files: usize,
    /// Modules that each backend compilation imports from.
    pub imports: Spread,
    /// The compilation with the most imports, the first of them in canonical order.
    pub most_imports: Option<String>,
    /// Costs of the backend compilations.
    pub cost: Spread,
    /// The costliest compilation, the first of them in canonical order.
    pub costliest: Option<String>,
    /// The cost of the costliest chain of actions that wait for each other in turn.
    pub critical_path: u64,
    /// The actions of that chain that have a cost.
    pub critical_actions: Vec<String>,
    /// For 1, 2, 4, 8, ... workers: when the last action ends, in units of cost. Ends at the first number
    /// of workers that reaches the critical path, or that no action would be left for.
    pub makespans: Vec<(usize, u64)>,
}

impl GraphSummary {
    /// The numbers of a graph.
    pub fn of(graph: &ActionGraph) -> Self {
        let graph = graph.canonical();
        let mut actions = [0; 4];
        for (_, action) in graph.actions() {
            actions[action.kind() as usize] += 1;
        }
        let backend = |(_, action)| Some((action, Action::backend(action)?));
        let opts: Vec<(&Action, &BackendWork)> = graph.actions().filter_map(backend).collect();
        let imports: Vec<u64> = opts.iter().map(|(_, backend)| backend.imports.len() as u64).collect();
        let costs: Vec<u64> = opts.iter().map(|(action, _)| action.cost).collect();
        let first_of_largest = |numbers: &[u64]| {
            let index = (0..numbers.len()).min_by_key(|&index| Reverse(numbers[index]))?;
            Some(opts[index].0.label.clone())
        };
        let (critical_path, critical_actions) = critical_path(&graph);
        let mut makespans = Vec::new();
        let mut workers = 1;
        loop {
            let makespan = makespan(&graph, workers);
            makespans.push((workers, makespan));
            if makespan <= critical_path || workers >= opts.len() {
                break;
            }
            workers *= 2;
        }
        Self {
            actions,
            files: graph.files().len(),
            most_imports: first_of_largest(&imports),
            imports: Spread::of(imports),
            costliest: first_of_largest(&costs),
            cost: Spread::of(costs),
            critical_path,
            critical_actions,
            makespans,
        }
    }
}

/// The costliest chain of actions and its cost.
fn critical_path(graph: &ActionGraph) -> (u64, Vec<String>) {
    let costs = graph.critical_path_costs();
    let costliest = |ids: &mut dyn Iterator<Item = ActionId>| ids.min_by_key(|id| Reverse(costs[id.index()]));
    let start = costliest(&mut graph.topological());
    let mut labels = Vec::new();
    let mut at = start;
    while let Some(id) = at {
        if graph.action(id).cost > 0 {
            labels.push(graph.action(id).label.clone());
        }
        at = costliest(&mut graph.dependents(id).into_iter());
    }
    (start.map_or(0, |id| costs[id.index()]), labels)
}

/// When the last action ends if `workers` workers (at least one) each take, whenever they are free, the ready
/// action with the costliest chain behind it.
pub fn makespan(graph: &ActionGraph, workers: usize) -> u64 {
    let priorities = graph.critical_path_costs();
    let ready_entry = |id: ActionId| (priorities[id.index()], Reverse(id));
    let mut missing: Vec<usize> = graph.topological().map(|id| graph.dependencies(id).len()).collect();
    let mut ready: BinaryHeap<_> =
        graph.topological().filter(|id| missing[id.index()] == 0).map(ready_entry).collect();
    let mut running = BinaryHeap::new();
    let mut now = 0_u64;
    loop {
        while running.len() < workers.max(1) {
            let Some((_, Reverse(id))) = ready.pop() else { break };
            running.push(Reverse((now.saturating_add(graph.action(id).cost), id)));
        }
        let Some(Reverse((end, id))) = running.pop() else { return now };
        now = end;
        for next in graph.dependents(id) {
            missing[next.index()] -= 1;
            if missing[next.index()] == 0 {
                ready.push(ready_entry(next));
            }
        }
    }
}

impl fmt::Display for GraphSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [prepare, thin_link, opt, link] = self.actions;
        writeln!(f, "actions        {prepare} prepare, {thin_link} thin link, {opt} opt, {link} link")?;
        writeln!(f, "files          {}", self.files)?;
        writeln!(f, "modules        {opt}")?;
        let Spread { total, median, max, .. } = self.imports;
        write!(f, "imports        {total} total, {median} median, {max} max")?;
        writeln!(f, "{}", named(max, &self.most_imports))?;
        let Spread { total, median, ninth_decile, max } = self.cost;
        write!(
            f,
            "cost           {total} total, {median} median, {ninth_decile} 90th percentile, {max} max"
        )?;
        writeln!(f, "{}", named(max, &self.costliest))?;
        write!(f, "critical path  {}", self.critical_path)?;
        writeln!(f, "{}", named(self.critical_path, &Some(self.critical_actions.join(" -> "))))?;
        writeln!(f, "largest first  workers      makespan   speedup")?;
        for &(workers, makespan) in &self.makespans {
            let (whole, hundredths) = ratio(self.makespans[0].1, makespan);
            writeln!(f, "               {workers:>7} {makespan:>13} {whole:>6}.{hundredths:02}")?;
        }
        Ok(())
    }
}

fn named(max: u64, label: &Option<String>) -> String {
    match label {
        Some(label) if max > 0 => format!(" ({label})"),
        _ => String::new(),
    }
}

/// `a / b` as a whole number and hundredths, rounded down; 1 where nothing has a cost.
fn ratio(a: u64, b: u64) -> (u128, u128) {
    if b == 0 {
        return (1, 0);
    }
    let hundredths = u128::from(a) * 100 / u128::from(b);
    (hundredths / 100, hundredths % 100)
}
