//! The command line of `distlto`: the one source of its help texts and man pages.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use distlto_executor::index_command::IndexArgs;
use distlto_executor::link::Options;
use distlto_executor::opt::OptArgs;
use distlto_executor::progress::Style;
use distlto_planner::plan_command::PlanArgs;
use distlto_planner::words::{Word, word_of};

use crate::cache::CacheArgs;

/// Distributed ThinLTO for any build system, on stock LLVM
#[derive(Debug, Parser)]
#[command(name = "distlto", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  success
    1  a compilation failed or its object was refused
    2  the command line is wrong
    3  an input file is missing, truncated or malformed
    4  a file cannot be read or written
    5  another run is writing the same output
    6  a link option would change code and has no backend spelling
    7  a compiler or linker is missing or too old
  130  ended by a signal
A linker or compiler that fails keeps its own exit code.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Perform a whole ThinLTO link: thin link, backends in parallel, final link
    Link(LinkArgs),
    /// Unpack an archive into member objects and a manifest
    Prepare(distlto_prepare::command::Args),
    /// Run the thin link of a link command and write shards, plans and the action graph
    Index(IndexArgs),
    /// Show a link's action graph: JSON, DOT, Ninja, a summary, or what would run and why
    Plan(PlanArgs),
    /// Compile one module with its imports to a native object
    Opt(OptArgs),
    /// Look after a store of unpacked archive members
    Cache(CacheArgs),
}

/// Perform a whole ThinLTO link
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct LinkArgs {
    /// The most backends at once [default: --thinlto-jobs of the link line, or the number of processors]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Compile the rest after a failure
    #[arg(short, long)]
    pub keep_going: bool,
    /// Say what runs, line by line
    #[arg(short, long)]
    pub verbose: bool,
    /// Write events as JSON lines to standard output
    #[arg(long)]
    pub json: bool,
    /// Write the action graph as JSON to a file
    #[arg(long, value_name = "FILE")]
    pub save_plan: Option<PathBuf>,
    /// The clang for the backends, instead of the one that the link command names or implies
    #[arg(long, value_name = "CLANG")]
    pub compiler: Option<String>,
    /// An argument for every backend besides those that the link line implies; may be repeated
    #[arg(long = "backend-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub backend_args: Vec<String>,
    /// Shared storage for unpacked archive members
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// The link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

impl LinkArgs {
    /// The link command's words.
    pub fn words(&self) -> Vec<Word> {
        self.command.iter().cloned().map(word_of).collect()
    }

    /// How to link.
    pub fn options(&self) -> Options {
        Options {
            jobs: self.jobs.map(usize::from),
            keep_going: self.keep_going,
            style: Style { json: self.json, verbose: self.verbose },
            save_plan: self.save_plan.clone(),
            compiler: self.compiler.clone(),
            backend_args: self.backend_args.clone(),
            store: self.store.clone(),
        }
    }
}
