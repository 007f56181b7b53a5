//! Runs the wanted actions of a graph: a scheduler, workers, and one thread that talks to both.
//!
//! The actions are known when the run begins, or arrive while it lasts ([`run_arriving`]).
//!
//! The calling thread holds the schedule and calls the hooks and the progress, so those need no locks and see events in
//! order. A worker thread takes one action at a time, and starts a process and waits for it. See `execute::process` for
//! why both are on one thread. Independent of the reason why an action is wanted.

mod arrivals;
mod event;
mod exhaustion;
mod machine_share;
mod runner;
mod workers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use distlto_planner::digests::FileDigests;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::Native;
use distlto_prepare::message::note;
use distlto_prepare::warning::warn;

use crate::attempt::Context;
use crate::cache::ResultCache;
use crate::cancel::Cancel;
use crate::describe::{Describer, Platform, Toolchains};
use crate::execute::cc1::Cc1Commands;
use crate::execute::drivers::Drivers;
use crate::execute::local::Local;
use crate::execute::process::{GRACE, Spawner};
use crate::execute::remote::Remote;
use crate::execute::remote::engine::Engine;
use crate::execute::{Execute, Linker};
use crate::ledger::Ledger;
use crate::schedule::estimate::Estimates;
use crate::schedule::history::History;
use crate::schedule::memory::Limit;
use crate::schedule::tokens::{JobSlots, Tokens};
use crate::schedule::{Policy, Schedule, State};
use crate::staging::{Places, StagingArea};
use crate::undeclared::Undeclared;
use crate::verify::Modules;
pub use arrivals::{Arrival, Arrivals, Incoming, arrivals};
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::{Failure, Measured, Outcome, Report};
use event::Event;
use runner::{RunLoop, RunWork};
use workers::Workers;

/// Provides the input files of an action.
pub type Provide<'a> = dyn Fn(ActionId) -> Result<(), IoError> + Sync + 'a;

/// How to run.
pub struct RunOptions<'a> {
    /// The most jobs at once; at least one runs.
    pub jobs: usize,
    /// The effect of a failure on the other actions.
    pub policy: Policy,
    /// Working directory of commands, and base of the graph's paths; the current directory when `None`.
    pub directory: Option<&'a Path>,
    /// Required format of objects; that of each module's own triple when `None`.
    pub expected: Option<Native>,
    /// The job slots of the build that runs this; none when `None`.
    pub slots: Option<&'a JobSlots>,
    /// Starts commands.
    pub spawner: &'a dyn Spawner,
    /// Ends the run early.
    pub cancel: &'a Cancel,
    /// Receives the run's events.
    pub progress: &'a dyn Progress,
    /// How long a cancelled command may take to end.
    pub grace: Duration,
    /// Directories for temporaries that do not lie beside their outputs.
    pub places: Option<&'a Places>,
    /// How much memory all jobs of all runs may take together, by estimate.
    pub memory: Limit,
    /// Memory of a linker that waits for the jobs, in bytes; part of `memory` where that is a number.
    pub beside: u64,
    /// The ledger that the runs on this machine share; this run uses none when `None`.
    pub ledger: Option<&'a Ledger>,
    /// The file with measurements of actions, for the estimates of the next run; none when `None`.
    pub history: Option<&'a Path>,
    /// Converts labels for history, without the parts that differ between equal links; the labels themselves when
    /// `None`.
    pub name: Option<&'a dyn Fn(&str) -> String>,
    /// The command line for a person to repeat an action; its command in `directory` when `None`.
    pub repeat: Option<&'a dyn Fn(ActionId) -> String>,
    /// Keeps the files of a failed action, and returns the command line to repeat it; `repeat` is used when `None`.
    pub keep_failed: Option<&'a dyn Fn(ActionId) -> String>,
    /// Digests that the caller has already; empty when `None`.
    pub digests: Option<&'a FileDigests>,
    /// Provides an action's input files, on the thread that is about to run it; they exist already when `None`.
    pub provide: Option<&'a Provide<'a>>,
    /// Whether recorded module hashes are not compared, see [`Modules::ignoring_hashes`].
    pub ignores_hashes: bool,
    /// Drivers' answers so far, in this directory; empty when `None`.
    pub cc1_commands: Option<&'a Cc1Commands>,
    /// Knowledge of compilers, which is part of keys; `None` without a cache.
    pub toolchains: Option<&'a Toolchains>,
    /// Caches that may have results, the nearest one first; they also store new results.
    pub caches: Vec<&'a dyn ResultCache>,
    /// An engine that executes actions too; this machine alone when `None`.
    pub engine: Option<&'a Engine>,
    /// Compiles in the place of processes of this machine: the linker that waits for the objects.
    pub linker: Option<&'a dyn Linker>,
}

