//! What the cache of results costs and saves: a cold link that fills it, a link that finds everything in it, and lookups.

use anyhow::{Context, Result, ensure};

use super::Tools;
use super::spans::Spans;
use crate::bench::measure::{Cost, Row, measure, middle, print};
use crate::bench::program::Program;
use crate::shell;

/// Measures and prints.
pub fn cache(program: &Program, tools: &Tools, runs: usize) -> Result<()> {
    const WAYS: [&str; 3] =
        ["cold, without a cache", "cold, filling a cache", "all in the cache, another output"];
    let mut rows: Vec<Row<'_>> = WAYS.iter().map(|&name| (name, Vec::new())).collect();
    let mut speeds = [Vec::new(), Vec::new()];
    for run in 0..runs {
        eprintln!("cache, {}: run {} of {runs}", program.name, run + 1);
        let outputs = ["uncached", "filling", "cached"].map(|way| tools.fresh(way, run));
        let store = tools.fresh("store", run);
        let traces = [1, 2].map(|way| program.dir.join(format!("{}.trace", outputs[way])));
        let with_trace = |way: usize| {
            let trace = traces[way - 1].to_str().context("the target directory's path is UTF-8")?;
            anyhow::Ok(tools.link(program, &outputs[way], &["--cache", &store, "--trace", trace]))
        };
        let mut ways = [tools.link(program, &outputs[0], &[]), with_trace(1)?, with_trace(2)?];
        let mut costs = [Cost::default(); 3];
        for (command, cost) in ways.iter_mut().zip(&mut costs) {
            *cost = measure(command)?;
        }
        for (trace, speeds) in traces.iter().zip(&mut speeds) {
            let lookups = Spans::of_trace(trace, "phase", Some("cache lookup"))?;
            speeds.push(lookups.count() as f64 / lookups.total());
        }
        let compiled = Spans::of_trace(&traces[1], "phase", Some("compile"));
        ensure!(compiled.is_err(), "a backend ran although the cache had them all");
        for output in &outputs {
            program.remove(output)?;
        }
        shell::remove(&program.dir.join(&store))?;
        for (row, cost) in rows.iter_mut().zip(&costs) {
            row.1.push((*cost, cost.relative_to(costs[0])));
        }
    }
    print(&format!("cache: {}", program.name), &rows);
    let [misses, hits] = speeds.map(middle);
    println!(
        "lookups a second on each worker, keys and copying included: {misses:.0} that miss, {hits:.0} that hit"
    );
    println!("aim: all in the cache <= 0.1 of cold");
    Ok(())
}
