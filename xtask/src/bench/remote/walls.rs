//! Links on buildbox-casd, which runs two actions at a time beside the client, against links without it.
//!
//! The action cache is asked from a copy of the program in another folder.

use anyhow::{Result, ensure};

use super::ran::Link;
use super::{Bench, tell};
use crate::bench::measure::{Cost, measure};
use crate::engine::{Name, Own};

/// Measures and prints.
pub(super) fn walls(bench: &Bench<'_>) -> Result<()> {
    let jobs = bench.jobs.to_string();
    let local = bench.least(|| bench.link("remote-local", &["-j", &jobs]))?;
    let (mut cold, mut cached): (Option<Cost>, Option<Cost>) = (None, None);
    let elsewhere = bench.program.elsewhere()?;
    let other = Bench { program: &elsewhere, ..*bench };
    let mut shares = String::new();
    for _ in 0..bench.runs.max(1) {
        let engine = Own::start(Name::Casd)?;
        let options = ["-j", &jobs, "--remote", &engine.url];
        let cost = measure(&mut bench.link("remote-cold", &options)?)?;
        cold = cold.into_iter().chain([cost]).min_by(|a, b| a.wall.total_cmp(&b.wall));
        let ran = Link::newest(&bench.program.state("remote-cold"))?;
        shares = format!("{} of {} backends at the engine", ran.elsewhere(), ran.backends.len());
        // What ran here the engine has not seen, so it is asked to keep that.
        let filling = ["-j", &jobs, "--remote-upload-time=10m", "--remote-cache", &engine.url];
        measure(&mut bench.link("remote-filling", &filling)?)?;
        let cost = measure(&mut other.link("remote-cached", &options)?)?;
        cached = cached.into_iter().chain([cost]).min_by(|a, b| a.wall.total_cmp(&b.wall));
        let ran = Link::newest(&elsewhere.state("remote-cached"))?;
        let computed = ran.backends.iter().filter(|ran| ran.computed).count();
        ensure!(computed == 0, "{computed} backends were compiled although the action cache has all");
    }
    println!("\n{}, {} jobs here, casd with two", bench.program.name, bench.jobs);
    let row = |name: &str, cost: Cost| {
        let ratio = cost.relative_to(local);
        println!(
            "{name:44} {:9.3} s {:9.2} s cpu {:8.3} wall x {:8.3} cpu x",
            cost.wall, cost.cpu, ratio.wall, ratio.cpu
        );
    };
    row("distlto link, this machine alone", local);
    row("--remote, nothing cached", cold.unwrap_or_default());
    row("--remote, all cached, from another folder", cached.unwrap_or_default());
    tell("of the link with nothing cached", shares, "");
    Ok(())
}
