//! The program `distlto-opt`; see the library's `opt`.

use std::process::ExitCode;

use clap::Parser;
use distlto_commands::opt::{self, OptArgs};
use distlto_prepare::exit;

#[derive(Debug, Parser)]
#[command(name = "distlto-opt", version)]
struct Cli {
    #[command(flatten)]
    args: OptArgs,
}

fn main() -> ExitCode {
    let cli = exit::parse::<Cli>(std::env::args_os());
    exit::run(|| opt::run(&cli.args))
}
