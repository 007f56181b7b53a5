//! The errors of a link, and the output of failed tools.

use std::io;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use distlto_executor::cancel::Cancel;
use distlto_executor::hook::INSTALL;
use distlto_planner::buck2::error::{Buck2PlanError, MetaError};
use distlto_planner::compile_jobs::CompileError;
use distlto_planner::dtlto::JobFileError;
use distlto_planner::graph::error::GraphError;
use distlto_planner::index_only::IndexOnlyError;
use distlto_planner::link_command::LinkCommandError;
use distlto_planner::recorded_flags::RecordError;
use distlto_planner::response::ResponseError;
use distlto_planner::runner::{ToolError, ToolOutput};
use distlto_planner::slices::SliceError;
use distlto_prepare::error::PrepareError;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::show;
use distlto_prepare::private::Exposed;
use distlto_prepare::regular::NotRegular;
use distlto_prepare::write::to_standard_output;
use miette::Diagnostic;
use thiserror::Error;

use crate::completion::CompletionError;
use crate::plan::PlanCommandError;
use crate::remote::connect::RemoteError;
use crate::tool::exit_code;

/// Why a link failed.
#[derive(Debug, Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant is the error of the step that its type names")]
pub enum LinkError {
    /// The error of a step, with its code and its help.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Step(Box<dyn Diagnostic + Send + Sync>),
    #[error(transparent)]
    #[diagnostic(transparent)]
    IndexOnly(#[from] IndexOnlyError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    #[error("another link is writing the same output: process {holder} holds {}", path.display())]
    #[diagnostic(
        code(distlto::busy),
        help(
            "let one build step make each output; if both are wanted, run this one again when the other has ended"
        )
    )]
    Busy { path: PathBuf, holder: String },
    #[error("the state in {} is not used: {}", directory.display(), exposed.of(directory))]
    #[diagnostic(
        code(distlto::io),
        help("{}, or name another place with --state", remedy(directory, exposed))
    )]
    Exposed { directory: PathBuf, exposed: Exposed },
    #[error("{}: {source}", path.display())]
    #[diagnostic(forward(source))]
    SliceRequest { path: PathBuf, source: SliceError },
    #[error("{linker} ended well and wrote no program to {}", output.display())]
    #[diagnostic(
        code(distlto::failed),
        help("the earlier program is intact; check that the linker is what it seems to be")
    )]
    NoProgram { linker: String, output: PathBuf },
    #[error("this program is not at {} any more, where the linker would start it for the backends", path.display())]
    #[diagnostic(code(distlto::tool), help("{INSTALL}; do not replace it while it links"))]
    NoDistributor { path: PathBuf },
    #[error("the command is no link of ThinLTO bitcode: there is nothing to index")]
    #[diagnostic(
        code(distlto::usage),
        help("name a link command with inputs that were compiled with -flto=thin")
    )]
    NothingToIndex,
    #[error("the index shard of {module}: {source}")]
    #[diagnostic(code(distlto::bad_input), help("is the linker of an LLVM from 15 to 23?"))]
    Shard { module: String, source: distlto_planner::bitcode::BitcodeError },
    #[error("{lack}")]
    #[diagnostic(code(distlto::tool), help("{INSTALL}"))]
    NoHook { lack: String },
    #[error("{limit} open files at once are allowed, and {needed} are needed (RLIMIT_NOFILE, ulimit -n)")]
    #[diagnostic(code(distlto::limit), help("raise the limit: ulimit -n {needed}"))]
    FewFiles { limit: u64, needed: u64 },
    #[error("the linker of {output} does not ask for its objects: {why}")]
    #[diagnostic(
        code(distlto::failed),
        help("link it without --require and DISTLTO_REQUIRE; the linker links by itself then")
    )]
    NotServed { output: String, why: String },
    #[error("no link of the command has asked for its objects: {why}")]
    #[diagnostic(code(distlto::failed), help("or run it without --require and DISTLTO_REQUIRE"))]
    NoLinkServed { why: String },
    #[error("{module} gets no backend: {why}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("a linker for Windows leaves every module to its distributor; link without distlto")
    )]
    Unnamed { module: String, why: String },
    #[error("{linker} is not asked for its modules: {why}")]
    #[diagnostic(code(distlto::usage), help("link it with distlto link, which leaves it to the linker"))]
    LeftAlone { linker: String, why: String },
    #[error("the word {word:?} of the command is not UTF-8, and no graph can hold it")]
    #[diagnostic(code(distlto::usage), help("rename the file, or link with distlto link"))]
    NotText { word: String },
    #[error("the command has {count} links, and a graph is of one")]
    #[diagnostic(code(distlto::usage), help("name the command of one link, as the build system prints it"))]
    ManyLinks { count: usize },
    #[error("the linker of {output} runs in another directory than its command")]
    #[diagnostic(code(distlto::usage), help("run the command of the link itself, in the linker's directory"))]
    Elsewhere { output: String },
    #[error("{graph} is out of date: the object of {module} is another one now: {why}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("run the thin link again (distlto index), then the backends that it changes")
    )]
    StaleGraph { graph: Utf8PathBuf, module: String, why: String },
    #[error("{}, the object of {module}, is no object: it is {kind}", object.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("run its backend again: distlto run GRAPH, or the build system")
    )]
    NoObject { object: PathBuf, module: String, kind: String },
    #[error("the linker was not asked for the objects of {graph}: {why}")]
    #[diagnostic(code(distlto::tool), help("{INSTALL}; the command has to run ld.lld 15 or later"))]
    NotAsked { graph: Utf8PathBuf, why: String },
    #[error("the command is no thin link of lld's")]
    #[diagnostic(
        code(distlto::usage),
        help("name a command of ld.lld with --thinlto-index-only=LIST; any other link is `distlto link`'s")
    )]
    NoThinLink,
    #[error("the link was interrupted")]
    #[diagnostic(code(distlto::interrupted), help("run it again: finished objects are kept"))]
    Interrupted { exit_code: u8 },
}

