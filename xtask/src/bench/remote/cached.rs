//! A link of many small modules whose results are all in an action cache: how long it takes, and where that goes.

use anyhow::{Result, ensure};

use super::ran::Link;
use super::server::Server;
use super::{Bench, tell};
use crate::bench::measure::measure;

/// Measures and prints.
pub(super) fn cached(bench: &Bench<'_>) -> Result<()> {
    let server = Server::start(&[])?;
    let jobs = bench.jobs.to_string();
    measure(&mut bench.link(
        "remote-filling",
        &["-j", &jobs, "--remote-upload-time=10m", "--remote-cache", &server.url],
    )?)?;
    let linker = bench.linker()?;
    let options = ["-j", &jobs, "--remote-upload-time=10m", "--remote-cache", &server.url];
    let cost = bench.least(|| bench.link("remote-cached", &options))?;
    let ran = Link::newest(&bench.program.state("remote-cached"))?;
    let computed = ran.backends.iter().filter(|ran| ran.computed).count();
    ensure!(computed == 0, "{computed} backends were compiled although the action cache has all");
    let count = ran.backends.len().max(1);
    println!("\n{}, all from an action cache, {} jobs", bench.program.name, bench.jobs);
    let seconds = |seconds: f64| format!("{seconds:.3} s");
    tell("wall time", seconds(cost.wall), "");
    tell(
        "the same / lld with a cache of its own that has all",
        format!("{:.3}", cost.wall / linker.wall),
        "",
    );
    tell(
        "client's processor time for an action",
        format!("{:.2} ms", (cost.cpu - linker.cpu) * 1e3 / count as f64),
        "3 ms",
    );
    tell("of the last run: all", seconds(ran.wall), "");
    for (name, length) in &ran.phases {
        tell(&format!("  {name}"), seconds(*length), "");
    }
    tell("  backends, from the first one's start to the last one's end", seconds(ran.makespan()), "");
    for phase in ["verify", "lookup", "command", "commit"] {
        let sum: f64 = ran.backends.iter().filter_map(|ran| ran.phases.get(phase)).sum();
        tell(&format!("    {phase}, over the jobs"), seconds(sum / bench.jobs as f64), "");
    }
    Ok(())
}