impl<'a> RunOptions<'a> {
    /// As many jobs as processors, stopping at the first failure, in the current directory, without job slots.
    pub fn new(spawner: &'a dyn Spawner, cancel: &'a Cancel, progress: &'a dyn Progress) -> Self {
        Self {
            jobs: thread::available_parallelism().map_or(1, usize::from),
            policy: Policy::default(),
            directory: None,
            expected: None,
            slots: None,
            spawner,
            cancel,
            progress,
            grace: GRACE,
            places: None,
            memory: Limit::default(),
            beside: 0,
            ledger: None,
            history: None,
            name: None,
            repeat: None,
            keep_failed: None,
            digests: None,
            provide: None,
            ignores_hashes: false,
            cc1_commands: None,
            toolchains: None,
            caches: Vec::new(),
            engine: None,
            linker: None,
        }
    }
}

/// The caller's decision on an action after its dependencies have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It has to run.
    Run,
    /// Its dependencies wrote the same inputs as before: it counts as done.
    UpToDate,
    /// The run makes no sense any more: nothing more starts, not even this action.
    Stop,
}

/// How an action succeeded.
#[derive(Debug)]
pub struct Made<'a> {
    /// Its cost.
    pub measured: Measured,
    /// Its command's standard error, in whole lines, from this run or from the run that made the cached result.
    pub stderr: &'a str,
    /// Undeclared inputs of its command.
    pub undeclared: &'a Undeclared,
}

/// The caller's handlers for starting and ending actions. Called on the thread that called [`run`] or [`run_arriving`].
///
/// Each action that is needed ends with one call of [`Hooks::finished`], [`Hooks::failed`] or [`Hooks::abandoned`].
pub trait Hooks {
    /// Whether to call [`Hooks::need`]. Ended actions are then reported before anything starts.
    fn asks(&self) -> bool {
        false
    }
    /// Called when everything that a wanted action needs is done and a worker is free.
    fn need(&self, _action: ActionId) -> Need {
        Need::Run
    }
    /// Called after an action was given to a worker. Actions that ended before were reported before.
    fn started(&self, _action: ActionId) {}
    /// An action succeeded and its outputs are in place: the moment to record it, since the run may be killed.
    fn finished(&self, _action: ActionId, _made: &Made<'_>) {}
    /// An action failed; its earlier outputs are intact.
    fn failed(&self, _action: ActionId, _failure: &Failure) {}
    /// Called for an action without a result or a failure of its own, as soon as that is known: nothing more starts, a
    /// failed action is one of its dependencies, or it was cancelled while it ran.
    fn abandoned(&self, _action: ActionId) {}
}

/// Does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// Runs `wanted`, which the caller found out of date; every other action counts as up to date.
///
/// Returns when nothing runs any more. The caller prints the report's failures only if its progress does not.
pub fn run(graph: &ActionGraph, wanted: &[ActionId], options: &RunOptions<'_>, hooks: &dyn Hooks) -> Report {
    run_all(Cow::Borrowed(graph), wanted, Incoming::nothing(), options, hooks).1
}

/// Runs actions that arrive, until no more can arrive and all have ended, or the run is cancelled. Returns the graph of
/// all arrived actions.
///
/// Before the first action arrives nothing is read, started, printed or reported; progress gets events only after an
/// arrival. As in any run, a module is assumed not to change while it lasts.
pub fn run_arriving(
    incoming: Incoming,
    options: &RunOptions<'_>,
    hooks: &dyn Hooks,
) -> (ActionGraph, Report) {
    let start = Instant::now();
    let mut graph = ActionGraph::new();
    if !incoming.wait(options.cancel) {
        let report = Report { outcomes: Vec::new(), wall: start.elapsed(), cancelled: cancelled(options) };
        return (graph, report);
    }
    let wanted = incoming.take(&mut graph, options.progress);
    let (graph, report) = run_all(Cow::Owned(graph), &wanted, incoming, options, hooks);
    (graph.into_owned(), report)
}

/// Runs `wanted` and the actions that arrive.
fn run_all<'g>(
    graph: Cow<'g, ActionGraph>,
    wanted: &[ActionId],
    incoming: Incoming,
    options: &'g RunOptions<'g>,
    hooks: &'g dyn Hooks,
) -> (Cow<'g, ActionGraph>, Report) {
    let &RunOptions { jobs, directory, progress, toolchains, .. } = options;
    let start = Instant::now();
    let history = History::load(options.history);
    let estimates = Estimates::new(&graph, wanted, history, directory, options.name);
    let schedule = Schedule::new(&graph, wanted, options.policy, |id| estimates.weight(id));
    let work = RunWork { graph, schedule, estimates, incoming };
    in_context(options, |context| {
        let plan = work.plan(jobs);
        progress.report(ProgressEvent::Planned(plan));
        let (work, ended) = thread::scope(|scope| {
            let sender = work.incoming.sender.clone();
            let tokens = Tokens::new(options.slots, sender.clone(), Event::Token);
            let workers = Workers::new(scope, context, options.provide, sender);
            RunLoop::new(work, plan, options, hooks, workers, tokens).drive()
        });
        let RunWork { graph, schedule, estimates, .. } = work;
        let report = Report {
            outcomes: outcomes(&schedule, ended),
            wall: start.elapsed(),
            cancelled: cancelled(options),
        };
        progress.report(ProgressEvent::Outcomes(&report.outcomes));
        if let Some(engine) = options.engine {
            progress.report(ProgressEvent::UnderWay(engine.under_way()));
            engine.finish();
            progress.report(ProgressEvent::UnderWay(engine.under_way()));
            progress.report(ProgressEvent::Engines(&engine.engines()));
        }
        // Before the lines below, which a terminal's line would be drawn over.
        progress.report(ProgressEvent::Ended(report.counts(), report.wall));
        let asked = toolchains.filter(|known| !options.caches.is_empty() && known.is_asked());
        report_troubles(progress, &estimates, &options.caches, asked);
        let undescribed = toolchains.filter(|_| asked.is_none()).into_iter().flat_map(Toolchains::troubles);
        undescribed.for_each(|note| progress.report(ProgressEvent::Noted(&note)));
        (graph, report)
    })
}

