//! The program `distlto-opt`; see the library's `opt`.

use std::process::ExitCode;

use clap::Parser;
use distlto_commands::opt::{self, OptArgs};
use distlto_prepare::exit;
use distlto_prepare::threads;

#[derive(Debug, Parser)]
#[command(name = "distlto-opt", version)]
struct Cli {
    #[command(flatten)]
    args: OptArgs,
}

fn main() -> ExitCode {
    let cli = exit::parse::<Cli>(std::env::args_os());
    threads::begin();
    exit::run(|| opt::run(&cli.args))
}
