//! A whole distributed ThinLTO link, from the user's command to the program: the spine of `distlto link`.
//!
//! Is anything to do? If so, the command is run and its linkers are served ([`serve`](crate::serve)). This module
//! only knows the order and the record for the next run. That lies in the store, and an advisory lock on it makes a
//! second run of the same link an error.

pub mod args;
pub(crate) mod dry_run;
pub mod error;
pub(crate) mod file_state;
pub(crate) mod identity;
pub(crate) mod line;
pub(crate) mod lock;
pub mod options;
pub(crate) mod reads;
pub mod state;
pub(crate) mod unchanged;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use distlto_planner::index_only::IndexOnly;
use distlto_planner::invocation::{ProgramKind, program};
use distlto_planner::link_command::{self, GivenCommand, LinkCommand, Resolved};
use distlto_planner::recorded_flags::FlagRecords;
use distlto_planner::runner::{Runner, ToolError, ToolOutput};
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::{note, say};
use distlto_prepare::warning::warn;
use distlto_prepare::write::to_standard_output;

use crate::cargo::{self, Preparation};
use crate::index_only;
use crate::plan::GraphSource;
use crate::remote::connect::RemoteError;
use crate::serve::build::{Build, ServicePlace, Task};
use crate::serve::command::CommandEnd;
use crate::serve::graph::GraphObjects;
use crate::serve::{is_served, run, run_once};
use crate::stats;
use crate::tool::ToolRunner;
use distlto_exec::kind::{self, Kind};
use distlto_executor::cancel::Cancel;
use distlto_executor::program_files;
use distlto_record::cause::{FailureCause, FailureKind};
use distlto_record::progress::{Plan, Progress, ProgressEvent, Reporter};
use distlto_record::report::Counts;
use distlto_record::usage::LinkUsage;

use error::{LinkError, tool_failure};
use options::LinkOptions;
use state::LinkState;

/// Runs a command and answers its linkers; returns the exit code to end with.
pub fn link(command: &[Word], options: &LinkOptions, cancel: &Cancel) -> Result<u8, LinkError> {
    if let Some(graph) = &options.graph {
        return of_graph(graph, command, options, cancel);
    }
    let spawner = options.run.spawner();
    let reporter = Arc::new(dry_run::reporter(options)?);
    let given = GivenCommand::new(command);
    if let Some((asked, link)) = thin_link_alone(&given)? {
        let runner = ToolRunner { spawner: &spawner, cancel, directory: None };
        let done = index_only::perform(&asked, &link, &runner, options.run.verbose > 0);
        return done.or_else(|error| tool_failure(error, cancel));
    }
    if !options.dry_run && is_served() {
        // The links of this command are links of the other one.
        return Err(replace_process(command));
    }
    if let Some(source) = &options.flags_from {
        FlagRecords::open(source)?;
    }
    // The command itself reports a response file that cannot be read.
    let expanded = given.expanded().unwrap_or(command);
    let key = state::key(expanded, options);
    let known = KnownLink::of(command, expanded, options)?;
    let is_seen_through = is_seen_through(command);
    if let Some(state) = known.state.as_ref().filter(|_| is_seen_through)
        && let Some(unchanged) = unchanged::find(state.directory(), &key)
    {
        return leave_unchanged(unchanged, state, &known.output, options, &reporter);
    }
    options.run.remote.check().map_err(RemoteError::from)?;
    let place = match ServicePlace::make() {
        Ok(place) => place,
        Err(error) if options.require || options.dry_run => return Err(error),
        Err(error) => {
            if !options.run.quiet {
                warn(format_args!("{error}: the linker links by itself"));
            }
            drop(known);
            return Err(replace_process(command));
        }
    };
    let task = if options.dry_run { Task::Preview } else { Task::Link };
    let tools = (&spawner, cancel);
    let mut build = Build::new((command, key), options, tools, reporter, &place, task);
    build.single = known.record;
    let cargo = if options.plain { None } else { of_cargo(command, options) };
    // A line on cargo has given the reason, or the user wants links without bitcode.
    let is_explained = options.plain || cargo.is_some();
    build.variables = cargo.unwrap_or_default();
    build.is_observed = is_seen_through && !options.dry_run;
    build.seen().held = known.state;
    let mut end = run(&build)?;
    if is_explained {
        end.seen.native.clear();
    }
    match options.dry_run {
        true => dry_run_end(end),
        // A launcher of one link stands in scripts that take any output for a warning.
        false => conclude(&build, end, known.is_build),
    }
}