fn cancelled(options: &RunOptions<'_>) -> Option<u8> {
    options.cancel.is_cancelled().then(|| options.cancel.exit_code())
}

/// Calls `then` with the context that the run's jobs share.
fn in_context<T>(options: &RunOptions<'_>, then: impl FnOnce(&Context<'_>) -> T) -> T {
    // Each is named, so that a new one cannot be forgotten.
    let &RunOptions {
        directory,
        expected,
        spawner,
        cancel,
        grace,
        places,
        digests,
        ignores_hashes,
        cc1_commands,
        toolchains,
        ref caches,
        engine,
        linker,
        jobs: _,
        slots: _,
        // The run's, and its runner's.
        policy: _,
        progress: _,
        memory: _,
        beside: _,
        ledger: _,
        history: _,
        name: _,
        repeat: _,
        keep_failed: _,
        provide: _,
    } = options;
    let modules = &Modules::new(directory).ignoring_hashes(ignores_hashes);
    let own = (FileDigests::new(directory.unwrap_or(Path::new(""))), Cc1Commands::default());
    let (digests, answers) = (digests.unwrap_or(&own.0), cc1_commands.unwrap_or(&own.1));
    let drivers = Drivers { answers, spawner, cancel, grace, directory };
    let platform = engine.map_or(Platform::default(), Engine::platform);
    let describer = toolchains
        .filter(|_| !caches.is_empty())
        .and_then(|known| Describer::new(known, &drivers, digests, directory, platform));
    let local = Local { spawner, grace, directory, drivers: Some(&drivers) };
    let here = linker.map_or(&local as &dyn Execute, |linker| linker);
    let remote = engine.map(|engine| Remote { engine, here, directory });
    let execute: &dyn Execute = remote.as_ref().map_or(here, |remote| remote);
    let describer = describer.as_ref();
    let staging = &StagingArea::new(directory, places);
    let context = Context {
        execute,
        cancel,
        modules,
        directory,
        expected,
        staging,
        digests,
        describer,
        caches,
        linker,
    };
    then(&context)
}

/// Returns the outcome of every wanted action.
fn outcomes(schedule: &Schedule, mut ended: BTreeMap<ActionId, Outcome>) -> Vec<(ActionId, Outcome)> {
    let outcome = |(id, state)| {
        let outcome = ended.remove(&id).unwrap_or(match state {
            State::Skipped(cause) => Outcome::Skipped(cause),
            _ => Outcome::NotStarted,
        });
        (id, outcome)
    };
    schedule.states().map(outcome).collect()
}

/// Saves history, and reports failures to save. The results are right all the same.
fn report_troubles(
    progress: &dyn Progress,
    estimates: &Estimates<'_>,
    caches: &[&dyn ResultCache],
    toolchains: Option<&Toolchains>,
) {
    if let Err(error) = estimates.history().save() {
        // The next run's estimates are worse, and nothing else.
        note(&error);
        progress.report(ProgressEvent::Warned(&error.to_string()));
    }
    let troubles = caches.iter().flat_map(|cache| cache.troubles());
    for trouble in troubles.chain(toolchains.into_iter().flat_map(Toolchains::troubles)) {
        warn(&trouble);
        progress.report(ProgressEvent::Warned(&trouble));
    }
}
