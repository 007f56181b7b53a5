//! The program `distlto-prepare`: unpacks an archive for a distributed ThinLTO link.
//!
//! Only mounts [`distlto_prepare::command`].

use std::process::ExitCode;

use clap::Parser;
use distlto_prepare::{command, exit, threads};

#[derive(Parser)]
#[command(name = "distlto-prepare", version)]
struct CommandLine {
    #[command(flatten)]
    args: command::PrepareArgs,
}

fn main() -> ExitCode {
    let command_line = exit::parse::<CommandLine>(std::env::args_os());
    threads::begin();
    exit::run(|| command::run(&command_line.args))
}
