//! The command line of `distlto`: the one source of its help texts and man pages.
//!
//! To add a subcommand, put an `Args` struct beside its code, with `#[command(after_help = exit::help())]`. Its doc
//! comments are the help and the man page. Then add a variant here, an arm in `main.rs` and a row in
//! `docs/reference.md`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use distlto_commands::configuration::ConfigArgs;
use distlto_commands::demo::DemoArgs;
use distlto_commands::diff::DiffArgs;
use distlto_commands::distribute::DistributeArgs;
use distlto_commands::doctor::DoctorArgs;
use distlto_commands::explain::ExplainArgs;
use distlto_commands::header_list::HeaderListArgs;
use distlto_commands::index::IndexArgs;
use distlto_commands::index_only::KbuildIndexArgs;
use distlto_commands::inspect::InspectArgs;
use distlto_commands::kbuild_archive::KbuildArchiveArgs;
use distlto_commands::link::args::LinkArgs;
use distlto_commands::opt::OptArgs;
use distlto_commands::page::ReportArgs;
use distlto_commands::plan::PlanArgs;
use distlto_commands::remote::check::CheckArgs;
use distlto_commands::run::RunCommandArgs;
use distlto_commands::stats::StatsArgs;
use distlto_commands::verify::args::VerifyArgs;
use distlto_prepare::exit;

use crate::cache::CacheCommandArgs;
use crate::completions::CompletionsArgs;

/// ccache for ThinLTO links: distributed ThinLTO for any build system, on stock LLVM
///
/// Before any other command, as in `distlto ninja` or `distlto clang++ ...`, it runs that command and has the backends of its
/// ThinLTO links run here. Options come from DISTLTO_LINK_OPTIONS then.
#[derive(Debug, Parser)]
#[command(name = "distlto", version, help_template = template(), after_help = exit::PASSED_ON, after_long_help = exit::help())]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The subcommands for people, by their use. All others are for build rules.
const GROUPS: [(&str, &[&str]); 3] = [
    ("Daily", &["link", "stats", "cache", "config", "doctor", "demo"]),
    ("Why", &["inspect", "explain", "diff", "report", "verify", "plan"]),
    ("Servers", &["remote"]),
];

/// The layout of the help of distlto itself.
fn template() -> String {
    let all = CliCommand::augment_subcommands(clap::Command::new("distlto"));
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        text += &format!("\n{heading}:\n");
        for command in names.iter().filter_map(|name| all.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            text += &format!("  {:8} {about}\n", command.get_name());
        }
    }
    let is_named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others =
        all.get_subcommands().filter(|command| !command.is_hide_set() && !is_named(command.get_name()));
    let others: Vec<&str> = others.map(clap::Command::get_name).collect();
    text += &format!("\nFor build rules (distlto help NAME):\n  {}\n", others.join(", "));
    if let Some(guides) = guides() {
        text += &format!("\nGuides: {}\n", guides.display());
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// The folder of the documents that messages name, where this program is installed.
fn guides() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let prefix = program.parent()?.parent()?;
    Some(prefix.join("share/doc/distlto")).filter(|folder| folder.is_dir())
}

/// The subcommands. Each one's help text is that of its arguments.
#[expect(missing_docs, reason = "a variant's text would replace that of its arguments")]
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    Link(LinkArgs),
    Run(RunCommandArgs),
    Prepare(distlto_prepare::command::PrepareArgs),
    Index(IndexArgs),
    KbuildIndex(KbuildIndexArgs),
    KbuildArchive(KbuildArchiveArgs),
    Plan(PlanArgs),
    Inspect(InspectArgs),
    Explain(ExplainArgs),
    Diff(DiffArgs),
    Verify(VerifyArgs),
    Report(ReportArgs),
    Opt(OptArgs),
    Distribute(DistributeArgs),
    Cache(CacheCommandArgs),
    Stats(StatsArgs),
    Config(ConfigArgs),
    Doctor(DoctorArgs),
    Demo(DemoArgs),
    Remote(RemoteCommandArgs),
    Copy(distlto_prepare::copy::CopyArgs),
    #[command(name = "archive-mapper", alias = "archive_mapper")]
    ArchiveMapper(distlto_prepare::archive_mapper::ArchiveMapperArgs),
    #[command(name = "compiler-stats-merger", alias = "compiler_stats_merger")]
    CompilerStatsMerger(distlto_prepare::compiler_statistics::StatisticsArgs),
    #[command(name = "header-list")]
    HeaderList(HeaderListArgs),
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
#[expect(missing_docs, reason = "a variant's text would replace that of its arguments")]
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    Check(CheckArgs),
}
