//! A whole distributed ThinLTO link, from the user's command to the program: the spine of `distlto link`.
//!
//! Reads from top to bottom: is anything to do, what would be linked, thin link, backends, final link. Each step is a
//! function of another module; this one only knows their order and what is kept for the next run. State lives in
//! `<output>.distlto/`, and an advisory lock on it makes a second run of the same link an error.

mod ahead;
pub(crate) mod dry_run;
pub mod error;
pub(crate) mod file_state;
mod final_link;
pub(crate) mod identity;
mod keeping;
pub(crate) mod line;
mod line_cache;
mod lock;
pub mod options;
mod phases;
mod printed;
pub(crate) mod reads;
pub(crate) mod stable_names;
pub(crate) mod state;
mod told;
mod two_step;
mod two_step_reads;
pub(crate) mod unchanged;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use distlto_planner::index;
use distlto_planner::index_only::IndexOnly;
use distlto_planner::invocation::{ProgramKind, program};
use distlto_planner::link_command::{self, GivenCommand, LinkCommand, Resolved};
use distlto_planner::link_line::Argument;
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::linker::options::last;
use distlto_planner::runner::{Runner, ToolError, ToolOutput};
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::message::say;
use distlto_prepare::warning::warn;
use distlto_prepare::write::to_standard_output;

use crate::index_only;
use crate::remote::connect::RemoteError;
use crate::run_args::RunArgs;
use crate::scratch::scratch;
use crate::serve::{Ended, Service};
use crate::tool::ToolRunner;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::forkserver::{self, ForkServer};
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_record::cause::{FailureCause, FailureKind};
use distlto_record::progress::{Plan, Progress, Reporter};
use distlto_record::report::Counts;

pub use error::LinkError;
pub(crate) use error::tool_failure;
pub use lock::Busy;
pub use options::LinkOptions;

/// Links; returns the exit code to end with.
pub fn link(command: &[Word], options: &LinkOptions, cancel: &Cancel) -> Result<u8, LinkError> {
    if options.two_step {
        return in_two_steps(command, options, cancel);
    }
    served(command, options, cancel)
}

/// Runs a command and answers its linkers.
fn served(command: &[Word], options: &LinkOptions, cancel: &Cancel) -> Result<u8, LinkError> {
    let spawner = options.run.spawner();
    let runner = ToolRunner { spawner: &spawner, cancel, directory: None };
    let reporter = dry_run::reporter(options)?;
    let given = GivenCommand::new(command);
    // The command itself reports a response file that cannot be read.
    let expanded = given.expanded().unwrap_or(command);
    if let Some((asked, link)) = thin_link_alone(&given)? {
        let done = index_only::perform(&asked, &link, &runner, options.run.verbose);
        return done.or_else(|error| tool_failure(error, cancel));
    }
    let key = state::key(expanded, options);
    let kind = program(&lossy(&command[0]), command.get(1).map(Vec::as_slice));
    let is_linker = matches!(kind, ProgramKind::Clang | ProgramKind::Lld);
    let output = state::guess_output(expanded).or_else(|| is_linker.then(|| "a.out".to_owned()));
    let folder = options.state.as_deref();
    let guess = output.as_deref().map(|output| state::directory(output, folder));
    let there = guess.as_deref().filter(|guess| Path::new(guess).is_dir());
    let held = there.map(|directory| state::LinkState::open_or_scratch(directory, folder)).transpose()?;
    if let Some(state) = &held
        && (options.dry_run || !printed::is_asked_for(expanded))
        && let Some(unchanged) = unchanged::find(state.directory(), &key)
    {
        return leave_unchanged(unchanged, state, output.as_deref().unwrap_or_default(), options, &reporter);
    }
    options.run.remote.check().map_err(RemoteError::from)?;
    let Some(hook) = forkserver::find_library() else {
        let lack = forkserver::lack_of_library().unwrap_or_else(|| "the hook is off".to_owned());
        if !options.run.quiet {
            warn(format_args!("{lack}: the linker links by itself"));
        }
        return Err(replace_process(command));
    };
    let service = Service {
        command,
        options,
        spawner: &spawner,
        cancel,
        reporter: &reporter,
        key: &key,
        single: guess,
    };
    let (ended, links) = service.run(&hook, held)?;
    let mut code = ended.code;
    if options.dry_run {
        return dry_run_end(ended);
    }
    if let (Some(state), [], true) = (&ended.held, &links[..], code != 0) {
        let text = format!("{} ended with exit code {code}", lossy(&command[0]));
        let (kind, class) = (FailureKind::Failed, "distlto::failed".to_owned());
        reporter.keep(
            Path::new(state.directory()),
            code,
            Some(FailureCause { kind, class, text, help: None }),
        );
    }
    for link in links {
        code = service.conclude(link, Some(&ended))?;
    }
    if !ended.has_linker {
        reporter.noted("the command has run no linker that can be asked, such as ld.lld 15 or later");
    }
    if let Some(error) = ended.error {
        // How it ended is the command's own business.
        warn(format_args!("{error}: the linker went on by itself"));
    }
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() });
    }
    Ok(code)
}

