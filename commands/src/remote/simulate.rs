//! `distlto remote simulate`: what a recorded link would take on an engine, for so many workers, so far away.
//!
//! Reads the record of a link and the files that it names, and prints a table; the rest is pure. Knows nothing of engines
//! that there are.

mod cluster;
mod picture;
mod program;
mod recorded;
mod table;

use std::path::PathBuf;

use camino::Utf8PathBuf;
use clap::Args;
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{to_standard_output, write_if_changed};
use miette::Diagnostic;
use thiserror::Error;

pub use cluster::{Bottleneck, Bound, Cluster, ROUND_TRIPS, SimulatedOutcome, simulate};
pub use program::{SimulatedBackend, SimulatedLink};

use crate::plan::PlanCommandError;

/// The seed of programs that are made up.
const SEED: u64 = 1;

/// Say how long a link would take on so many workers, from what it took here
///
/// The store has the times of the link's runs. Every backend that they timed is scheduled as with --remote, on a
/// simulated clock, over a network of each latency and bandwidth; docs/remote-sizing.md says how to read the table.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct SimulateArgs {
    /// The output of a link, the folder of its record, or one record of its runs
    #[arg(value_name = "OUTPUT|RECORD")]
    pub record: Utf8PathBuf,
    /// Slots of the engine's workers, for which to simulate
    #[arg(long, value_name = "N", value_delimiter = ',', default_values = ["10", "100", "1000"])]
    pub workers: Vec<usize>,
    /// Milliseconds to the engine and back
    #[arg(long, value_name = "MS", value_delimiter = ',', default_values = ["1", "10", "100"])]
    pub latency: Vec<f64>,
    /// Gbit/s to the engine, and as much back
    #[arg(long, value_name = "GBIT", value_delimiter = ',', default_values = ["1", "10"])]
    pub bandwidth: Vec<f64>,
    /// Jobs at a time on this machine, at least one [default: as recorded]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<usize>,
    /// Actions at the engine at once, as --remote-jobs; 0 is one and a half for each worker
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub in_flight: usize,
    /// Milliseconds that a worker spends on an action beside compiling
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    pub overhead: f64,
    /// Milliseconds of this machine's processors for each action at the engine
    #[arg(long, value_name = "MS", default_value_t = 3.0)]
    pub client: f64,
    /// Also simulate a program of N modules whose costs are distributed like this one's
    #[arg(long, value_name = "N")]
    pub modules: Option<usize>,
    /// Take what backends took by the clock, not their processor time
    #[arg(long)]
    pub by_clock: bool,
    /// Print all figures as JSON, times in microseconds
    #[arg(long)]
    pub json: bool,
    /// Draw a picture, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Why nothing can be simulated.
#[derive(Debug, Error, Diagnostic)]
pub enum SimulateError {
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// A record is none.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Record(#[from] distlto_record::run::ReadError),
    /// What was run cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Graph(#[from] PlanCommandError),
    /// Nothing was timed.
    #[error("{path} holds no record of a link that compiled anything")]
    #[diagnostic(
        code(distlto::bad_input),
        help("link it once from nothing: distlto link --cache NEW_FOLDER")
    )]
    NothingTimed {
        /// The directory or file.
        path: Utf8PathBuf,
    },
    /// An option is out of range.
    #[error("--{option} is {value}: {expected} is expected")]
    #[diagnostic(code(distlto::usage), help("see distlto remote simulate --help"))]
    Range {
        /// Its name.
        option: &'static str,
        /// What it says.
        value: f64,
        /// What it has to be.
        expected: &'static str,
    },
}

