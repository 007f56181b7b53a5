//! `cargo xtask bench farm`: how long the backends of a recorded link would take on so many workers of an engine.
//!
//! Reads the records of a link's runs and the sizes of its files, runs the backends on a simulated clock (see `clock`), and
//! prints a table. docs/design/measurements.md says how to read it.

pub mod clock;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::linked;
use clock::{Backend, Farm, simulate};

/// Microseconds that a worker spends on an action beside its command: it stages files, starts a sandbox, polls.
const OVERHEAD: u64 = 100_000;
/// Microseconds of the client's processors for an action; `bench remote --part transfers` measures them.
pub const CLIENT: u64 = 3000;
/// Bytes that go up for an action beside its module and its shard: the Action, the Command and folders.
const MESSAGES: u64 = 3000;
/// Bytes of bitcode for an instruction, for a module that has no file of its own: as the executor's estimates have it.
const BYTES_PER_INSTRUCTION: u64 = 12;

/// Simulates a link on each number of slots, over a network of these milliseconds and Gbit/s, and prints.
pub fn farm(record: &Path, slots: &[usize], latency: f64, bandwidth: f64, jobs: Option<usize>) -> Result<()> {
    ensure!((0.0..=1e6).contains(&latency), "--latency is a number of milliseconds from 0 to 1000000");
    ensure!((1e-3..=1e6).contains(&bandwidth), "--bandwidth is a number of Gbit/s from 0.001 to 1000000");
    let link = Recorded::read(record)?;
    let here = jobs.unwrap_or(link.jobs).max(1);
    let sum = |of: fn(&Backend) -> u64| link.backends.iter().map(of).sum::<u64>() as f64 / 1e6;
    println!(
        "{} backends, {:.1} s of compiling, {:.1} MB up, {:.1} MB down; {here} jobs on the client\n",
        link.backends.len(),
        sum(|backend| backend.took),
        sum(|backend| backend.up),
        sum(|backend| backend.down),
    );
    println!("| Workers | Seconds | Limit |\n|---:|---:|---|");
    let (latency, bandwidth) = ((latency * 1000.0) as u64, bandwidth * 1e9);
    for &slots in slots {
        // Workers idle unless more actions wait at the engine than they run.
        let in_flight = slots + slots.div_ceil(2);
        let farm = Farm { slots, in_flight, here, latency, bandwidth, overhead: OVERHEAD, client: CLIENT };
        let outcome = simulate(&link.backends, &farm);
        println!("| {slots} | {:.1} | {} |", outcome.makespan as f64 / 1e6, outcome.limit());
    }
    Ok(())
}

/// The run of a link that compiled most backends.
#[derive(Debug, PartialEq)]
struct Recorded {
    backends: Vec<Backend>,
    jobs: usize,
}

impl Recorded {
    /// Reads the runs of a link's folder, or one record.
    fn read(place: &Path) -> Result<Self> {
        let files = if place.is_dir() { linked::runs(place)? } else { vec![place.to_owned()] };
        let runs = files.iter().map(|file| Ok(Self::of(&linked::read_record(file)?)));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let most = runs.into_iter().max_by_key(|run| run.backends.len());
        let nothing = || format!("{} holds no record of a link that compiled anything", place.display());
        most.filter(|run| !run.backends.is_empty()).with_context(nothing)
    }

    fn of(record: &Value) -> Self {
        let directory = Path::new(record["directory"].as_str().unwrap_or_default());
        let actions = record["actions"].as_array().map_or(&[][..], Vec::as_slice);
        let backends = actions.iter().filter_map(|action| compiled(directory, action)).collect();
        Self { backends, jobs: record["jobs"].as_u64().unwrap_or(1) as usize }
    }
}

/// The backend that an action compiled.
fn compiled(directory: &Path, action: &Value) -> Option<Backend> {
    let took = &action["took"];
    if action["kind"] != "opt" || action["result"] != "done" || took["origin"] != "ran" {
        return None;
    }
    let size = |file: &Value| Some(fs::metadata(directory.join(file.as_str()?)).ok()?.len());
    let estimate = || Some(action["instructions"]["own"].as_u64()? * BYTES_PER_INSTRUCTION);
    let module = size(&action["module"]).or_else(estimate).unwrap_or(0);
    let written = |output: &Value| output["after"].as_str()?.rsplit_once('/')?.1.parse::<u64>().ok();
    Some(Backend {
        // Other processes of a busy machine do not count.
        took: took["cpu_us"].as_u64().or(took["wall_us"].as_u64())?,
        up: module + size(&action["shard"]).unwrap_or(0) + MESSAGES,
        down: action["outputs"].as_array()?.iter().filter_map(written).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_run_that_compiled_most_counts() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let runs = folder.path().join("runs");
        fs::create_dir(&runs)?;
        fs::write(folder.path().join("a"), [0; 40])?;
        fs::write(folder.path().join("shard"), [0; 5])?;
        let action = |label: &str, result: &str, took: Value| {
            json!({
                "kind": "opt", "result": result, "module": label, "shard": "shard", "took": took,
                "instructions": {"own": 10}, "outputs": [{"path": "o", "after": "ab/700"}, {"path": "p"}],
            })
        };
        let write = |name: &str, actions: &[Value]| {
            let record = json!({"directory": folder.path(), "jobs": 4, "actions": actions});
            fs::write(runs.join(name), record.to_string())
        };
        let a = action("a", "done", json!({"wall_us": 200, "cpu_us": 150, "origin": "ran"}));
        let member = action("b(c)", "done", json!({"wall_us": 300, "origin": "ran"}));
        let cached = action("d", "done", json!({"wall_us": 9, "origin": "cache"}));
        write("1.json", &[a.clone(), member, cached.clone()])?;
        write("2.json", &[a, action("b(c)", "kept", json!({"origin": "ran"}))])?;
        write("3.json", &[cached])?;
        let backends = vec![
            Backend { took: 150, up: 40 + 5 + MESSAGES, down: 700 },
            Backend { took: 300, up: 10 * BYTES_PER_INSTRUCTION + 5 + MESSAGES, down: 700 },
        ];
        assert_eq!(Recorded::read(&runs.join("2.json"))?.backends, backends[..1]);
        assert_eq!(Recorded::read(folder.path())?, Recorded { backends, jobs: 4 });
        assert!(Recorded::read(&runs.join("3.json")).is_err());
        Ok(())
    }
}
