//! `cargo xtask bench dtlto`: lld's DTLTO with three distributors, and what a job costs besides its compiler.
//!
//! Two programs: libgit2's, of many small modules, and zstd's library, a few modules of which take most of the time and
//! come last on the link line. The ways take turns within each run; ratios are against the serial script of the same run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::measure::{Cost, Row, measure, median, print};
use super::program::{self, Program};
use super::{buck2, machine};
use crate::linked::with_store;
use crate::{setup, shell};

/// Measures `runs` times and prints the tables.
pub fn dtlto(runs: usize, jobs: Option<usize>) -> Result<()> {
    setup::programs()?;
    let runs = runs.max(1);
    let jobs = jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let tools = Tools { distlto: shell::distlto()?, own: buck2::floor()?, jobs };
    let programs = [program::libgit2()?, program::zstd()?];
    println!("links by DTLTO, {jobs} jobs, medians of {runs} runs, {}", machine());
    for program in &programs {
        links(program, &tools, runs)?;
    }
    overhead(&programs[0], &tools, runs)
}

struct Tools {
    distlto: PathBuf,
    /// A release build of this program, for its scripts.
    own: PathBuf,
    jobs: usize,
}

fn links(program: &Program, tools: &Tools, runs: usize) -> Result<()> {
    let jobs = tools.jobs.to_string();
    let distribute = tools.distlto.with_file_name("distlto-distribute");
    let ours = format!("-j{jobs}");
    let handed = |distributor: &Path, arguments: &str, output: &str| {
        let mut command = program.link(&program.words[0], output);
        command.arg(format!("-fthinlto-distributor={}", distributor.display()));
        command.arg(format!("-Xthinlto-distributor={arguments}"));
        command
    };
    let mut ways = [
        ("serial script", handed(&tools.own, "distribute,1", "by-serial")),
        ("simple parallel script", handed(&tools.own, &format!("distribute,{jobs}"), "by-parallel")),
        ("distlto-distribute", handed(&distribute, &ours, "by-distribute")),
        ("distlto link", {
            let mut command = Command::new(&tools.distlto);
            command.args(["link", "-j", &jobs, "--"]).args(&program.words);
            command.args(["-o", "by-link"]).current_dir(&program.dir);
            with_store(&mut command, &program.state("by-link"));
            command
        }),
        ("in-process ThinLTO", {
            let mut command = program.link(&program.words[0], "by-linker");
            command.arg(format!("-Wl,--thinlto-jobs={jobs}"));
            command
        }),
    ];
    let mut rows: Vec<Row<'_>> = ways.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for run in 0..runs {
        eprintln!("{}: run {} of {runs}", program.name, run + 1);
        let mut costs = vec![Cost::default(); ways.len()];
        for place in 0..ways.len() {
            // Whoever comes first finds the machine busy with what was before, so the first place goes round.
            let way = (place + run) % ways.len();
            shell::remove(&program.dir.join("by-link.distlto"))?;
            costs[way] = measure(&mut ways[way].1)?;
        }
        for (row, cost) in rows.iter_mut().zip(&costs) {
            row.1.push((*cost, cost.relative_to(costs[0])));
        }
    }
    print(&program.name, &rows);
    Ok(())
}

/// The jobs of one link alone, one at a time: by the serial script and by distlto-distribute, with clang and with a
/// compiler that does nothing.
fn overhead(program: &Program, tools: &Tools, runs: usize) -> Result<()> {
    let saved = Saved::new(program, tools)?;
    let distribute = tools.distlto.with_file_name("distlto-distribute");
    let script = |file: &Path| {
        let mut command = Command::new(&tools.own);
        command.args(["distribute", "1"]).arg(file).current_dir(&program.dir);
        command
    };
    let ours = |file: &Path| {
        let mut command = Command::new(&distribute);
        command.arg("-j1").arg(file).current_dir(&program.dir);
        command
    };
    let mut ways = [
        ("clang: serial script", script(&saved.file), None),
        ("clang: distlto-distribute -j1", ours(&saved.file), Some(0)),
        ("copying: serial script", script(&saved.pretended), None),
        ("copying: distlto-distribute -j1", ours(&saved.pretended), Some(2)),
    ];
    let mut rows = vec![Vec::new(); ways.len()];
    for run in 0..runs {
        eprintln!("jobs of {}: run {} of {runs}", program.name, run + 1);
        for ((_, command, _), costs) in ways.iter_mut().zip(&mut rows) {
            costs.push(measure(command)?);
        }
    }
    let jobs = saved.jobs as f64;
    let head = format!("its {jobs} jobs one by one, ms a job");
    println!("\n{head:46} {:>8} {:>12} {:>8} {:>12}", "wall", "over script", "cpu", "over script");
    let each = |costs: &[Cost]| {
        let cost = median(costs);
        (cost.wall / jobs * 1000.0, cost.cpu / jobs * 1000.0)
    };
    for ((name, _, base), costs) in ways.iter().zip(&rows) {
        let (wall, cpu) = each(costs);
        let over = base.map(|base: usize| each(&rows[base])).map_or_else(Default::default, |script| {
            [wall - script.0, cpu - script.1].map(|over| format!("{over:+.2}"))
        });
        let [over_wall, over_cpu] = over;
        println!("{name:46} {wall:8.2} {over_wall:>12} {cpu:8.2} {over_cpu:>12}");
    }
    println!("aim: less than 2 ms a job over the script");
    Ok(())
}

/// The job file of a link with its shards, and the same with a compiler that copies the objects of that link.
struct Saved {
    file: PathBuf,
    pretended: PathBuf,
    jobs: usize,
}

impl Saved {
    fn new(program: &Program, tools: &Tools) -> Result<Self> {
        let dir = program.dir.join("jobs");
        shell::remove(&dir)?;
        fs::create_dir(&dir)?;
        let mut command = program.link(&program.words[0], "jobs/program");
        command.arg(format!("-fthinlto-distributor={}", tools.own.display()));
        command.arg(format!("-Xthinlto-distributor=distribute,{}", tools.jobs)).arg("-Wl,--save-temps");
        shell::quietly(&mut command)?;
        let pattern = dir.join("*.dist-file.json");
        let found = glob::glob(pattern.to_str().context("the target directory's path is UTF-8")?)?.next();
        let file = found.context("lld kept no job file")??;
        let mut text: Value = serde_json::from_slice(&fs::read(&file)?)?;
        let (made, pretended) = (dir.join("made"), dir.join("pretended.json"));
        fs::create_dir(&made)?;
        let jobs = text["jobs"].as_array().context("no jobs")?;
        for job in jobs {
            let object = Path::new(job["outputs"][0].as_str().context("no output")?);
            fs::copy(program.dir.join(object), made.join(object.file_name().context("no name")?))?;
        }
        let jobs = jobs.len();
        let arguments = text["common"]["args"].as_array_mut().context("no arguments")?;
        let own = [&tools.own, Path::new("pretend"), &made].map(|word| Value::from(word.to_string_lossy()));
        arguments.splice(..1, own);
        fs::write(&pretended, serde_json::to_vec(&text)?)?;
        Ok(Self { file, pretended, jobs })
    }
}

/// Writes the object that a compiler has made before, by its name.
pub fn pretend(made: &Path, words: &[String]) -> Result<bool> {
    let Some(at) = words.iter().position(|word| word == "-o") else { return Ok(false) };
    let output = Path::new(words.get(at + 1).context("-o without an output")?);
    ensure!(!words.iter().any(|word| word == "-###"), "this compiler has nothing to tell");
    fs::copy(made.join(output.file_name().context("no name")?), output)?;
    Ok(true)
}
