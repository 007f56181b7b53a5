//! Runs the tools that the planner asks for, with process groups and cancellation as for every child.
//!
//! Does not depend on the commands.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::words::Word;
use distlto_prepare::limits::SystemLimit;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::{self, Command, GRACE, Spawner};
use distlto_executor::execute::response_file;

/// How much of a tool's output is kept: a linker's trace names every file of a link.
pub const KEEP: usize = 256 << 20;

/// Returns the exit code of a command after a tool: the tool's own, or 1 if it was killed.
pub fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Runs tools on this machine.
pub struct ToolRunner<'a> {
    /// Starts them.
    pub spawner: &'a dyn Spawner,
    /// Ends them early; the caller looks at it when a tool was ended by a signal.
    pub cancel: &'a Cancel,
    /// Where they run; the current directory when `None`.
    pub directory: Option<&'a Path>,
}

impl Runner for ToolRunner<'_> {
    fn run(&self, command: &[Word]) -> io::Result<ToolOutput> {
        let fitting = response_file::fit(command).map_err(|error| error.source)?;
        let command = Command::of_words(&fitting.words, self.directory)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a command without words"))?;
        self.once(&command)
    }
}

impl ToolRunner<'_> {
    /// Runs a command. It is an error of the system that it fails for want of threads and the like.
    fn once(&self, command: &Command) -> io::Result<ToolOutput> {
        let finished = process::run_keeping(command, self.spawner, self.cancel, GRACE, KEEP)?;
        let (status, stderr) = (finished.ended.status, finished.stderr.into_bytes());
        match SystemLimit::in_output(&stderr).filter(|_| !status.success()) {
            Some(lack) => Err(lack.into()),
            None => Ok(ToolOutput { status, stdout: finished.stdout.into_bytes(), stderr }),
        }
    }
}
