//! A cold link with warm compilers, with plain ones, and by the linker alone; objects of the first two are compared.

use std::path::Path;

use anyhow::{Result, ensure};

use super::Tools;
use crate::bench::measure::{Cost, Row, measure, print};
use crate::bench::program::Program;
use crate::linked::objects;

/// Measures and prints.
pub fn warm(program: &Program, tools: &Tools, runs: usize) -> Result<()> {
    const WAYS: [&str; 3] = ["in-process ThinLTO", "distlto link, warm compilers", "distlto link --no-warm"];
    let mut rows: Vec<Row<'_>> = WAYS.iter().map(|&name| (name, Vec::new())).collect();
    let mut compared = 0;
    for run in 0..runs {
        eprintln!("warm compilers, {}: run {} of {runs}", program.name, run + 1);
        let outputs = ["linker", "warm", "plain"].map(|way| tools.fresh(way, run));
        let mut in_process = program.link(&program.words[0], &outputs[0]);
        in_process.arg(format!("-Wl,--thinlto-jobs={}", tools.jobs));
        let warm = tools.link(program, &outputs[1], &[]);
        let plain = tools.link(program, &outputs[2], &["--no-warm"]);
        let mut ways = [in_process, warm, plain];
        let mut costs = [Cost::default(); 3];
        for place in 0..ways.len() {
            // Whoever comes first finds the machine busy with what was before, so the first place goes round.
            let way = (place + run) % ways.len();
            costs[way] = measure(&mut ways[way])?;
        }
        compared += compare(&program.dir, &outputs[1], &outputs[2])?;
        for output in &outputs {
            program.remove(output)?;
        }
        for (row, cost) in rows.iter_mut().zip(&costs) {
            row.1.push((*cost, cost.relative_to(costs[0])));
        }
    }
    print(&format!("cold link: {}", program.name), &rows);
    println!(
        "{compared} objects of warm compilers compared with those of plain ones: all identical; aim: wall <= 1.08"
    );
    Ok(())
}

/// Compares the objects of two links; gives how many there are.
fn compare(dir: &Path, one: &str, other: &str) -> Result<usize> {
    let [one, other] = [one, other].map(|output| objects(&dir.join(format!("{output}.distlto"))));
    let (one, other) = (one?, other?);
    ensure!(!one.is_empty() && one == other, "objects differ between warm and plain compilers");
    Ok(one.len())
}
