//! Slots of this machine and of an engine together: the makespan against its bound, a slow worker, and the simulation.
//!
//! Workers spend most of an action waiting, so that client and workers do not take the processors from each other, and what
//! is seen is the schedule. Walls are compared where each of both has a processor of its own, and where both share all.

use std::process::Command;

use anyhow::Result;

use super::ran::Link;
use super::server::Server;
use super::{Bench, tell};
use crate::bench::farm::CLIENT;
use crate::bench::farm::clock::{Backend, Farm, simulate};
use crate::bench::measure::measure;

/// Milliseconds that a worker waits with each action.
const DELAY: u32 = 300;
/// The same for one that is slow.
const SLOW: u32 = 5000;

/// Measures and prints.
pub(super) fn slots(bench: &Bench<'_>) -> Result<()> {
    println!("\n{}: one slot here, two workers that take {DELAY} ms longer", bench.program.name);
    for in_flight in [2, 3] {
        // An engine that has seen nothing of it.
        let server = Server::start(&["one", "two"].map(|name| format!("name={name},slots=1,delay={DELAY}")))?;
        let options = ["-j", "1", "--remote", &server.url, "--remote-jobs", &in_flight.to_string()];
        measure(&mut bench.link("remote-slots", &options)?)?;
        let ran = Link::newest(&bench.program.state("remote-slots"))?;
        let bound = bound(&ran, 3);
        let measured = ran.makespan();
        let simulated = simulated(&ran, in_flight);
        let head = |text: &str| format!("{in_flight} in flight: {text}");
        tell(&head("backends at the engine"), format!("{} of {}", ran.elsewhere(), ran.backends.len()), "");
        tell(
            &head("makespan / bound of the slots"),
            format!("{:.3} ({measured:.2} of {bound:.2} s)", measured / bound),
            "",
        );
        tell(
            &head("makespan / simulated"),
            format!("{:.3} ({measured:.2} of {simulated:.2} s)", measured / simulated),
            "",
        );
    }

    slow_workers(bench, "1", true)?;
    slow_workers(bench, &bench.jobs.to_string(), false)
}

/// Walls of links with workers that are slow, which have a processor of their own or share those of the client.
fn slow_workers(bench: &Bench<'_>, jobs: &str, apart: bool) -> Result<()> {
    let place = if apart { "another processor" } else { "the processors that those fill" };
    println!("\n{}: two workers on {place}; slots here: {jobs}", bench.program.name);
    let here = |link: Command| if apart { on_processor(0, &link) } else { link };
    let alone = bench.least(|| Ok(here(bench.link("remote-local", &["-j", jobs])?)))?;
    for delays in [[DELAY, DELAY], [DELAY, SLOW], [SLOW, SLOW]] {
        let mut least = f64::INFINITY;
        for _ in 0..bench.runs.max(1) {
            let worker = |at: usize| format!("name=worker{at},slots=1,delay={}", delays[at]);
            let server = Server::start(&[worker(0), worker(1)])?;
            if apart {
                server.keep_to_processor(1)?;
            }
            let link = bench.link("remote-slow", &["-j", jobs, "--remote", &server.url])?;
            least = least.min(measure(&mut here(link))?.wall);
        }
        let figure = format!("{:.3} ({least:.2} of {:.2} s)", least / alone.wall, alone.wall);
        let [one, two] = delays;
        let what = format!("workers take {one} and {two} ms longer: wall / this machine alone");
        tell(&what, figure, if one == two { "" } else { "1.05" });
    }
    Ok(())
}

/// The same command with all that it starts on one processor.
fn on_processor(processor: usize, command: &Command) -> Command {
    let mut there = Command::new("taskset");
    there.args(["--cpu-list", &processor.to_string()]).arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        there.current_dir(directory);
    }
    there
}

/// The least that these backends take on so many slots, in seconds.
fn bound(ran: &Link, slots: usize) -> f64 {
    let work: f64 = ran.backends.iter().map(|ran| ran.wall).sum();
    let longest = ran.backends.iter().map(|ran| ran.wall).fold(0.0, f64::max);
    longest.max(work / slots as f64)
}

/// How long these backends take on two workers by simulation, in seconds. What a worker adds is in the time of each, and
/// bytes take no time on this network.
fn simulated(ran: &Link, in_flight: usize) -> f64 {
    let computed = ran.backends.iter().filter(|ran| ran.computed);
    let backends: Vec<_> =
        computed.map(|ran| Backend { took: (ran.wall * 1e6) as u64, up: 0, down: 0 }).collect();
    let farm =
        Farm { slots: 2, in_flight, here: 1, latency: 500, bandwidth: 1e10, overhead: 0, client: CLIENT };
    simulate(&backends, &farm).makespan as f64 / 1e6
}
