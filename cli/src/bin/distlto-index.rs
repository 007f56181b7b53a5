//! The program `distlto-index`; see the library's `index`.

use std::process::ExitCode;

use clap::Parser;
use distlto_commands::configuration::options;
use distlto_commands::index::{self, IndexArgs};
use distlto_executor::cancel::cancel_on_signals;
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::threads;

#[derive(Debug, Parser)]
#[command(name = "distlto-index", version)]
struct Cli {
    #[command(flatten)]
    args: IndexArgs,
}

fn main() -> ExitCode {
    let cli = options::parse::<Cli>(std::env::args_os().collect());
    threads::begin();
    match cancel_on_signals() {
        Ok(cancel) => exit::run(|| index::run(&cli.args, &cancel)),
        Err(source) => exit::run(|| Err(IoError::on("watch for signals of", "this process")(source))),
    }
}
