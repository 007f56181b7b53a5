//! `cargo xtask campaign`: the random campaigns of `distlto_tests::campaign`, with their counts.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use distlto_tests::campaign::edits::{EDITS, edits};
use distlto_tests::campaign::flags::flags;
use distlto_tests::campaign::formats::{self, Format};
use distlto_tests::campaign::index::index;
use distlto_tests::campaign::links::{Request, links};
use distlto_tests::campaign::options::options;
use distlto_tests::campaign::reads::reads;
use distlto_tests::campaign::remote::remote;
use distlto_tests::campaign::service::service;
use distlto_tests::campaign::shared::shared;
use distlto_tests::campaign::stock::stock;
use distlto_tests::campaign::store::store;
use distlto_tests::campaign::traces::traces;
use distlto_tests::toolchain::{Toolchain, profile_dir};

/// Links random programs in every way, and compares them with lld's.
#[derive(Parser)]
#[command(
    name = "cargo xtask campaign",
    bin_name = "cargo xtask campaign",
    after_help = "`precise` is a campaign of real programs with options of its own: cargo xtask campaign precise --help"
)]
struct Arguments {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    /// One link of each program in each way: status, behaviour, order of constructors, bytes.
    Links(Formatted),
    /// Programs that are edited and linked again, five edits each, against fresh links; --count is of edits.
    Edits(Formatted),
    /// Links that read all kinds of things, of which one changes at a time, against fresh links; eight changes each.
    Reads(Common),
    /// What the record of a link says that its processes have read, against strace.
    Traces(Common),
    /// So many links at once on one store, some of them killed, while the store is cleaned.
    Store(Common),
    /// Two links of each program with a server that errs, against one without.
    Remote(Common),
    /// Whole links that two checkouts share by a server, against links without; nine states each.
    Shared(Common),
    /// Several links at once, in several directories, with any number of jobs; killed in the middle; with other preloaded libraries.
    Service(Common),
    /// Thin links and backends for another build's rules, against lld and clang; two edits each.
    Index(Common),
    /// Two modules for a random machine with random flags, in each way: the program byte for byte.
    Flags(Common),
    /// A few modules with random options of the linker's help and random values: exit code, messages and files.
    Options(Common),
    /// Buck2's Python tools against those of distlto: an archive and a link for gnu and for darwin.
    Stock {
        #[command(flatten)]
        common: Common,
        /// The directory of the Python tools: prelude/cxx/dist_lto/tools of Buck2.
        #[arg(long, value_name = "DIR")]
        tools: PathBuf,
    },
}

#[derive(Args)]
struct Formatted {
    #[command(flatten)]
    common: Common,
    /// Programs of this format instead of ELF's, against their linker alone.
    #[arg(long)]
    format: Option<Format>,
}

#[derive(Args)]
struct Common {
    /// How many.
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// The first seed; the same seed makes the same program.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many programs at a time.
    #[arg(long, short, default_value_t = 2)]
    jobs: usize,
    /// Keep sources, objects, programs and commands.sh below this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Common {
    fn request(self) -> Result<Request> {
        let Self { count, seed, jobs, keep } = self;
        let directory = match &keep {
            Some(directory) => std::path::absolute(directory)?,
            None => profile_dir()?.join("campaign"),
        };
        Ok(Request { seed, count, jobs, directory, keep: keep.is_some() })
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let toolchain = Toolchain::from_env()?;
    match Arguments::parse().campaign {
        Campaign::Links(Formatted { common, format: Some(format) }) => {
            let found = formats::links(&common.request()?, toolchain, format, 0)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Edits(Formatted { common, format: Some(format) }) => {
            let request = common.request()?;
            let request = Request { count: request.count.div_ceil(EDITS), ..request };
            let found = formats::links(&request, toolchain, format, EDITS)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Links(Formatted { common, .. }) => {
            let found = links(&common.request()?, toolchain)?;
            println!("{}", found.table());
            Ok(found.messages.is_empty())
        }
        Campaign::Edits(Formatted { common, .. }) => {
            let found = edits(&common.request()?, toolchain)?;
            println!("{}", found.table());
            Ok(found.messages.is_empty())
        }
        Campaign::Index(common) => {
            let found = index(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Flags(common) => {
            let found = flags(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Options(common) => {
            let found = options(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Stock { common, tools } => {
            let found = stock(&common.request()?, toolchain, &tools)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Service(common) => {
            let found = service(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.wrong.is_empty())
        }
        Campaign::Reads(common) => {
            let found = reads(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Shared(common) => {
            let found = shared(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.messages.is_empty())
        }
        Campaign::Traces(common) => {
            let found = traces(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.missing.is_empty())
        }
        Campaign::Store(common) => {
            let found = store(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.wrong.is_empty())
        }
        Campaign::Remote(common) => {
            let found = remote(&common.request()?, toolchain)?;
            println!("{found}");
            Ok(found.wrong.is_empty())
        }
    }
}
