//! The program `distlto-distribute`; see the library's `distribute`.

use std::process::ExitCode;

use clap::Parser;
use distlto_commands::configuration::options;
use distlto_commands::distribute::{self, DistributeArgs};
use distlto_executor::cancel::cancel_on_signals;
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::threads;

#[derive(Debug, Parser)]
#[command(name = "distlto-distribute", version)]
struct Cli {
    #[command(flatten)]
    args: DistributeArgs,
}

fn main() -> ExitCode {
    let cli = options::parse::<Cli>(distribute::with_environment(std::env::args_os().collect(), 1));
    threads::begin();
    match cancel_on_signals() {
        Ok(cancel) => exit::run(|| distribute::run(&cli.args, &cancel)),
        Err(source) => exit::run(|| Err(IoError::on("watch for signals of", "this process")(source))),
    }
}
