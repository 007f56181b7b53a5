//! `cargo xtask bench link`: what a link of libgit2's program costs, for each way of linking, as ratios.
//!
//! Compiling is not measured. The ways take turns within each run, so that a busy machine weighs on all of them, and every
//! edit is one that no cache has seen. The ratios are against in-process ThinLTO of the same run.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::machine;
use super::measure::{Cost, measure, median};
use crate::libgit2::Libgit2;
use crate::{setup, shell};

/// One line of the table: its name, the aim for its wall ratio, and a cost per run.
struct Row {
    name: &'static str,
    aim: &'static str,
    costs: Vec<(Cost, Cost)>,
}

const ROWS: [(&str, &str); 9] = [
    ("in-process ThinLTO", ""),
    ("lld DTLTO, parallel distributor", ""),
    ("in-process with a cache: cold", ""),
    ("in-process with a cache: no-op", ""),
    ("in-process with a cache: one edit", ""),
    ("distlto link: cold", "<= 1.15"),
    ("distlto link: no-op", "<= 0.05"),
    ("distlto link: one edit", "< in-process with a cache"),
    ("in-process ThinLTO: one edit", ""),
];

/// Measures `runs` times and prints the table.
pub fn link(runs: usize, jobs: Option<usize>) -> Result<()> {
    setup::setup(&[])?;
    let jobs = jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let distlto = shell::distlto()?;
    let program = Libgit2::copy_to(&shell::target().join("bench"))?;
    program.restore()?;
    program.configure(&[])?;
    program.compile()?;
    let bench = Bench { jobs, distlto, words: program.link_words()?, dir: program.build.clone() };
    let mut rows: Vec<Row> = ROWS.iter().map(|&(name, aim)| Row { name, aim, costs: Vec::new() }).collect();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.subsec_nanos()) | 1;
    for number in 0..runs {
        eprintln!("run {} of {runs}", number + 1);
        let costs = bench.once(&program, number, seed.wrapping_mul(2 * number as u32 + 1))?;
        for (row, cost) in rows.iter_mut().zip(costs) {
            row.costs.push((cost, cost.relative_to(costs[0])));
        }
    }
    print(&rows, runs, jobs);
    Ok(())
}

struct Bench {
    jobs: usize,
    distlto: PathBuf,
    words: Vec<String>,
    dir: PathBuf,
}

impl Bench {
    /// All measurements of one run, in the order of `ROWS`.
    fn once(&self, program: &Libgit2, number: usize, variant: u32) -> Result<[Cost; 9]> {
        for name in [
            "bench-plain",
            "bench-dtlto",
            "bench-cached",
            "bench-distlto",
            "bench-distlto.distlto",
            "bench-cache",
        ] {
            shell::remove(&self.dir.join(name))?;
        }
        let mut cold_ways = [self.plain(), self.distributed(), self.dtlto()?, self.cached()];
        let mut costs = [Cost::default(); 4];
        for place in 0..4 {
            // Whoever comes first finds the machine busy with what was before, so the first place goes round.
            let way = (place + number) % 4;
            costs[way] = measure(&mut cold_ways[way])?;
        }
        let [plain, cold, dtlto, cache_cold] = costs;
        let no_op = measure(&mut self.distributed())?;
        let cache_no_op = measure(&mut self.cached())?;
        program.edit(variant)?;
        program.compile()?;
        let edit = measure(&mut self.distributed())?;
        let cache_edit = measure(&mut self.cached())?;
        let plain_edit = measure(&mut self.plain())?;
        Ok([plain, dtlto, cache_cold, cache_no_op, cache_edit, cold, no_op, edit, plain_edit])
    }

    fn plain(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(replace_output(&self.words[1..], "bench-plain"));
        command.arg(format!("-Wl,--thinlto-jobs={}", self.jobs)).current_dir(&self.dir);
        command
    }

    fn cached(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(replace_output(&self.words[1..], "bench-cached"));
        command.arg(format!("-Wl,--thinlto-jobs={}", self.jobs)).arg("-Wl,--thinlto-cache-dir=bench-cache");
        command.current_dir(&self.dir);
        command
    }

    fn dtlto(&self) -> Result<Command> {
        let mut command = self.plain();
        command.arg(format!("-fthinlto-distributor={}", env::current_exe()?.display()));
        command.arg(format!("-Xthinlto-distributor=distribute,{}", self.jobs)).args(["-o", "bench-dtlto"]);
        Ok(command)
    }

    fn distributed(&self) -> Command {
        let mut command = Command::new(&self.distlto);
        command.args(["link", "-j", &self.jobs.to_string(), "--", &self.words[0]]);
        command.args(replace_output(&self.words[1..], "bench-distlto")).current_dir(&self.dir);
        command
    }
}

fn replace_output(words: &[String], output: &str) -> Vec<String> {
    let mut words = words.to_vec();
    if let Some(place) = words.iter().position(|word| word == "-o") {
        words[place + 1] = output.to_owned();
    }
    words
}

fn print(rows: &[Row], runs: usize, jobs: usize) {
    println!("link of libgit2's git2 (232 modules), {jobs} jobs, medians of {runs} runs, {}", machine());
    println!("{:34} {:>9} {:>9} {:>8} {:>8}  aim (wall ratio)", "", "wall s", "cpu s", "wall x", "cpu x");
    for row in rows {
        let (costs, ratios): (Vec<_>, Vec<_>) = row.costs.iter().copied().unzip();
        let (cost, ratio) = (median(&costs), median(&ratios));
        println!(
            "{:34} {:9.3} {:9.2} {:8.3} {:8.3}  {}",
            row.name, cost.wall, cost.cpu, ratio.wall, ratio.cpu, row.aim
        );
    }
}
