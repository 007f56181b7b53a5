//! `cargo xtask bench link`: what links of real programs cost, for each way of linking, as ratios to the linker alone.
//!
//! Compiling is not measured. The ways take turns within each run, so that a busy machine weighs on all of them, and every
//! edit is one that no cache has seen. A program is measured only if it is lld's byte for byte and its tests pass.

pub mod subject;
mod ways;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::machine;
use super::measure::{Cost, Row, measure, measure_tree, middle, print};
use crate::compare::compare;
use crate::project::Edit;
use crate::{setup, shell};
pub use subject::Name;
use subject::Subject;
use ways::{COLD, Step, Way, Ways};

/// What to measure.
pub struct Request {
    /// Which programs.
    pub programs: Vec<Name>,
    /// How often; medians are shown.
    pub runs: usize,
    /// Jobs at a time, for every way; the number of processors where absent.
    pub jobs: Option<usize>,
    /// Where the raw figures are written.
    pub json: Option<PathBuf>,
}

/// What is measured after the cold links.
const STEPS: [(Step, Option<Edit>); 3] =
    [(Step::Nothing, None), (Step::Leaf, Some(Edit::Leaf)), (Step::Wide, Some(Edit::Wide))];

/// Checks and measures each program, and prints a table for it.
pub fn link(request: &Request) -> Result<()> {
    setup::programs()?;
    let jobs = request.jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let runs = request.runs.max(1);
    let distlto = shell::distlto()?;
    println!("links, {jobs} jobs, medians of {runs} runs, {}", machine());
    let (mut figures, mut measured) = (Vec::new(), Vec::new());
    for name in &request.programs {
        let subject = Subject::new(*name)?;
        let linked = compare(&subject.program, &distlto, jobs)?;
        subject.check(&linked)?;
        let bench = Bench { ways: Ways::new(&subject.program, &distlto, jobs)?, subject };
        let rows = bench.rows(runs)?;
        print(&bench.subject.program.name, &rows);
        aims(&rows);
        figures.push(raw(&bench.subject.program.name, &rows));
        if let Some(file) = &request.json {
            write(file, &json!({ "machine": machine(), "jobs": jobs, "programs": figures }))?;
        }
        measured.push(bench);
    }
    measured.iter().try_for_each(|bench| bench.ways.remove())
}

struct Bench<'a> {
    ways: Ways<'a>,
    subject: Subject,
}

impl Bench<'_> {
    fn rows(&self, runs: usize) -> Result<Vec<Row<'static>>> {
        let mut rows: Vec<Row<'static>> = Vec::new();
        let memory = COLD.map(|way| self.peak(way)).into_iter().collect::<Result<Vec<_>>>()?;
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.subsec_nanos()) | 1;
        for run in 0..runs {
            eprintln!("{}: run {} of {runs}", self.subject.program.name, run + 1);
            let costs = self.once(run, seed.wrapping_mul(2 * run as u32 + 1), &memory)?;
            let base = costs[0].1;
            for (place, (name, cost)) in costs.into_iter().enumerate() {
                if rows.len() <= place {
                    rows.push((name, Vec::new()));
                }
                rows[place].1.push((cost, cost.relative_to(base)));
            }
        }
        Ok(rows)
    }

    /// The most memory that all processes of a cold link hold together. Looking takes time, so that link is not timed.
    fn peak(&self, way: Way) -> Result<f64> {
        self.ways.begin_from_nothing();
        measure_tree(&mut self.ways.command(way))
    }

    /// All measurements of one run, the linker alone first.
    fn once(&self, run: usize, variant: u32, memory: &[f64]) -> Result<Vec<(&'static str, Cost)>> {
        self.subject.restore()?;
        self.ways.begin_from_nothing();
        let mut cold = vec![Cost::default(); COLD.len()];
        for place in 0..COLD.len() {
            // Whoever comes first finds the machine busy with what was before, so the first place goes round.
            let at = (place + run) % COLD.len();
            cold[at] = measure(&mut self.ways.command(COLD[at]))?;
            cold[at].memory = memory[at];
        }
        let mut costs: Vec<_> = COLD.iter().map(|way| way.cold_name()).zip(cold).collect();
        for (number, (step, edit)) in STEPS.into_iter().enumerate() {
            if let Some(edit) = edit {
                self.subject.edit(edit, variant.wrapping_add(number as u32))?;
            }
            let mut of_step = Vec::new();
            for way in turned(Way::AGAIN, run) {
                of_step.push((way, measure(&mut self.ways.command(way))?));
            }
            of_step.sort_by_key(|(way, _)| *way);
            costs.extend(of_step.into_iter().map(|(way, cost)| (way.step_name(step), cost)));
        }
        self.subject.restore()?;
        Ok(costs)
    }
}

/// The ways in an order that goes round.
fn turned<const N: usize>(mut ways: [Way; N], run: usize) -> [Way; N] {
    ways.rotate_left(run % N);
    ways
}

/// What is aimed at, and what was reached: medians of the runs' own ratios.
fn aims(rows: &[Row<'_>]) {
    let ratio = |ours: &str, theirs: &str, part: fn(&Cost) -> f64| {
        let of = |name: &str| rows.iter().find(|(row, _)| *row == name).map(|(_, costs)| costs);
        let pairs = of(ours)?.iter().zip(of(theirs)?);
        Some(middle(pairs.map(|((ours, _), (theirs, _))| part(ours) / part(theirs)).collect()))
    };
    let ours = Way::Distlto;
    for (ours, theirs, aim) in [
        (ours.cold_name(), Way::InProcess.cold_name(), "aim <= 0.98; of 2000 small modules <= 1.8"),
        (ours.step_name(Step::Leaf), Way::Cached.step_name(Step::Leaf), "aim <= 1"),
        (ours.step_name(Step::Leaf), Way::HandOver.step_name(Step::Leaf), "the rest is the link of objects"),
    ] {
        if let (Some(wall), Some(cpu)) =
            (ratio(ours, theirs, |cost| cost.wall), ratio(ours, theirs, |cost| cost.cpu))
        {
            println!("{ours} / {theirs}: wall {wall:.3}, cpu {cpu:.3} ({aim})");
        }
    }
}

fn raw(program: &str, rows: &[Row<'_>]) -> Value {
    let rows = rows.iter().map(|(name, costs)| {
        let runs = costs
            .iter()
            .map(|(cost, _)| json!({ "wall": cost.wall, "cpu": cost.cpu, "memory_mib": cost.memory }));
        json!({ "way": name, "runs": runs.collect::<Vec<_>>() })
    });
    json!({ "program": program, "rows": rows.collect::<Vec<_>>() })
}

fn write(file: &Path, figures: &Value) -> Result<()> {
    fs::write(file, format!("{figures:#}\n")).with_context(|| format!("cannot write {}", file.display()))
}
