//! `cargo xtask bench report`: the page of a link that is larger than any here, made up: its size, when its first answer is on the
//! screen, how long it takes over what a person does; and time and memory of `distlto inspect` and `report`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::json;

use super::machine;
use super::measure::measure;
use crate::install;
use crate::shell::{cargo, quietly, remove, target};

/// Slots of the run.
const LANES: usize = 64;

/// Makes the link and measures.
pub fn report(modules: usize, imports: usize, debug: bool) -> Result<()> {
    let folder = target().join("bench-report");
    remove(&folder)?;
    let state = folder.join("app.distlto");
    fs::create_dir_all(state.join("runs"))?;
    graph(&state.join("link-graph.json"), modules, imports)?;
    for (second, name) in [(1, "20261122T100000.000Z-1.json"), (2, "20261122T110000.000Z-2.json")] {
        record(&state.join("runs").join(name), modules, second)?;
    }
    let program = install::build(debug)?.join("distlto");
    println!("a link of {modules} modules and {} imports, {}", modules * imports, machine());
    for words in [&["inspect", "app"][..], &["report", "app"]] {
        let cost = measure(Command::new(&program).args(words).current_dir(&folder))?;
        println!("{:36} {:7.2} s, {:.0} MiB", format!("distlto {}", words[0]), cost.wall, cost.memory);
    }
    let page = folder.join("report.html");
    println!("{:36} {:7.1} MB", "the page", fs::metadata(&page)?.len() as f64 / 1e6);
    let mut browser = cargo();
    browser.args(["run", "--quiet", "--package", "distlto-tests", "--bin", "distlto-page", "--"]);
    quietly(browser.arg(&page))
}

fn name(module: usize) -> String {
    format!("out/part{}/lib{}/unit{module}.o", module / 5000, module / 100)
}

/// Who imports from whom: most from near by, some from anywhere, many from a few hubs.
fn imports_of(module: usize, modules: usize, imports: usize, numbers: &mut Rng) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    while found.len() < imports.min(modules - 1) {
        let other = match numbers.u64(..10) {
            0..6 => (module + modules - 300 + numbers.u64(..600) as usize) % modules,
            6..9 => numbers.u64(..modules as u64) as usize,
            _ => numbers.u64(..1000).pow(2) as usize / 1000,
        };
        if other != module && other < modules {
            found.insert(other);
        }
    }
    found
}

/// The record of the link. Its files are the program, then each module, its shard and its object.
fn graph(path: &Path, modules: usize, imports: usize) -> Result<()> {
    let mut out = BufWriter::new(File::create(path).with_context(|| path.display().to_string())?);
    write!(out, "{{\"version\":2,\"is_record\":true,\"files\":[\"app\"")?;
    for module in 0..modules {
        let id = name(module);
        write!(
            out,
            ",\n{},{},{}",
            json!(id),
            json!(format!("{id}.thinlto.bc")),
            json!(format!("{id}.native.o"))
        )?;
    }
    write!(out, "],\"prefixes\":[[\"clang\"]],\"actions\":[")?;
    let mut numbers = Rng::with_seed(1);
    for module in 0..modules {
        let [at, shard, object] = [1, 2, 3].map(|place| 3 * module + place);
        let from = imports_of(module, modules, imports, &mut numbers).into_iter().map(|other| 3 * other + 1);
        let inputs: Vec<usize> = [at, shard].into_iter().chain(from).collect();
        let imported = numbers.u64(..5000);
        let one = json!({
            "kind": "opt", "label": name(module), "prefix": 0, "args": [], "inputs": inputs, "outputs": [object],
            "cost": 100 + numbers.u64(..20_000) + imported, "imported": imported,
        });
        writeln!(out, "{one},")?;
    }
    let objects: Vec<usize> = (0..modules).map(|module| 3 * module + 3).collect();
    let link = json!({
        "kind": "link", "label": "app", "args": ["ld.lld"], "inputs": objects, "outputs": [0], "cost": 0,
    });
    writeln!(out, "{link}]}}")?;
    Ok(out.flush()?)
}

/// A run of all of them in lanes.
fn record(path: &Path, modules: usize, seed: u64) -> Result<()> {
    let mut numbers = Rng::with_seed(seed);
    let start = 20_000_000_u64;
    let mut free = [start; LANES];
    let mut actions = Vec::new();
    for module in 0..modules {
        // A few take a hundred times as long as most.
        let took = 20_000
            + numbers.u64(..200_000)
            + if numbers.u64(..500) == 0 { numbers.u64(..20_000_000) } else { 0 };
        let lane = (0..LANES).min_by_key(|&lane| free[lane]).unwrap_or(0);
        let (begin, end) = (free[lane], free[lane] + took);
        free[lane] = end;
        actions.push(json!({
            "id": module, "kind": "opt", "label": name(module), "cost": 1, "result": "done",
            "why": [{ "what": "import", "name": name(numbers.u64(..modules as u64) as usize) }],
            "lane": lane, "start_us": begin, "end_us": end,
            "phases": { "verify": [begin, begin + 1000], "command": [begin + 1000, end - 1000], "commit": [end - 1000, end] },
            "took": { "wall_us": took, "cpu_us": took - 2000, "peak_memory": (60 + numbers.u64(..900)) << 20, "origin": "ran" },
        }));
    }
    let end = free.into_iter().max().unwrap_or(start);
    let run = json!({
        "version": 1, "begun_ms": 1_795_000_000_000_u64 + seed * 1000, "program": "distlto", "process": seed, "command_line": [],
        "directory": "", "state": "app.distlto", "output": "app", "jobs": LANES, "wall_us": end + 9_000_000, "exit_code": 0,
        "phases": [
            { "name": "thin link", "start_us": 1_000_000, "end_us": start },
            { "name": "final link", "start_us": end, "end_us": end + 9_000_000 },
        ],
        "actions": actions,
    });
    Ok(fs::write(path, run.to_string())?)
}