/// How a dry run ends: the command's own failure counts where it did not get to its backends.
fn dry_run_end(ended: Ended) -> Result<u8, LinkError> {
    if ended.is_previewed {
        return Ok(0);
    }
    match (&ended.error, ended.code, ended.has_linker) {
        (Some(_), ..) => {}
        (None, 0, true) => {
            to_standard_output(b"the linker would link by itself: there is no backend to run\n")?;
        }
        (None, 0, false) => to_standard_output(IS_NO_LINK)?,
        _ => {}
    }
    ended.error.map_or(Ok(ended.code), Err)
}

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

/// Runs the linker twice, with the backends between.
fn in_two_steps(command: &[Word], options: &LinkOptions, cancel: &Cancel) -> Result<u8, LinkError> {
    let spawner = options.run.spawner();
    let runner = ToolRunner { spawner: &spawner, cancel, directory: None };
    let reporter = dry_run::reporter(options)?;
    let given = GivenCommand::new(command);
    let expanded = given.expanded()?;
    let key = state::key(expanded, options);
    let output = state::guess_output(expanded);
    let folder = options.state.as_deref();
    let hold = |directory: &str| state::LinkState::open_or_scratch(directory, folder);
    let guess = output.as_deref().map(|output| state::directory(output, folder));
    let mut held = guess.as_deref().filter(|guess| Path::new(guess).is_dir()).map(hold).transpose()?;
    if let Some(state) = &held
        && let Some(unchanged) = unchanged::find(state.directory(), &key)
    {
        return leave_unchanged(unchanged, state, output.as_deref().unwrap_or_default(), options, &reporter);
    }
    let known = held.as_ref().and_then(|held| line_cache::load(held.directory(), &key));
    let resolved = known
        .map_or_else(|| resolve(&given, &spawner, cancel, &options.run, &reporter), |link| Ok(Some(link)));
    let Some(link) = resolved? else { return as_it_is(command, options) };
    let output = link.line.output();
    if state::is_special(Path::new(output)) {
        return as_it_is(command, options);
    }
    let directory = state::directory(output, folder);
    let mut held = held.take_if(|held| held.is_for(&directory));
    if held.is_none() && (!options.dry_run || Path::new(&directory).is_dir()) {
        held = Some(hold(&directory)?);
    }
    let directory = held.as_ref().map_or(directory, |held| held.directory().to_owned());
    let session = Session {
        link: &link,
        directory: &directory,
        earlier: &directory,
        options,
        cancel,
        spawner: &spawner,
        runner: &runner,
        reporter: &reporter,
        key: &key,
    };
    if options.dry_run {
        let told = session.with_names(|session| session.dry_run(held.is_some()));
        return told.or_else(|error| tool_failure(error, cancel));
    }
    session.tell_link(output);
    let ended = session.with_names(|session| session.link());
    session.keep(&ended);
    end(ended, held, command, cancel)
}

/// What a command turned out to be. One that is no link by lld is none of ours, and an error if it has bitcode among its
/// inputs.
fn resolve(
    given: &GivenCommand<'_>,
    spawner: &ForkServer<LocalSpawner>,
    cancel: &Cancel,
    options: &RunArgs,
    reporter: &Reporter,
) -> Result<Option<LinkCommand>, LinkError> {
    let runner = ToolRunner { spawner: options.asker(spawner), cancel, directory: None };
    match link_command::resolve(given, &runner)? {
        Resolved::Link(link) => Ok(Some(link)),
        Resolved::Other { linker, words } => match (linker, index::bitcode_among(&words)) {
            (Some(linker), Some(input)) => Err(ToolError::NotLld { linker, input }.into()),
            (linker, _) => {
                if let Some(linker) = linker {
                    reporter.noted(&format!("{NO_BITCODE}: {linker} links by itself"));
                }
                Ok(None)
            }
        },
    }
}

/// Printed by a dry run of any other command.
const IS_NO_LINK: &[u8] = b"the command would run as it is: it is no distributed ThinLTO link\n";

/// A command that is none of ours takes this process's place.
fn as_it_is(command: &[Word], options: &LinkOptions) -> Result<u8, LinkError> {
    if options.dry_run {
        to_standard_output(IS_NO_LINK)?;
        return Ok(0);
    }
    Err(replace_process(command))
}

/// The exit code of a link that has ended in this way, and what becomes of its state.
fn end(
    ended: Result<End, LinkError>,
    held: Option<state::LinkState>,
    command: &[Word],
    cancel: &Cancel,
) -> Result<u8, LinkError> {
    let discard = || held.map_or(Ok(()), state::LinkState::discard);
    match ended {
        Ok(End::Code(code)) => Ok(code),
        Ok(End::AsItIs) => {
            discard()?;
            Err(replace_process(command))
        }
        Err(error) => tool_failure(error, cancel),
    }
}

