//! The command line of `distlto verify`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use distlto_prepare::exit;

/// Say whether distlto makes of a link what lld makes of it in process
///
/// The command is linked by lld in process and by distlto with `--exact-names`, each into a scratch directory: outputs of the
/// command are not touched.
/// Compared are exit status and bytes, and where these differ objects, sections and symbols. The exit code is 0 if both are
/// equal, or differ for a reason that is told, and 1 if they do not. A link that fails in both ways ends with lld's exit code.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct VerifyArgs {
    /// Compile with this clang instead of the one that the link command names or implies
    #[arg(long, value_name = "CLANG")]
    pub compiler: Option<String>,
    /// Give every backend this argument besides those that the link line implies; repeatable
    #[arg(long = "backend-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub backend_args: Vec<String>,
    /// Link in this directory, which is empty or missing, and leave what was made there
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print JSON, times in microseconds and sizes in bytes
    #[arg(long)]
    pub json: bool,
    /// The link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}
