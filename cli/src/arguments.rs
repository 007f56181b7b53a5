//! The command line of `distlto`: the one source of its help texts and man pages.
//!
//! To add a subcommand, put an `Args` struct beside its code, with `#[command(after_help = exit::help())]`. Its doc
//! comments are the help and the man page. Then add a variant here, an arm in `main.rs` and a row in
//! `docs/reference.md`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand};
use distlto_commands::diff::DiffArgs;
use distlto_commands::distribute::DistributeArgs;
use distlto_commands::doctor::DoctorArgs;
use distlto_commands::explain::ExplainArgs;
use distlto_commands::header_list::HeaderListArgs;
use distlto_commands::index::IndexArgs;
use distlto_commands::index_only::KbuildIndexArgs;
use distlto_commands::inspect::InspectArgs;
use distlto_commands::jobs::JobsArgs;
use distlto_commands::kbuild_archive::KbuildArchiveArgs;
use distlto_commands::link::LinkOptions;
use distlto_commands::opt::OptArgs;
use distlto_commands::page::ReportArgs;
use distlto_commands::plan::PlanArgs;
use distlto_commands::remote::check::CheckArgs;
use distlto_commands::run::RunCommandArgs;
use distlto_commands::run_args::RunArgs;
use distlto_commands::stats::StatsArgs;
use distlto_commands::verify::VerifyArgs;
use distlto_planner::recorded_flags::FlagsSource;
use distlto_planner::state::VARIABLE;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;

use crate::cache::CacheCommandArgs;
use crate::completions::CompletionsArgs;
use crate::manual::ManualArgs;

/// Distributed ThinLTO for any build system, on stock LLVM
///
/// Before any other command, as in `distlto ninja` or `distlto clang++ ...`, it runs that command and has the backends of its
/// ThinLTO links run here. Options come from DISTLTO_LINK_OPTIONS then.
#[derive(Debug, Parser)]
#[command(name = "distlto", version, after_help = exit::PASSED_ON, after_long_help = exit::help())]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The subcommands. Each one's help text is that of its arguments.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    Link(LinkArgs),
    Run(RunCommandArgs),
    Prepare(distlto_prepare::command::Args),
    Index(IndexArgs),
    KbuildIndex(KbuildIndexArgs),
    KbuildArchive(KbuildArchiveArgs),
    Plan(PlanArgs),
    Inspect(InspectArgs),
    Explain(ExplainArgs),
    Diff(DiffArgs),
    Verify(VerifyArgs),
    Report(ReportArgs),
    Jobs(JobsArgs),
    Opt(OptArgs),
    Distribute(DistributeArgs),
    Cache(CacheCommandArgs),
    Stats(StatsArgs),
    Doctor(DoctorArgs),
    Remote(RemoteCommandArgs),
    Copy(distlto_prepare::copy::Args),
    #[command(name = "archive-mapper", alias = "archive_mapper")]
    ArchiveMapper(distlto_prepare::archive_mapper::Args),
    #[command(name = "compiler-stats-merger", alias = "compiler_stats_merger")]
    CompilerStatsMerger(distlto_prepare::compiler_statistics::Args),
    #[command(name = "header-list")]
    HeaderList(HeaderListArgs),
    #[command(hide = true)]
    Man(ManualArgs),
    #[command(hide = true)]
    Completions(CompletionsArgs),
    /// Any other word: a command to run, with its links served.
    #[command(external_subcommand)]
    Command(Vec<OsString>),
}

/// Ask servers of remote caching and execution
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct RemoteCommandArgs {
    /// What to do
    #[command(subcommand)]
    pub command: RemoteCommand,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    Check(CheckArgs),
}

/// Run a link command, and make the backend compilations of its ThinLTO links
///
/// The command runs as it is. Its ld.lld (15 or later, on Linux with glibc) asks for each module's object, which is a kept one or is
/// compiled, many at once. A linker that cannot ask links by itself. Objects and the record of the link are kept in the store: a second run with
/// nothing changed runs no backend and no linker, and an edit re-runs the backends whose module, imports or flags changed.
/// Backends share the job slots of a make that calls this program. The exit code is the command's own, but where a backend
/// failed.
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct LinkArgs {
    /// How the backends are run.
    #[command(flatten)]
    pub run: RunArgs,
    /// Compile with this clang instead of the one that the link command names or implies
    #[arg(long, value_name = "CLANG")]
    pub compiler: Option<String>,
    /// Give every backend this argument besides those that the link line implies; repeatable
    #[arg(long = "backend-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub backend_args: Vec<String>,
    /// Call locals that other modules import after their source file, not after their module's hash
    ///
    /// An edit then changes the objects of those modules alone that import the edited function. The others are kept: `opt` of the
    /// compiler's LLVM performs the import step of each module before its backend, and an object counts that was made of the
    /// same IR; a cache has results by it too. Names of source files are in the objects' symbols, so these differ from lld's own.
    /// Two modules of one source name turn it off for the link, with a warning that names them. clang 16 and later. See
    /// docs/precise.md.
    #[arg(long, env = "DISTLTO_STABLE_NAMES", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub stable_names: bool,
    /// Give backends the linker's shards as they are
    ///
    /// The linker's shards do not mark which symbols are local to the link. By default distlto adds the marks, so that objects
    /// equal those of the linker alone, byte for byte. With this option they equal those of lld's DTLTO.
    #[arg(long, hide_short_help = true)]
    pub plain_shards: bool,
    /// Compile each module with the flags that a build has recorded
    ///
    /// Those of the link line do not count then. `kbuild` takes them from .X.o.cmd beside each object; any other word is the
    /// path of a compile_commands.json.
    #[arg(long, value_name = "kbuild|FILE")]
    pub flags_from: Option<FlagsSource>,
    /// Keep the record of the link below this directory
    ///
    /// For sandboxes, where the home folder is temporary. Objects stay in the store. Any number of links may share the directory: the folder
    /// is named after the output and its place, as in prog-0123456789ab. `distlto inspect --state DIR OUTPUT` finds it.
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// Take the objects that the backends of this graph have made: its last action
    ///
    /// Each module's shard is compared with the one that its object was made from; a difference is an error that names the module.
    /// Nothing is compiled, and no state, store or server is used. docs/action-graph.md describes the graph.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "stable_names", "flags_from"])]
    pub graph: Option<PathBuf>,
    /// Say which backends would run, why, and for how long
    ///
    /// The thin link is performed, and nothing else. Nothing is written.
    #[arg(long)]
    pub dry_run: bool,
    /// Fail a link with bitcode if its linker does not ask for its objects
    ///
    /// The error says why, and the earlier program is left. Without this option the linker links by itself then.
    #[arg(long, env = "DISTLTO_REQUIRE", value_parser = BoolishValueParser::new(), hide_short_help = true)]
    pub require: bool,
    /// The link command: a compiler driver or ld.lld with its arguments
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

impl LinkArgs {
    /// The link command's words.
    pub fn words(&self) -> Vec<Word> {
        self.command.iter().cloned().map(word_of).collect()
    }

    /// How to link.
    pub fn options(&self) -> LinkOptions {
        LinkOptions {
            run: self.run.clone(),
            compiler: self.compiler.clone(),
            backend_args: self.backend_args.clone(),
            stable_names: self.stable_names,
            plain_shards: self.plain_shards,
            state: self.state.clone(),
            flags_from: self.flags_from.clone(),
            graph: self.graph.clone(),
            dry_run: self.dry_run,
            require: self.require,
        }
    }
}
