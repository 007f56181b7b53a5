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
mod options;
mod runner;
mod workers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Instant;

use distlto_planner::digests::FileDigests;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_prepare::message::note;
use distlto_prepare::warning::warn;

use crate::attempt::Context;
use crate::cache::ResultCache;
use crate::describe::{Describer, Platform, Toolchains};
use crate::execute::Execute;
use crate::execute::cc1::Cc1Commands;
use crate::execute::drivers::Drivers;
use crate::execute::local::Local;
use crate::execute::remote::Remote;
use crate::execute::remote::engine::Engine;
use crate::schedule::estimate::Estimates;
use crate::schedule::history::History;
use crate::schedule::tokens::Tokens;
use crate::schedule::{Schedule, State};
use crate::staging::StagingArea;
use crate::verify::Modules;
pub use arrivals::{Arrival, Arrivals, Incoming, arrivals};
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::{Outcome, Report};
use event::Event;
pub use options::{Hooks, Made, Need, NoHooks, Provide, RunOptions};
use runner::{RunLoop, RunWork};
use workers::Workers;

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
