//! Simulated links as a table in Markdown, which reads well as it is.
//!
//! Knows nothing of how they are simulated.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::cluster::{Cluster, simulate};
use super::program::SimulatedLink;

/// What is the same for all of it.
pub(super) fn head(base: &Cluster, left_out: &[String]) -> String {
    let mut text = format!(
        "Beside the workers {} of the client's own processors compile. A worker spends {} on an action beside compiling, the \
         client {}.\n",
        base.here,
        time(base.overhead),
        time(base.client)
    );
    for sentence in left_out {
        let _ = writeln!(text, "{sentence}");
    }
    text
}

/// A line for each list of clusters.
pub(super) fn table(program: &SimulatedLink, lines: &[Vec<Cluster>]) -> String {
    let mut text = format!(
        "\n**{}**: {} backends, {} of compiling, the longest {}; {} to upload once. The rest of the link takes {}.\n\n",
        program.name,
        program.backends.len(),
        time(program.work()),
        time(program.longest()),
        size(program.unique()),
        time(program.rest)
    );
    let latencies: Vec<String> = lines
        .first()
        .into_iter()
        .flatten()
        .map(|cluster| format!("{} latency", time(cluster.latency)))
        .collect();
    let _ = writeln!(text, "| Workers | Gbit/s | {} |", latencies.join(" | "));
    let _ = writeln!(text, "|---:|---:|{}", "---|".repeat(latencies.len()));
    for line in lines {
        let Some(first) = line.first() else { continue };
        let _ = write!(text, "| {} | {} |", first.workers, first.bandwidth / 1e9);
        for cluster in line {
            let outcome = simulate(program, cluster);
            let _ = write!(text, " {}, {} |", time(outcome.makespan), outcome.limit().name());
        }
        text.push('\n');
    }
    text
}

/// The same as a list in JSON, with all that is known of each.
pub(super) fn json(programs: &[&SimulatedLink], lines: &[Vec<Cluster>]) -> String {
    let clusters =
        || programs.iter().flat_map(|program| lines.iter().flatten().map(move |one| (program, one)));
    let simulated = clusters().map(|(program, cluster)| {
        let outcome = simulate(program, cluster);
        let bounds = outcome.bounds.iter().map(|bound| (bound.limit.name().to_owned(), bound.time.into()));
        json!({
            "program": program.name,
            "workers": cluster.workers,
            "in_flight": cluster.in_flight,
            "jobs": cluster.here,
            "latency_us": cluster.latency,
            "bits_per_second": cluster.bandwidth,
            "makespan_us": outcome.makespan,
            "limit": outcome.limit().name(),
            "bounds_us": bounds.collect::<Map<_, _>>(),
            "backends": program.backends.len(),
            "backends_here": outcome.here,
            "bytes_up": outcome.up,
            "bytes_down": outcome.down,
        })
    });
    format!("{:#}\n", Value::Array(simulated.collect()))
}

/// Microseconds for people.
pub(super) fn time(microseconds: u64) -> String {
    let seconds = microseconds as f64 / 1e6;
    match microseconds {
        0..1_000_000 => format!("{} ms", microseconds as f64 / 1000.0).replace(".0 ", " "),
        1_000_000..100_000_000 => format!("{seconds:.1} s"),
        100_000_000..10_000_000_000 => format!("{:.0} s", seconds),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

fn size(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
