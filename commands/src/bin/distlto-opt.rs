//! The program `distlto-opt`; see the library's `opt`.

use std::process::ExitCode;

use clap::Parser;
use distlto_commands::opt::{self, OptArgs};

#[derive(Debug, Parser)]
#[command(name = "distlto-opt", version)]
struct Cli {
    #[command(flatten)]
    args: OptArgs,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    distlto_prepare::exit::run(|| opt::run(&cli.args))
}
