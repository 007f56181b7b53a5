//! `distlto completions`: the completion script of a shell, made from the definitions of the command line.
//!
//! Names no option itself.

use clap::{Args, Command};
use clap_complete::Shell;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::to_standard_output;

/// Write completions of distlto for a shell on standard output
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Writes those of a command.
pub fn run(args: &CompletionsArgs, mut command: Command) -> Result<u8, IoError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "distlto", &mut text);
    to_standard_output(&text)?;
    Ok(0)
}
