//! The program `distlto-plan`: shows a distributed ThinLTO link, or writes it for another program to run.
//!
//! Parses arguments and prints errors; the rest is [`distlto_commands::plan`].

use std::process::ExitCode;

use clap::Parser;
use distlto_commands::plan::{PlanArgs, run};
use distlto_prepare::exit;
use distlto_prepare::threads;

#[derive(Parser)]
#[command(name = "distlto-plan", version)]
struct Arguments {
    #[command(flatten)]
    plan: PlanArgs,
}

fn main() -> ExitCode {
    let arguments = exit::parse::<Arguments>(std::env::args_os());
    threads::begin();
    exit::run(|| run(arguments.plan))
}