/// The link that a command seems to be, as far as its words say.
struct KnownLink {
    output: String,
    /// The directory for its record, and that as the last link has left it.
    record: Option<String>,
    state: Option<LinkState>,
    /// Whether the command is any other program, which may link many times.
    is_build: bool,
}

impl KnownLink {
    fn of(command: &[Word], expanded: &[Word], options: &LinkOptions) -> Result<Self, LinkError> {
        let kind = program(&lossy(&command[0]), command.get(1).map(Vec::as_slice));
        let is_linker = matches!(kind, ProgramKind::Clang | ProgramKind::Lld);
        let output = state::guess_output(expanded).or_else(|| is_linker.then(|| "a.out".to_owned()));
        let record = output.as_deref().and_then(|output| options.record_of(output));
        let there = record.as_deref().filter(|record| Path::new(record).is_dir());
        let state = there.map(|directory| LinkState::open_or_scratch(Some(directory))).transpose()?;
        let is_build = kind == ProgramKind::OtherDriver && output.is_none();
        Ok(Self { output: output.unwrap_or_default(), record, state, is_build })
    }
}

/// Reports the end of a command, and returns the exit code.
fn conclude(build: &Build<'_>, end: CommandEnd, is_build: bool) -> Result<u8, LinkError> {
    let CommandEnd { code, seen, is_concluded, .. } = end;
    if let (Some(state), false, true) = (&seen.held, is_concluded, code != 0) {
        let text = format!("{} ended with exit code {code}", lossy(&build.command[0]));
        let (kind, class) = (FailureKind::Failed, "distlto::failed".to_owned());
        let cause = FailureCause { kind, class, text, help: None };
        build.reporter.keep(Path::new(state.directory()), code, Some(cause));
    }
    if !seen.has_linker {
        build.reporter.report(ProgressEvent::Noted(
            "the command has run no linker that can be asked, such as ld.lld 15 or later",
        ));
    }
    let is_printed = || io::stderr().is_terminal() || build.has_passed_through() || build.keeps_nothing();
    let printed = match is_build || build.options.is_short_form && is_printed() {
        true => build.print_usage(&seen.native),
        false => Ok(()),
    };
    if let (Some(lld), true) = (&seen.hidden_lld, code != 0) {
        note(format_args!(
            "gcc -fuse-ld=lld looks for ld.lld, and PATH has none: put a symbolic link ld.lld to {} there, or use clang",
            lld.display()
        ));
    }
    if code == 0 {
        printed?;
    }
    if let Some(error @ LinkError::NotServed { .. }) = seen.error {
        return Err(error);
    }
    if let Some(error) = seen.error {
        // How it ended is the command's own business.
        warn(format_args!("{error}: the linker went on by itself"));
    }
    if build.cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: build.cancel.exit_code() });
    }
    Ok(code)
}

/// Prints and returns the variables of a cargo command; `None` for any other command.
fn of_cargo(command: &[Word], options: &LinkOptions) -> Option<Vec<(String, OsString)>> {
    let is_quiet = options.run.quiet || options.run.json;
    match cargo::prepare(command) {
        Preparation::Set(variables) => {
            if !is_quiet {
                say(format_args!("distlto: {variables}"));
            }
            Some(variables.all)
        }
        Preparation::Left(why) => {
            if !is_quiet {
                note(why);
            }
            Some(Vec::new())
        }
        Preparation::None => None,
    }
}

/// Whether all that a command reads can be observed: it is a driver or a linker, and no script. Any other command may
/// depend on anything, and runs each time.
fn is_seen_through(command: &[Word]) -> bool {
    let kind = kind::of(&command[0], command[1..].iter().map(Vec::as_slice));
    let program = identity::located(&lossy(&command[0]));
    kind != Kind::Other && program.is_some_and(|program| !program_files::is_script(&program))
}