/// Nothing is to be done: the outputs become newer than what they are made of, so that build tools stop asking. A dry
/// run says so.
fn leave_unchanged(
    unchanged: unchanged::Unchanged,
    state: &state::LinkState,
    output: &str,
    options: &LinkOptions,
    reporter: &Reporter,
) -> Result<u8, LinkError> {
    if options.dry_run {
        dry_run::nothing(output, options.run.json)?;
        return Ok(0);
    }
    unchanged.renew(state.directory())?;
    nothing_to_do(options, reporter);
    if options.run.verbose && !options.run.json {
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

/// One link whose state directory is held.
pub(crate) struct Session<'a> {
    pub(crate) link: &'a LinkCommand,
    pub(crate) directory: &'a str,
    /// The state that the last link left: the same directory, but in a dry run.
    pub(crate) earlier: &'a str,
    pub(crate) options: &'a LinkOptions,
    pub(crate) cancel: &'a Cancel,
    pub(crate) spawner: &'a ForkServer<LocalSpawner>,
    pub(crate) runner: &'a ToolRunner<'a>,
    pub(crate) reporter: &'a Reporter,
    pub(crate) key: &'a state::LinkKey,
}

/// Why a link is the linker's alone.
pub(crate) const NO_BITCODE: &str = "ThinLTO is off, no input is LTO bitcode";
pub(crate) const WRITES_ITSELF: &str = "the line asks for what only the linker writes";

/// How a link ended.
pub(crate) enum End {
    /// With this exit code.
    Code(u8),
    /// It is no link of ours: the command is to be run as it is.
    AsItIs,
}

impl Session<'_> {
    /// Checks the configuration of servers before the linker starts, so that a mistake is not reported after a thin link, below
    /// the linker's own errors.
    fn check_configuration(&self) -> Result<(), LinkError> {
        Ok(self.options.run.remote.check().map_err(RemoteError::from)?)
    }

    /// Does something with stable names, if they are asked for and can be had, and else without.
    fn with_names<T>(&self, work: impl Fn(&Session<'_>) -> Result<T, LinkError>) -> Result<T, LinkError> {
        if !self.options.stable_names {
            return work(self);
        }
        let [with, without] = stable_names::with_and_without(self.options);
        let named = |options| work(&Session { options, ..*self });
        named(&with).or_else(|error| {
            stable_names::do_without(error, self.reporter)?;
            named(&without)
        })
    }

    fn link(&self) -> Result<End, LinkError> {
        Ok(self.two_step()?.map_or(End::AsItIs, End::Code))
    }

    /// Says what would run.
    fn dry_run(&self, has_state: bool) -> Result<u8, LinkError> {
        // For what must not be in the state.
        let scratch = scratch("dry-run")?;
        let place = scratch.path().to_string_lossy();
        let session = Session { directory: &place, ..*self };
        let planned = if has_state { self.two_step()? } else { session.two_step()? };
        match planned {
            Some(code) => Ok(code),
            None => {
                to_standard_output(b"the linker would link by itself: there is no backend to run\n")?;
                Ok(0)
            }
        }
    }

    /// For those who asked: why there is nothing for this program to do.
    pub(crate) fn say_why_whole(&self, why: &str) {
        self.reporter.noted(&format!("{why}: the linker links by itself"));
    }

    /// For those who asked: the linker's cache of backends is not used, since the backends are not its own.
    fn say_of_cache(&self, arguments: &[Argument]) {
        if last(arguments, "thinlto-cache-dir").is_some() {
            self.reporter.noted(&format!(
                "--thinlto-cache-dir has no effect: objects are kept in {}, and --cache DIR shares them between links",
                self.directory
            ));
        }
    }

    /// For people who asked: what the link consisted of, and what had to run.
    pub(crate) fn summarise(&self, plan: &LinkPlan, stale: usize) {
        if !self.options.run.verbose || self.options.run.json {
            return;
        }
        let modules = plan.modules.len();
        let imports: usize = plan.modules.iter().map(|module| module.imports.len()).sum();
        if modules == 0 {
            say(format_args!(
                "distlto: {}: no module is ThinLTO bitcode: there are no backends",
                plan.output
            ));
            return;
        }
        // Those that a cache had did not run.
        say(format_args!(
            "distlto: {}: {modules} modules, {imports} imports; {stale} of {modules} backends were out of date",
            plan.output
        ));
    }
}

/// Readers of events are told of a run without actions; people are not.
fn nothing_to_do(options: &LinkOptions, reporter: &Reporter) {
    if options.run.json {
        reporter.plan(Plan { actions: 0, cost: 0, jobs: 0 });
        reporter.summary(Counts::default(), Duration::ZERO);
    }
}
