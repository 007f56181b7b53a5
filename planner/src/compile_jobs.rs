//! Source files on a driver's link command: compiled first, into the state directory.
//!
//! The driver names a temporary object for each; here each gets a stable name, so that its module id is the same in
//! every run. Does not depend on the content of the compilations.

use std::borrow::Cow;

use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;
use miette::Diagnostic;
use thiserror::Error;

use crate::link_command::LinkCommand;
use crate::link_line::LinkLine;
use crate::runner::{Runner, ToolError, ToolOutput};
use crate::state::Place;
use crate::words::{Word, lossy};

/// Why sources could not be compiled.
#[derive(Debug, Error, Diagnostic)]
pub enum CompileError {
    /// The compiler could not be run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
    /// The directory for objects could not be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// The compiler failed; its own messages and exit code are the user's.
    #[error("compiling the sources on the link line failed: {program} ended with {}", output.status)]
    #[diagnostic(code(distlto::failed), help("the compiler's own messages above say why"))]
    Failed {
        /// The compiler.
        program: String,
        /// Its output and exit status.
        output: Box<ToolOutput>,
    },
}

/// Runs the compilations of a link command; returns the link's line with the objects in place of the driver's
/// temporary files.
pub fn run<'l>(
    link: &'l LinkCommand,
    state: &str,
    runner: &dyn Runner,
) -> Result<Cow<'l, LinkLine>, CompileError> {
    if link.compilations.is_empty() {
        return Ok(Cow::Borrowed(&link.line));
    }
    let directory = Place::Compiled.of(state);
    std::fs::create_dir_all(&directory).map_err(IoError::on("create directory", &directory))?;
    let renames: Vec<(Word, Word)> = link
        .compilations
        .iter()
        .enumerate()
        .filter_map(|(number, command)| Some((output_of(command)?, stable_name(&directory, number, command))))
        .collect();
    let rename = |word: &mut Word| {
        if let Some((_, stable)) = renames.iter().find(|(temporary, _)| temporary == word) {
            word.clone_from(stable);
        }
    };
    for command in &link.compilations {
        let mut command = command.clone();
        command.iter_mut().for_each(rename);
        let program = lossy(&command[0]);
        let output =
            runner.run(&command).map_err(|source| ToolError::Start { program: program.clone(), source })?;
        if !output.status.success() {
            return Err(CompileError::Failed { program, output: Box::new(output) });
        }
    }
    Ok(Cow::Owned(link.line.clone().with_inputs(rename)))
}

fn output_of(command: &[Word]) -> Option<Word> {
    let at = command.iter().rposition(|word| word == b"-o")?;
    command.get(at + 1).cloned()
}

/// Returns the stable name of an object. `-main-file-name` gives its source; the number distinguishes sources of one
/// name.
fn stable_name(directory: &str, number: usize, command: &[Word]) -> Word {
    let source = command
        .iter()
        .position(|word| word == b"-main-file-name")
        .and_then(|at| command.get(at + 1))
        .map(|name| escape_path(name))
        .unwrap_or_default();
    format!("{directory}/{number}-{source}.o").into_bytes()
}
