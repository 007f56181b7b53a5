//! The backends of one link by three schedulers: distlto's, distlto's with equal costs for all (which leaves the order of
//! the command line), and ninja's.
//!
//! All run the same commands, each as a process of its own. A run is held against its own jobs: the total over the slots,
//! or the longest, whichever is more.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Tools;
use super::spans::Spans;
use crate::bench::measure::{measure, middle};
use crate::bench::program::Program;
use crate::linked::with_store;
use crate::shell;

/// The way of running, and for each run: makespan and lower bound in seconds, the longest job's part of the bound.
type Row = (&'static str, Vec<[f64; 3]>);

/// Measures and prints.
pub fn makespan(program: &Program, tools: &Tools, runs: usize) -> Result<()> {
    let graphs = Graphs::new(program, tools)?;
    let mut rows: [Row; 3] =
        [("distlto run", Vec::new()), ("the same in command-line order", Vec::new()), ("ninja", Vec::new())];
    for run in 0..runs {
        eprintln!("makespan of {}: run {} of {runs}", program.name, run + 1);
        for place in 0..rows.len() {
            let way = (place + run) % rows.len();
            graphs.clean()?;
            let spans = match way {
                0 => graphs.run(tools, &graphs.file)?,
                1 => graphs.run(tools, &graphs.level)?,
                _ => graphs.ninja(tools)?,
            };
            ensure!(spans.count() == graphs.count, "{} of {} jobs ran", spans.count(), graphs.count);
            let bound = spans.lower_bound(tools.jobs);
            rows[way].1.push([spans.makespan(), bound, spans.longest() / bound]);
        }
    }
    println!(
        "\nbackends of {} ({} jobs), {} at a time, medians of {runs} runs",
        program.name, graphs.count, tools.jobs
    );
    println!("{:38} {:>10} {:>10} {:>8} {:>8}", "", "makespan s", "bound s", "ratio", "longest");
    for (name, runs) in rows {
        let median = |of: fn(&[f64; 3]) -> f64| middle(runs.iter().map(of).collect());
        let [makespan, bound, ratio, longest] =
            [median(|run| run[0]), median(|run| run[1]), median(|run| run[0] / run[1]), median(|run| run[2])];
        println!("{name:38} {makespan:10.3} {bound:10.3} {ratio:8.3} {longest:8.3}");
    }
    println!("aim: distlto's ratio <= 1.05; `longest` is the longest job over the bound");
    Ok(())
}

/// The backends of one link as files for each way.
struct Graphs {
    dir: PathBuf,
    file: PathBuf,
    /// The same with equal costs.
    level: PathBuf,
    ninja: PathBuf,
    objects: Vec<PathBuf>,
    count: usize,
}

impl Graphs {
    fn new(program: &Program, tools: &Tools) -> Result<Self> {
        let at = |name: &str| program.dir.join(name);
        shell::remove(&at("by-makespan.distlto"))?;
        let index = at("by-makespan.distlto/index");
        let mut command = Command::new(&tools.distlto);
        command.arg("index").arg("--index").arg(&index).arg("--").args(&program.words);
        measure(command.args(["-o", "by-makespan"]).current_dir(&program.dir))?;
        let mut graph: Value = serde_json::from_slice(&fs::read(index.join("graph.json"))?)?;
        let actions = graph["actions"].as_array_mut().context("a graph has actions")?;
        actions.retain(|action| action["kind"] == "opt");
        let count = actions.len();
        let (file, level, ninja) = (at("makespan-opt.json"), at("makespan-level.json"), at("makespan.ninja"));
        fs::write(&file, serde_json::to_vec(&graph)?)?;
        let (text, objects) = ninja_file(&graph)?;
        fs::write(&ninja, text)?;
        for action in graph["actions"].as_array_mut().context("a graph has actions")? {
            action["cost"] = 1.into();
        }
        fs::write(&level, serde_json::to_vec(&graph)?)?;
        let objects = objects.iter().map(|object| program.dir.join(object)).collect();
        Ok(Self { dir: program.dir.clone(), file, level, ninja, objects, count })
    }

    /// Removes what a run leaves, so that the next one runs all and knows of none.
    fn clean(&self) -> Result<()> {
        self.objects.iter().try_for_each(|object| shell::remove(object))?;
        shell::remove(&self.cache())?;
        [".ninja_log", ".ninja_deps"].iter().try_for_each(|name| shell::remove(&self.ninja_dir().join(name)))
    }

    fn run(&self, tools: &Tools, graph: &Path) -> Result<Spans> {
        let trace = self.dir.join("makespan-trace.json");
        let mut command = Command::new(&tools.distlto);
        command.args(["run", "-j", &tools.jobs.to_string(), "--trace"]).arg(&trace).arg(graph);
        with_store(&mut command, &self.cache());
        measure(command.current_dir(&self.dir))?;
        Spans::of_trace(&trace, "opt", None)
    }

    fn cache(&self) -> PathBuf {
        self.dir.join("makespan-cache")
    }

    fn ninja_dir(&self) -> PathBuf {
        self.dir.join("makespan-ninja")
    }

    fn ninja(&self, tools: &Tools) -> Result<Spans> {
        let mut command = Command::new("ninja");
        command.arg("-f").arg(&self.ninja).args(["--quiet", "-j", &tools.jobs.to_string()]);
        measure(command.current_dir(&self.dir))?;
        Spans::of_ninja_log(&self.ninja_dir().join(".ninja_log"))
    }
}

/// A file for ninja that runs the commands as they are, in the graph's order; and what they write.
fn ninja_file(graph: &Value) -> Result<(String, Vec<String>)> {
    let words_at = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let files = words_at(&graph["files"]);
    let escaped = |text: &str| text.replace('$', "$$");
    let mut text = "builddir = makespan-ninja\nrule run\n  command = $words\n".to_owned();
    let mut outputs = Vec::new();
    for action in graph["actions"].as_array().context("a graph has actions")? {
        let prefix = action["prefix"].as_u64().map(|prefix| &graph["prefixes"][prefix as usize]);
        let mut words = prefix.map(words_at).unwrap_or_default();
        words.extend(words_at(&action["args"]));
        let line = shlex::try_join(words.iter().map(String::as_str))?;
        let output = action["outputs"][0].as_u64().and_then(|file| files.get(file as usize));
        let output = output.context("an action has an output")?;
        let place = escaped(output).replace(' ', "$ ").replace(':', "$:");
        writeln!(text, "build {place}: run\n  words = {}", escaped(&line))?;
        outputs.push(output.clone());
    }
    Ok((text, outputs))
}