/// Links with the objects that the backends of a graph have made.
fn of_graph(path: &Path, command: &[Word], options: &LinkOptions, cancel: &Cancel) -> Result<u8, LinkError> {
    let path = Utf8Path::from_path(path).ok_or_else(|| {
        IoError::on("read", path)(io::Error::new(io::ErrorKind::InvalidFilename, "its name is not UTF-8"))
    })?;
    let objects = GraphObjects::of(path, &GraphSource::find(path, None)?.read_to_run()?);
    let end = run_once(command, options, cancel, Task::Graph(&objects))?;
    if let Some(error) = end.seen.error {
        return Err(error);
    }
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() });
    }
    if end.code == 0 && objects.is_left_out() {
        let why = if end.seen.has_linker { "it links by itself" } else { "the command ran none" }.to_owned();
        return Err(LinkError::NotAsked { graph: path.to_owned(), why });
    }
    Ok(end.code)
}

/// How a dry run ends: the command's own failure counts where it did not get to its backends.
fn dry_run_end(end: CommandEnd) -> Result<u8, LinkError> {
    if end.seen.is_previewed {
        return Ok(0);
    }
    match (&end.seen.error, end.code, end.seen.has_linker) {
        (Some(_), ..) => {}
        (None, 0, true) => {
            to_standard_output(b"the linker would link by itself: there is no backend to run\n")?;
        }
        (None, 0, false) => to_standard_output(IS_NO_LINK)?,
        _ => {}
    }
    end.seen.error.map_or(Ok(end.code), Err)
}

/// Printed by a dry run of any other command.
const IS_NO_LINK: &[u8] = b"the command would run as it is: it is no distributed ThinLTO link\n";

/// A thin link that a build asks for by a linker's own command line.
fn thin_link_alone(given: &GivenCommand<'_>) -> Result<Option<(IndexOnly, LinkCommand)>, LinkError> {
    let kind = program(&lossy(&given.words[0]), given.words.get(1).map(Vec::as_slice));
    if kind != ProgramKind::Lld {
        return Ok(None);
    }
    // No driver is asked about a linker.
    let resolved = link_command::resolve(given, &NoRunner)?;
    Ok(match resolved {
        Resolved::Link(link) => IndexOnly::of(link.line.arguments()).map(|asked| (asked, link)),
        Resolved::Other { .. } => None,
    })
}

/// Runs nothing.
struct NoRunner;

impl Runner for NoRunner {
    fn run(&self, _: &[Word]) -> io::Result<ToolOutput> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Ends a link that has nothing to do: its outputs become newer than its inputs, so that build tools stop asking. A
/// dry run reports it.
fn leave_unchanged(
    unchanged: unchanged::Unchanged,
    state: &LinkState,
    output: &str,
    options: &LinkOptions,
    reporter: &Reporter,
) -> Result<u8, LinkError> {
    if options.dry_run {
        dry_run::nothing(output, options.run.json)?;
        return Ok(0);
    }
    if !unchanged.warnings.is_empty() {
        reporter.report(ProgressEvent::Printed(&unchanged.warnings));
    }
    unchanged.renew(state.directory())?;
    stats::count(&LinkUsage { unchanged: true, ..stats::without_record(output) });
    nothing_to_do(options, reporter);
    if options.run.verbose > 0 && !options.run.json {
        say(format_args!("distlto: {output}: nothing to do"));
    }
    Ok(0)
}

/// Runs a command in place of this process; returns only if it cannot be started.
fn replace_process(command: &[Word]) -> LinkError {
    let words: Vec<_> = command.iter().map(|word| path_of(word)).collect();
    let program = lossy(&command[0]);
    let source = std::process::Command::new(&words[0]).args(&words[1..]).exec();
    ToolError::Start { program, source }.into()
}

/// Reports a run without actions as JSON events; prints nothing otherwise.
fn nothing_to_do(options: &LinkOptions, reporter: &Reporter) {
    if options.run.json {
        reporter.report(ProgressEvent::Planned(Plan { actions: 0, cost: 0, jobs: 0 }));
        reporter.report(ProgressEvent::Ended(Counts::default(), Duration::ZERO));
    }
}
