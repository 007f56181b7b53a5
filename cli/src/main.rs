//! `distlto`, the one command for people. Under a name such as `distlto-clang++` it stands in for that linker.
//!
//! Holds no logic: reads arguments and calls the crate that does the work.

mod stand_in;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;
use distlto_commands::configuration::{self, options};
use distlto_commands::link::error::LinkError;
use distlto_commands::link::options::LinkOptions;
use distlto_commands::remote::check;
use distlto_commands::static_linker::become_linker;
use distlto_commands::{
    demo, diff, distribute, doctor, explain, header_list, index, index_only, inspect, kbuild_archive, link,
    opt, page, run, stats, verify,
};
use distlto_executor::cancel::{Cancel, cancel_on_signals};
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, word_of};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::threads;

use distlto::arguments::{Cli, CliCommand, RemoteCommand};
use distlto::{cache, completions};

fn main() -> ExitCode {
    // The linker starts this program for its backends.
    threads::begin();
    if stand_in::is_static_linker() {
        return static_linker();
    }
    if let Some(command) = stand_in::command() {
        return run_link(&command, &stand_in::options());
    }
    match options::parse::<Cli>(arguments()).command {
        CliCommand::Link(args) => run_link(&args.words(), &args.options()),
        CliCommand::Command(words) => {
            let words: Vec<Word> = words.into_iter().map(word_of).collect();
            check_program(&words);
            run_link(&words, &LinkOptions { is_short_form: true, ..stand_in::options() })
        }
        CliCommand::Run(args) => watching(|cancel| exit::run(|| run::run(&args, cancel))),
        CliCommand::Prepare(args) => exit::run(|| distlto_prepare::command::run(&args)),
        CliCommand::Index(args) => with_cancel(|cancel| index::run(&args, cancel)),
        CliCommand::KbuildIndex(args) => with_cancel(|cancel| index_only::run(&args, cancel)),
        CliCommand::KbuildArchive(args) => {
            watching(|cancel| exit::run(|| kbuild_archive::run(&args, cancel)))
        }
        CliCommand::Plan(args) => exit::run(|| distlto_commands::plan::run(args)),
        CliCommand::Inspect(args) => watching(|cancel| exit::run(|| inspect::run(&args, cancel))),
        CliCommand::Explain(args) => watching(|cancel| exit::run(|| explain::run(&args, cancel))),
        CliCommand::Diff(args) => exit::run(|| diff::run(&args)),
        CliCommand::Verify(args) => watching(|cancel| exit::run(|| verify::run(&args, cancel))),
        CliCommand::Report(args) => exit::run(|| page::run(&args)),
        CliCommand::Opt(args) => exit::run(|| opt::run(&args)),
        CliCommand::Distribute(args) => watching(|cancel| exit::run(|| distribute::run(&args, cancel))),
        CliCommand::Cache(args) => exit::run(|| cache::run(&args)),
        CliCommand::Stats(args) => exit::run(|| stats::run(&args)),
        CliCommand::Config(args) => exit::run(|| configuration::run(&args)),
        CliCommand::Doctor(args) => watching(|cancel| exit::run(|| doctor::run(&args, cancel))),
        CliCommand::Demo(args) => watching(|cancel| exit::run(|| demo::run(&args, cancel))),
        CliCommand::Remote(args) => watching(|cancel| match &args.command {
            RemoteCommand::Check(args) => exit::run(|| check::run(args, cancel)),
        }),
        CliCommand::Copy(args) => exit::run(|| distlto_prepare::copy::run(&args)),
        CliCommand::ArchiveMapper(args) => exit::run(|| distlto_prepare::archive_mapper::run(&args)),
        CliCommand::HeaderList(args) => watching(|cancel| exit::run(|| header_list::run(&args, cancel))),
        CliCommand::CompilerStatsMerger(args) => {
            exit::run(|| distlto_prepare::compiler_statistics::run(&args))
        }
        CliCommand::Completions(args) => exit::run(|| completions::run(&args, Cli::command())),
    }
}

/// Becomes a linker that loads no library, with the command line of the service that serves the build.
fn static_linker() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().unwrap_or_default();
    let error = become_linker(std::iter::once(program.clone()).chain(arguments));
    exit::run(|| Err(IoError::on("start", Path::new(&program))(error)))
}

/// Ends the process as any wrong command line does, where a command's program is nowhere: it may be a mistyped subcommand.
fn check_program(words: &[Word]) {
    let name = words.first().map(|word| lossy(word)).unwrap_or_default();
    if program_file(Path::new(&name)).is_none() {
        let command = Cli::command();
        let names = command.get_subcommands().map(clap::Command::get_name);
        let similar = options::similar(&name, names).map(|name| format!("; did you mean '{name}'?"));
        let text =
            format!("'{name}' is no subcommand, and no program in PATH{}", similar.unwrap_or_default());
        exit::refuse(Cli::command().error(ErrorKind::InvalidSubcommand, text));
    }
}

/// The arguments of this process, with those that the environment holds for its subcommand.
fn arguments() -> Vec<OsString> {
    let arguments = stand_in::arguments();
    match arguments.get(1) {
        Some(name) if name == "distribute" => distribute::with_environment(arguments, 2),
        _ => arguments,
    }
}

fn run_link(words: &[Vec<u8>], options: &LinkOptions) -> ExitCode {
    with_cancel(|cancel| link::link(words, options, cancel))
}

/// Runs `body`, which a signal may cancel. Before it returns, children have ended and temporaries are removed.
fn with_cancel(body: impl FnOnce(&Cancel) -> Result<u8, LinkError>) -> ExitCode {
    watching(|cancel| match body(cancel) {
        Err(error @ LinkError::Interrupted { exit_code }) => {
            exit::print(&error);
            ExitCode::from(exit_code)
        }
        result => exit::run(|| result),
    })
}

fn watching(body: impl FnOnce(&Cancel) -> ExitCode) -> ExitCode {
    match cancel_on_signals() {
        Ok(cancel) => body(&cancel),
        Err(source) => exit::run(|| Err(IoError::on("watch for signals of", "this process")(source))),
    }
}