/// Makes a [`LinkError`] of the error of a step, unchanged.
macro_rules! steps {
    ($($error:ty),*) => {
        $(impl From<$error> for LinkError {
            fn from(error: $error) -> Self {
                Self::Step(Box::new(error))
            }
        })*
    };
}

steps!(
    Buck2PlanError,
    CompletionError,
    GraphError,
    JobFileError,
    LinkCommandError,
    MetaError,
    PlanCommandError,
    PrepareError,
    RecordError,
    RemoteError,
    ResponseError,
    SliceError,
    ToolError
);

/// Another owner or mode would not help: others may have prepared the files that are there already.
fn remedy(directory: &Path, exposed: &Exposed) -> String {
    if exposed.is_about(directory) {
        format!("remove it (rm -r {})", directory.display())
    } else {
        exposed.remedy()
    }
}

impl LinkError {
    /// Whether this state directory cannot be used, so that another one serves.
    pub(super) fn is_of_place(&self) -> bool {
        match self {
            Self::Exposed { .. } => true,
            // Root's, for example, or where a home is not mounted; or somebody's directory in the place of a file.
            Self::Io(error) => {
                NotRegular::is_cause(&error.source)
                    || matches!(
                        error.source.kind(),
                        io::ErrorKind::PermissionDenied
                            | io::ErrorKind::ReadOnlyFilesystem
                            | io::ErrorKind::StorageFull
                            | io::ErrorKind::QuotaExceeded
                    )
            }
            _ => false,
        }
    }
}

/// Prints a failed tool's output, which says why, and returns its exit code. Returns any other error, or an interruption.
pub(crate) fn tool_failure(error: LinkError, cancel: &Cancel) -> Result<u8, LinkError> {
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() });
    }
    let (Some(output), Some(code)) = (error.tool_output(), error.tool_code()) else { return Err(error) };
    to_standard_output(&output.stdout)?;
    show(&output.stderr);
    Ok(code)
}

impl LinkError {
    /// Returns the output of a failed tool.
    pub fn tool_output(&self) -> Option<&ToolOutput> {
        match self {
            Self::IndexOnly(IndexOnlyError::Failed { output, .. }) => Some(output),
            Self::Compile(CompileError::Failed { output, .. }) => Some(output),
            _ => None,
        }
    }

    /// The exit code of a tool that failed.
    pub fn tool_code(&self) -> Option<u8> {
        let output = self.tool_output()?;
        Some(exit_code(output.status))
    }
}