/// Simulates and prints.
pub fn run(args: &SimulateArgs) -> Result<u8, SimulateError> {
    args.check()?;
    let recorded = recorded::read(&args.record, args.by_clock)?;
    let base = Cluster {
        workers: 0,
        in_flight: 0,
        here: args.jobs.unwrap_or(recorded.jobs).max(1),
        latency: 0,
        bandwidth: 0.0,
        overhead: microseconds(args.overhead),
        client: microseconds(args.client),
        processors: recorded.jobs.max(1),
    };
    let larger = args.modules.map(|modules| recorded.program.like(modules, SEED));
    let programs: Vec<&SimulatedLink> = [&recorded.program].into_iter().chain(&larger).collect();
    let grid = args.grid(base);
    let text = if args.json {
        table::json(&programs, &grid)
    } else {
        let tables = programs.iter().map(|program| table::table(program, &grid));
        [table::head(&base, &recorded.left_out)].into_iter().chain(tables).collect()
    };
    if let Some(file) = &args.svg {
        let drawn = picture::draw(&programs, &args.curves(base));
        write_if_changed(file, drawn.as_bytes())?;
    }
    to_standard_output(text.as_bytes())?;
    Ok(0)
}

impl SimulateArgs {
    fn check(&self) -> Result<(), SimulateError> {
        let range = |option, expected, wrong: Option<f64>| match wrong {
            Some(value) => Err(SimulateError::Range { option, value, expected }),
            None => Ok(()),
        };
        let time = |value: &f64| !(0.0..=1e6).contains(value);
        let of = |values: &[f64], is_wrong: fn(&f64) -> bool| values.iter().copied().find(is_wrong);
        let milliseconds = "a number of milliseconds from 0 to 1000000";
        range("latency", milliseconds, of(&self.latency, time))?;
        range("overhead", milliseconds, of(&[self.overhead], time))?;
        range("client", milliseconds, of(&[self.client], time))?;
        let bandwidth = |value: &f64| !(1e-6..=1e6).contains(value);
        range("bandwidth", "a number of Gbit/s from 0.000001 to 1000000", of(&self.bandwidth, bandwidth))?;
        let counts = self.workers.iter().chain(&self.modules).copied();
        let wrong = counts.chain([self.in_flight]).find(|&count| count > MOST).map(|count| count as f64);
        range("workers, --modules or --in-flight", "at most a million", wrong)
    }

    /// By workers and bandwidth, the clusters of one line of the table.
    fn grid(&self, base: Cluster) -> Vec<Vec<Cluster>> {
        let lines =
            self.workers.iter().flat_map(|&workers| self.bandwidth.iter().map(move |&gbit| (workers, gbit)));
        let line = |(workers, gbit): (usize, f64)| {
            let cell = |&latency: &f64| self.cluster(base, workers, gbit, latency);
            self.latency.iter().map(cell).collect()
        };
        lines.map(line).collect()
    }

    /// For each latency, the clusters of one curve: over the smallest bandwidth, from one worker on.
    fn curves(&self, base: Cluster) -> Vec<Vec<Cluster>> {
        let most = self.workers.iter().copied().max().unwrap_or(1);
        let gbit = self.bandwidth.iter().copied().fold(f64::INFINITY, f64::min);
        let curve = |&latency: &f64| {
            let workers = [1, 2, 5].iter().cycle().scan((0, 1), |(at, scale), one| {
                let workers = one * *scale;
                *at += 1;
                if *at % 3 == 0 {
                    *scale *= 10;
                }
                (workers <= most).then_some(workers)
            });
            workers.map(|workers| self.cluster(base, workers, gbit, latency)).collect()
        };
        self.latency.iter().map(curve).collect()
    }

    fn cluster(&self, base: Cluster, workers: usize, gbit: f64, latency: f64) -> Cluster {
        let in_flight = if self.in_flight > 0 { self.in_flight } else { workers + workers.div_ceil(2) };
        Cluster { workers, in_flight, latency: microseconds(latency), bandwidth: gbit * 1e9, ..base }
    }
}

/// Of workers, modules and actions in flight there are no more.
const MOST: usize = 1_000_000;

fn microseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1000.0) as u64
}
