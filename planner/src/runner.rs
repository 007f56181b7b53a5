//! The planner's interface to tools: the driver that prints its link line, and the thin link.
//!
//! The planner starts no process. Its caller passes a [`Runner`], which owns process groups, cancellation and fork
//! servers.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use miette::Diagnostic;
use thiserror::Error;

use crate::words::Word;

/// The output and exit status of a tool.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// Its exit code or signal.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Runs tools in the link's working directory and waits for them.
pub trait Runner: Sync {
    /// Runs a command, program first. An error means that it could not be started or waited for.
    fn run(&self, command: &[Word]) -> io::Result<ToolOutput>;
}

/// A tool that did not do its part.
#[derive(Debug, Error, Diagnostic)]
pub enum ToolError {
    /// A program could not be started.
    #[error("cannot run {program}: {source}")]
    #[diagnostic(code(distlto::tool), help("check that it is installed and in PATH"))]
    Start {
        /// The program as it was named.
        program: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A driver answered `-###` with success and no commands.
    #[error("{program} -### printed no commands")]
    #[diagnostic(
        code(distlto::tool),
        help(
            "distlto asks the compiler driver for its link line; name a clang or a gcc that works, or ld.lld itself"
        )
    )]
    NoCommands {
        /// The program as it was named.
        program: String,
    },
    /// A link of bitcode by a linker that is not lld.
    #[error("the link has bitcode inputs, such as {}, and its linker is {linker}", input.display())]
    #[diagnostic(code(distlto::tool), help("link with ld.lld: add -fuse-ld=lld to the link flags"))]
    NotLld {
        /// The linker as the driver names it.
        linker: String,
        /// The first bitcode input.
        input: PathBuf,
    },
    /// No clang for the backends.
    #[error("no clang was found beside {linker}, nor in PATH")]
    #[diagnostic(
        code(distlto::tool),
        help("install the clang of the linker's LLVM version, or name it with --compiler")
    )]
    NoCompiler {
        /// The linker.
        linker: String,
    },
}
