//! `distlto completions`: what a shell needs to complete the command line, made from its own definitions.
//!
//! Knows no option by name.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::to_standard_output;

use crate::arguments::Cli;

/// Write completions of distlto for a shell on standard output
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Writes them.
pub fn run(args: &CompletionsArgs) -> Result<u8, IoError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "distlto", &mut text);
    to_standard_output(&text)?;
    Ok(0)
}
