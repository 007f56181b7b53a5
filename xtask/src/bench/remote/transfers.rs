//! What goes over the network for a link, and what the client takes for it, by the counters of the server for tests.
//!
//! What an action costs the client is, where the engine executes it, the processor time of distlto's own process (its
//! children are the linker and compilers) beyond that of the same link without an engine; where its result is cached, that
//! of the link and its children beyond what the linker takes when its own cache has everything.

use anyhow::Result;

use super::ran::Link;
use super::server::Server;
use super::{Bench, tell};
use crate::bench::measure::{measure, measure_own, measure_tree};

/// Measures and prints.
pub(super) fn transfers(bench: &Bench<'_>) -> Result<()> {
    let linker = bench.linker()?;
    let worker = ["name=one,slots=1".to_owned(), "name=two,slots=1".to_owned()];
    let server = Server::start(&worker)?;
    // What runs here stays here, and no action waits in the queue for so long that it is raced.
    let mut options = vec!["-j", "1", "--remote", &server.url, "--remote-jobs=4"];
    options.push("--remote-cache-mode=read-only");
    let (there, _) = measure_own(&mut bench.link("remote-cold", &options)?)?;
    let ran = Link::newest(&bench.program.state("remote-cold"))?;
    let counts = server.end()?;
    let elsewhere = ran.elsewhere().max(1);
    println!("\n{}: {elsewhere} of {} backends at the engine", bench.program.name, ran.backends.len());
    let uploaded = counts.of("blob_bytes_uploaded");
    let distinct = counts.of("input_bytes");
    tell("bytes uploaded / bytes of distinct modules and shards", ratio(uploaded, distinct), "1.02");
    tell("blobs uploaded that were there", counts.of("blobs_uploaded_again"), "0");
    let trips = format!("{:.2}", counts.calls() as f64 / elsewhere as f64);
    tell("calls for an action that the engine executes", trips, "");
    tell("", counts.methods(), "");
    let (here, children) = measure_own(&mut bench.link("remote-local", &["-j", "1"])?)?;
    // What one that runs here takes holds all that the link itself takes.
    let backends = ran.backends.len().max(1) as f64;
    let (more, one_here) = ((there - here) / elsewhere as f64, here / backends);
    tell("client's processor time for such an action, at most", milliseconds(more + one_here), "3 ms");
    tell("  of that beyond an action that runs here", milliseconds(more), "");
    let share = (more + one_here) / (children / backends);
    tell("  all of it over what linker and compiler take for one that runs here", format!("{share:.4}"), "");

    // Everything is cached: each action costs a look and a download.
    let filled = || -> Result<Server> {
        let server = Server::start(&worker)?;
        let options = ["-j", "2", "--remote-upload-time=10m", "--remote-cache", &server.url];
        measure(&mut bench.link("remote-filling", &options)?)?;
        Ok(server)
    };
    let before = filled()?.end()?;
    let server = filled()?;
    let options = ["-j", &bench.jobs.to_string(), "--remote", &server.url];
    let cached = bench.least(|| bench.link("remote-cached", &options))?;
    let ran = Link::newest(&bench.program.state("remote-cached"))?;
    let peak = {
        let command = &mut bench.link("remote-cached", &options)?;
        measure_tree(command)?
    };
    let after = server.end()?;
    let links = bench.runs.max(1) as u64 + 1;
    let calls = after.calls().saturating_sub(before.calls()) as f64 / links as f64;
    let all = ran.backends.len().max(1);
    tell("calls for an action whose result is cached", format!("{:.2}", calls / all as f64), "");
    let of_cached = (cached.cpu - linker.cpu) / all as f64;
    tell("client's processor time for such an action", milliseconds(of_cached), "3 ms");
    let plain = {
        let mut link = bench.program.link(&bench.program.words[0], "remote-plain");
        measure_tree(&mut link)?
    };
    tell(
        "peak memory, all cached / lld in process",
        format!("{:.3} ({peak:.0} of {plain:.0} MiB)", peak / plain),
        "",
    );
    Ok(())
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

fn ratio(of: u64, to: u64) -> String {
    format!("{:.3} ({:.1} of {:.1} MB)", of as f64 / to as f64, of as f64 / 1e6, to as f64 / 1e6)
}
