//! A whole distributed ThinLTO link, from the user's command to the program: the spine of `distlto link`.
//!
//! Reads from top to bottom: is anything to do, what would be linked, thin link, backends, final link. Each step is a
//! function of another module; this one only knows their order and what is kept for the next run. State lives in
//! `<output>.distlto/`, and an advisory lock on it makes a second run of the same link an error.

mod ahead;
mod dry_run;
pub mod dtlto;
pub mod error;
mod file_state;
mod final_link;
pub(crate) mod identity;
mod keeping;
mod line_cache;
mod lock;
pub mod options;
mod phases;
mod reads;
mod stable_names;
pub(crate) mod state;
mod told;
mod two_step;
mod two_step_reads;
mod unchanged;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use distlto_planner::index;
use distlto_planner::index_only::IndexOnly;
use distlto_planner::link_command::{self, GivenCommand, LinkCommand, Resolved};
use distlto_planner::link_line::Argument;
use distlto_planner::link_plan::LinkPlan;
use distlto_planner::linker::options::last;
use distlto_planner::runner::ToolError;
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::limits::Lack;
use distlto_prepare::message::say;
use distlto_prepare::warning::warn;
use distlto_prepare::write::to_standard_output;

use crate::index_only;
use crate::remote::connect::RemoteError;
use crate::run_args::RunArgs;
use crate::scratch::scratch;
use crate::tool::ToolRunner;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::forkserver::ForkServer;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_record::progress::{Plan, Progress, Reporter};
use distlto_record::report::Counts;

pub use error::LinkError;
pub(crate) use error::tool_failure;
pub use lock::Busy;
pub use options::LinkOptions;

/// Links; returns the exit code to end with. A command that is no ThinLTO link replaces this process.
pub fn link(command: &[Word], options: &LinkOptions, cancel: &Cancel) -> Result<u8, LinkError> {
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
    let is_known = known.is_some();
    let resolved = known
        .map_or_else(|| resolve(&given, &spawner, cancel, &options.run, &reporter), |link| Ok(Some(link)));
    let Some(link) = resolved? else { return as_it_is(command, options) };
    if let Some(asked) = IndexOnly::of(link.line.arguments()).filter(|_| link.compilations.is_empty()) {
        let done = index_only::perform(&asked, &link, &runner, options.run.verbose);
        return done.or_else(|error| tool_failure(error, cancel));
    }
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
        is_known: is_known && link.takes_distributor == Some(true),
        after_crash: held.as_ref().is_some_and(state::LinkState::is_after_crash),
        takes_distributor: link.takes_distributor.map_or_else(OnceLock::new, OnceLock::from),
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

/// A command that is none of ours takes this process's place.
fn as_it_is(command: &[Word], options: &LinkOptions) -> Result<u8, LinkError> {
    if options.dry_run {
        to_standard_output(b"the command would run as it is: it is no distributed ThinLTO link\n")?;
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
        Ok(End::Needless(code)) => {
            discard()?;
            Ok(code)
        }
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
struct Session<'a> {
    link: &'a LinkCommand,
    directory: &'a str,
    /// The state that the last link left: the same directory, but in a dry run.
    earlier: &'a str,
    options: &'a LinkOptions,
    cancel: &'a Cancel,
    spawner: &'a ForkServer<LocalSpawner>,
    runner: &'a ToolRunner<'a>,
    reporter: &'a Reporter,
    key: &'a state::LinkKey,
    /// Whether the last link of the same command was one by the linker, with backends.
    is_known: bool,
    /// Whether the last run in this directory was killed.
    after_crash: bool,
    /// Whether the linker can hand its backends to a distributor, once it was asked.
    takes_distributor: OnceLock<bool>,
}

/// Why a link is the linker's alone.
const NO_BITCODE: &str = "ThinLTO is off, no input is LTO bitcode";
const WRITES_ITSELF: &str = "the line asks for what only the linker writes";

/// How a link ended.
enum End {
    /// With this exit code.
    Code(u8),
    /// With this exit code, and its state is of no use.
    Needless(u8),
    /// It is no link of ours: the command is to be run as it is.
    AsItIs,
}

impl Session<'_> {
    fn takes_distributor(&self) -> Result<bool, ToolError> {
        if let Some(&known) = self.takes_distributor.get() {
            return Ok(known);
        }
        let takes = self.link.asks_distributors(self.runner)?;
        Ok(*self.takes_distributor.get_or_init(|| takes))
    }

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
        let named =
            |options| work(&Session { options, takes_distributor: self.takes_distributor.clone(), ..*self });
        named(&with).or_else(|error| {
            stable_names::do_without(error, self.reporter)?;
            named(&without)
        })
    }

    /// Has the linker do it all where it can, and runs it twice where it cannot.
    fn link(&self) -> Result<End, LinkError> {
        match self.by_linker()? {
            Some(end) => Ok(end),
            None => Ok(self.two_step()?.map_or(End::AsItIs, End::Code)),
        }
    }

    /// Has the linker do it all. `None` where it cannot, or is not to.
    fn by_linker(&self) -> Result<Option<End>, LinkError> {
        if self.options.two_step {
            return Ok(None);
        }
        let lack = match dtlto::run(self) {
            Ok(dtlto::End::Done(end)) => return Ok(Some(end)),
            Ok(dtlto::End::TwoStep(reason)) => {
                self.reporter.noted(&format!("{reason}: the linker is run twice"));
                return Ok(None);
            }
            Ok(dtlto::End::Lacks(lack)) => lack,
            Err(error) => Lack::of(&error).ok_or(error)?.to_string(),
        };
        // For everybody, since it takes longer.
        let warning = format!("{lack}: the linker is run twice, so that fewer processes run at once");
        warn(&warning);
        self.reporter.warned(&warning);
        Ok(None)
    }

    /// Says what would run.
    fn dry_run(&self, has_state: bool) -> Result<u8, LinkError> {
        dtlto::sweep_before(self)?;
        // For what must not be in the state.
        let scratch = scratch("dry-run")?;
        let place = scratch.path().to_string_lossy();
        let takes_distributor = || self.takes_distributor.clone();
        let session = Session { directory: &place, takes_distributor: takes_distributor(), ..*self };
        let end = match session.by_linker()? {
            Some(end) => end,
            None if has_state => self.two_step()?.map_or(End::AsItIs, End::Code),
            None => session.two_step()?.map_or(End::AsItIs, End::Code),
        };
        match end {
            End::Code(code) | End::Needless(code) => Ok(code),
            End::AsItIs => {
                to_standard_output(b"the linker would link by itself: there is no backend to run\n")?;
                Ok(0)
            }
        }
    }

    /// For those who asked: why there is nothing for this program to do.
    fn say_why_whole(&self, why: &str) {
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
    fn summarise(&self, plan: &LinkPlan, stale: usize) {
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
