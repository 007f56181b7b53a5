//! Automation of this repository:
//! `cargo xtask setup|install|package|test|engine|demo|recipes|kernel|bench|campaign|fuzz|compare|page|tidy`.
//!
//! Holds the command line; each command is a module of its own. Nothing a user of distlto needs is in here.

mod apt;
mod bazel;
mod bench;
mod buck2;
mod builders;
mod campaign;
mod compare;
mod debian;
mod demo;
mod distribute;
mod engine;
mod fuzz;
mod install;
mod kernel;
mod linked;
mod npm;
mod package;
mod page;
mod project;
mod projects;
mod recipes;
mod setup;
mod shell;
mod test;
mod tidy;
mod unstable_llvm;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

/// Automation of the distlto repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs the toolchains and fetches the sources that the tests need; quick when all is there.
    Setup {
        /// Also this LLVM, beside 22.
        #[arg(long, value_name = "VERSION")]
        llvm: Option<u32>,
    },
    /// Builds distlto and installs all of it; DESTDIR is put before the prefix.
    Install {
        /// Where bin, lib and share are, or are made.
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
        /// Builds without optimisation, which is quicker.
        #[arg(long)]
        debug: bool,
    },
    /// Makes a Debian package, a Python wheel and a tar archive of the installed files, for glibc 2.28 and later; and a
    /// recipe of an image.
    Package {
        /// Where they are put; `dist` of cargo's target directory where absent.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Builds without optimisation, for this system's glibc, and compresses little, which is quicker.
        #[arg(long)]
        debug: bool,
    },
    /// Runs every check; with --llvm only the programs of tests/cases, with FILTER only some tests.
    Test {
        /// The LLVM to link the cases with.
        #[arg(long, value_name = "VERSION")]
        llvm: Option<u32>,
        /// Tests distlto as a release build.
        #[arg(long)]
        release: bool,
        /// Instead builds examples/buck2 with the `buck2` of PATH.
        #[arg(long, conflicts_with_all = ["llvm", "filter"])]
        buck2: bool,
        /// Only tests and cases whose name holds this text.
        filter: Option<String>,
    },
    /// Installs, starts and stops engines of the Remote Execution API, on loopback, to try distlto with.
    Engine {
        /// Which.
        #[arg(value_enum)]
        name: engine::Name,
        #[command(subcommand)]
        what: engine::What,
    },
    /// Bazel for the tests of `rules/bazel`: this system's, and one of Debian's next release.
    Bazel {
        #[command(subcommand)]
        what: bazel::What,
    },
    /// Builds a real program by distributed ThinLTO, runs it, edits it, and shows what ran again.
    Demo,
    /// Builds other people's projects by the lines of docs/recipes.md: from clean, after an edit, again, installed.
    Recipes {
        /// Instead builds the projects of `examples/`, which is quick.
        #[arg(long)]
        examples: bool,
        /// Builds distlto without optimisation.
        #[arg(long)]
        debug: bool,
        /// Only these projects.
        names: Vec<String>,
    },
    /// Measures distlto against the linker's own ThinLTO.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
    /// Links random programs in every way, and compares them with lld's; `campaign --help` says more.
    #[command(disable_help_flag = true)]
    Campaign {
        /// Links with distlto as a release build; stands first.
        #[arg(long)]
        release: bool,
        /// The LLVM to link with; stands before the campaign.
        #[arg(long, value_name = "VERSION")]
        llvm: Option<u32>,
        /// A campaign and its options; `--help` lists those of random programs, `precise --help` is that of third-party ones.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Checks that real programs and their objects come out byte for byte as from lld in process.
    Compare {
        /// Jobs at a time; the number of processors where absent.
        #[arg(long, short, conflicts_with = "engine")]
        jobs: Option<usize>,
        /// Instead checks that links on this engine make what this machine makes, and that they find it again.
        #[arg(long, value_enum)]
        engine: Option<engine::Name>,
        /// Only these programs.
        #[arg(value_enum)]
        programs: Vec<projects::Name>,
    },
    /// Tries every parser with damaged input, by libFuzzer.
    Fuzz {
        /// How long each is tried.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only these parsers.
        names: Vec<String>,
    },
    /// Builds Linux by upstream's distributed ThinLTO and by distlto, edits it, and boots it.
    Kernel {
        /// Builds distlto without optimisation; counts are the same, processor time is not.
        #[arg(long)]
        debug: bool,
        /// Jobs at a time; the number of processors where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
    },
    /// Makes the page of `distlto report` of its sources in `record/page`.
    Page {
        /// Where it is written; where it is checked in, if absent.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Checks the repository's own rules.
    Tidy,
    /// A DTLTO distributor that runs JOBS jobs at a time, for `bench`.
    #[command(hide = true)]
    Distribute { jobs: usize, file: PathBuf },
    /// A compiler that copies objects that are made already, for `bench`: the work of a distributor without a compiler's.
    #[command(hide = true)]
    Pretend {
        /// The directory of the objects.
        made: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// File operations and nothing else, for `bench`.
    #[command(hide = true)]
    Floor {
        #[command(subcommand)]
        of: Floor,
    },
}

#[derive(Subcommand)]
enum Floor {
    Planner { objects: usize, imports: usize },
    Prepare { archive: PathBuf, members: usize, directory: PathBuf },
}

#[derive(Subcommand)]
enum Bench {
    /// Links of real programs: cold, with nothing changed, and after edits; against lld alone and with its cache.
    Link {
        /// The programs.
        #[arg(long = "program", value_delimiter = ',', value_enum, default_values = ["libgit2", "leveldb", "cmake", "small"])]
        programs: Vec<bench::link::Name>,
        /// How often everything is measured; medians are shown.
        #[arg(long, default_value_t = 5)]
        runs: usize,
        /// Jobs at a time, for every way of linking; the number of processors where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
        /// Where every single figure is written.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// One edit of each kind: what runs and what it costs, with precise keys and without, against lld with its cache.
    Edits {
        /// The programs.
        #[arg(long = "program", value_delimiter = ',', value_enum, default_values = ["libgit2", "protoc"])]
        programs: Vec<projects::Name>,
        /// The kinds of edits, in this order.
        #[arg(long = "edit", value_delimiter = ',', value_enum, default_values = ["leaf", "apart", "wide", "header", "comment"])]
        edits: Vec<project::Edit>,
        /// How often everything is measured; medians are shown.
        #[arg(long, default_value_t = 3)]
        runs: usize,
        /// Jobs at a time, for every way of linking; the number of processors where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
        /// Write the figures of the last program to this file, and a picture of them beside it.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Draws the picture of figures that `bench edits --json` has written, beside them.
    Picture {
        /// The figures.
        #[arg(default_value = "docs/gains.json")]
        json: PathBuf,
    },
    /// lld's DTLTO by a serial script, a simple parallel one, and distlto-distribute; and what a job costs besides clang.
    Dtlto {
        /// How often everything is measured; medians are shown.
        #[arg(long, default_value_t = 3)]
        runs: usize,
        /// Jobs at a time, for every parallel way; the number of processors where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
    },
    /// The executor: its schedule against ninja's, and early launch.
    Executor {
        /// How often everything is measured; medians are shown.
        #[arg(long, default_value_t = 3)]
        runs: usize,
        /// Jobs at a time, for every way; the number of processors where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
    },
    /// Links with an engine of the Remote Execution API: what goes over the network, what the client takes, all from a cache,
    /// slots of both kinds together, and the simulation against a real run.
    Remote {
        /// The program.
        #[arg(long, value_enum, default_value = "libgit2")]
        program: bench::link::Name,
        /// What is measured.
        #[arg(long = "part", value_delimiter = ',', value_enum, default_values = ["walls", "transfers", "slots", "cached"])]
        parts: Vec<bench::remote::Part>,
        /// How often everything is measured; the least is shown.
        #[arg(long, default_value_t = 3)]
        runs: usize,
        /// Modules of the program whose results are all cached.
        #[arg(long, default_value_t = 10_000)]
        modules: usize,
        /// Jobs at a time on this machine; the number of processors where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
    },
    /// How long the backends of a recorded link would take on so many workers, and what limits them.
    Farm {
        /// A link's folder in the store, such as ~/.cache/distlto/links-v1/app-0123456789ab, or one record of its runs.
        record: PathBuf,
        /// Numbers of workers, each with one slot.
        #[arg(long, value_delimiter = ',', default_values = ["0", "10", "100", "1000"])]
        workers: Vec<usize>,
        /// Milliseconds to the engine and back.
        #[arg(long, default_value_t = 10.0)]
        latency: f64,
        /// Gbit/s to the engine, and as much back.
        #[arg(long, default_value_t = 1.0)]
        bandwidth: f64,
        /// Jobs at a time on this machine; as recorded where absent.
        #[arg(long, short)]
        jobs: Option<usize>,
    },
    /// A shell that starts short programs, with distlto and without.
    Processes {
        /// Programs of each run.
        #[arg(long, default_value_t = 2000)]
        count: usize,
        /// Pairs of runs.
        #[arg(long, default_value_t = 9)]
        pairs: usize,
    },
    /// The page of `distlto report` of a link of 100,000 modules: its size, when its first answer is shown, how quick it is.
    Report {
        /// Modules of the link.
        #[arg(long, default_value_t = 100_000)]
        modules: usize,
        /// Imports of each.
        #[arg(long, default_value_t = 50)]
        imports: usize,
        /// Builds distlto without optimisation; what the browser does is the same.
        #[arg(long)]
        debug: bool,
    },
    /// The tools for Buck2: the planner on large trees, unpacking, and one backend compilation.
    Buck2 {
        /// The directory of the stock Python tools (prelude/cxx/dist_lto/tools of Buck2), to measure them too.
        #[arg(long, value_name = "DIR")]
        baseline: Option<PathBuf>,
        /// How often everything is measured; medians are shown.
        #[arg(long, default_value_t = 3)]
        runs: usize,
        /// Objects of the planner's trees.
        #[arg(long, value_delimiter = ',', default_value = "20000,100000")]
        objects: Vec<usize>,
        /// Imports of each of those objects.
        #[arg(long, value_delimiter = ',', default_value = "20,200")]
        imports: Vec<usize>,
        /// Where the trees are made; up to 4 GiB.
        #[arg(long, value_name = "DIR", default_value_os_t = bench::buck2::default_directory())]
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let result: Result<bool> = match Arguments::parse().command {
        Command::Setup { llvm } => setup::setup(llvm.as_slice()).map(|()| true),
        Command::Install { prefix, debug } => install::install(&prefix, debug).map(|()| true),
        Command::Package { out, debug } => package::package(out, debug).map(|()| true),
        Command::Test { buck2: true, release, .. } => buck2::test(release).map(|()| true),
        Command::Test { llvm, release, filter, .. } => test::test(llvm, release, filter.as_deref()),
        Command::Engine { name, what } => engine::engine(name, &what).map(|()| true),
        Command::Bazel { what } => bazel::bazel(&what).map(|()| true),
        Command::Demo => demo::demo().map(|()| true),
        Command::Recipes { examples, debug, names } => {
            recipes::recipes(&recipes::Request { examples, debug, names }).map(|()| true)
        }
        Command::Compare { jobs, engine, programs } => {
            let programs = if programs.is_empty() { projects::Name::value_variants() } else { &programs };
            match engine {
                Some(engine) => compare::engine::run(programs, engine),
                None => compare::run(programs, jobs.unwrap_or_else(processors)),
            }
            .map(|()| true)
        }
        Command::Bench { what: Bench::Link { programs, runs, jobs, json } } => {
            bench::link::link(&bench::link::Request { programs, runs, jobs, json }).map(|()| true)
        }
        Command::Bench { what: Bench::Edits { programs, edits, runs, jobs, json } } => {
            let request = bench::edits::Request { programs, edits, runs, jobs, json };
            bench::edits::edits(&request).map(|()| true)
        }
        Command::Bench { what: Bench::Picture { json } } => bench::picture::redraw(&json).map(|()| true),
        Command::Bench { what: Bench::Buck2 { baseline, runs, objects, imports, directory } } => {
            let request = bench::buck2::Request { baseline, runs, objects, imports, directory };
            bench::buck2::buck2(&request).map(|()| true)
        }
        Command::Bench { what: Bench::Dtlto { runs, jobs } } => {
            bench::dtlto::dtlto(runs, jobs).map(|()| true)
        }
        Command::Bench { what: Bench::Executor { runs, jobs } } => {
            bench::executor::executor(runs, jobs).map(|()| true)
        }
        Command::Bench { what: Bench::Remote { program, parts, runs, modules, jobs } } => {
            let jobs = jobs.unwrap_or_else(processors);
            bench::remote::remote(&bench::remote::Request { program, parts, runs, modules, jobs })
                .map(|()| true)
        }
        Command::Bench { what: Bench::Farm { record, workers, latency, bandwidth, jobs } } => {
            bench::farm::farm(&record, &workers, latency, bandwidth, jobs).map(|()| true)
        }
        Command::Bench { what: Bench::Processes { count, pairs } } => {
            bench::processes::processes(count, pairs).map(|()| true)
        }
        Command::Bench { what: Bench::Report { modules, imports, debug } } => {
            bench::report::report(modules.max(2), imports, debug).map(|()| true)
        }
        Command::Pretend { made, words } => bench::dtlto::pretend(&made, &words),
        Command::Floor { of: Floor::Planner { objects, imports } } => {
            bench::floor::planner(objects, imports).map(|()| true)
        }
        Command::Floor { of: Floor::Prepare { archive, members, directory } } => {
            bench::floor::prepare(&archive, members, &directory).map(|()| true)
        }
        Command::Campaign { release, llvm, words } => campaign::campaign(release, llvm, &words),
        Command::Fuzz { seconds, names } => fuzz::fuzz(&names, seconds),
        Command::Kernel { debug, jobs } => kernel::kernel(debug, jobs.unwrap_or_else(processors)),
        Command::Page { out } => page::page(out.as_deref()).map(|()| true),
        Command::Tidy => tidy::tidy().map(|()| true),
        Command::Distribute { jobs, file } => distribute::distribute(jobs, &file).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}
