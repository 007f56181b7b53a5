//! Runs the wanted actions of a graph on this machine: a scheduler, workers, and one thread that talks to both.
//!
//! The calling thread holds the schedule and calls the hooks and the progress, so those need no locks and see
//! events in order. A worker thread takes one action at a time, and starts a process and waits for it (see
//! `process` for why both are on one thread). Knows nothing of why an action is wanted.

mod jobs;
mod killed;
mod runner;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use distlto_planner::digests::FileDigests;
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_prepare::kind::Native;
use distlto_prepare::write::IoError;
use jobserver::Client;

use crate::cache::ResultCache;
use crate::cancel::Cancel;
use crate::cc1::{self, Cc1Commands};
use crate::estimate::Estimates;
use crate::history::History;
use crate::job::Context;
use crate::memory::{Limit, Memory, System};
use crate::process::{GRACE, Spawner};
use crate::schedule::{Policy, Schedule, State};
use crate::staging::Places;
use crate::tokens::Tokens;
use crate::verify::Modules;
use distlto_record::progress::{Plan, Progress};
use distlto_record::report::{Failure, Measured, Outcome, Report};
use runner::{Event, Runner};
use workers::Workers;

/// Has the files be there that an action reads.
pub type Provide<'a> = dyn Fn(ActionId) -> Result<(), IoError> + Sync + 'a;

/// How to run.
pub struct Options<'a> {
    /// The most jobs at once; at least one runs.
    pub jobs: usize,
    /// What a failure means for the rest.
    pub policy: Policy,
    /// Where commands run and what the graph's paths are relative to; the current directory when `None`.
    pub directory: Option<&'a Path>,
    /// What objects have to be; what each module's own triple says when `None`.
    pub expected: Option<Native>,
    /// The build's jobserver, from [`crate::tokens::jobserver_from_env`].
    pub jobserver: Option<&'a Client>,
    /// Starts commands.
    pub spawner: &'a dyn Spawner,
    /// Ends the run early.
    pub cancel: &'a Cancel,
    /// Is told what happens.
    pub progress: &'a dyn Progress,
    /// How long a cancelled command may take to end.
    pub grace: Duration,
    /// Where temporaries lie that are not to lie beside their outputs.
    pub places: Option<&'a Places>,
    /// How much memory all jobs may take together, by estimate.
    pub memory: Limit,
    /// Where it is kept what actions took, for the estimates of the next run; nowhere when `None`.
    pub history: Option<&'a Path>,
    /// Labels as history has them, without what differs between equal links; the labels themselves when `None`.
    pub name: Option<&'a dyn Fn(&str) -> String>,
    /// What a person runs to repeat an action; its command in `directory` when `None`.
    pub repeat: Option<&'a dyn Fn(ActionId) -> String>,
    /// What files hold, as far as the caller has looked; nothing so far when `None`.
    pub digests: Option<&'a FileDigests>,
    /// Has the files be there that an action reads, on the thread that is about to run it; they are when `None`.
    pub provide: Option<&'a Provide<'a>>,
    /// Whether recorded module hashes are not compared, see [`Modules::ignoring_hashes`].
    pub ignores_hashes: bool,
    /// What drivers have answered so far, in this directory; nothing when `None`.
    pub cc1_commands: Option<&'a Cc1Commands>,
    /// Where results are looked for before commands run, and kept.
    pub cache: Option<&'a dyn ResultCache>,
}

impl<'a> Options<'a> {
    /// As many jobs as processors, stopping at the first failure, in the current directory, without jobserver.
    pub fn new(spawner: &'a dyn Spawner, cancel: &'a Cancel, progress: &'a dyn Progress) -> Self {
        Self {
            jobs: thread::available_parallelism().map_or(1, usize::from),
            policy: Policy::default(),
            directory: None,
            expected: None,
            jobserver: None,
            spawner,
            cancel,
            progress,
            grace: GRACE,
            places: None,
            memory: Limit::default(),
            history: None,
            name: None,
            repeat: None,
            digests: None,
            provide: None,
            ignores_hashes: false,
            cc1_commands: None,
            cache: None,
        }
    }
}

/// What the caller says of an action whose dependencies have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It has to run.
    Run,
    /// What its dependencies wrote is what it read before: it counts as done.
    UpToDate,
    /// The run makes no sense any more: nothing is started, this action neither.
    Stop,
}

/// What the caller does as actions start and end. Called on the thread that called [`run`].
pub trait Hooks {
    /// Whether [`Hooks::need`] is to be asked. What has ended is then told before anything starts.
    fn asks(&self) -> bool {
        false
    }
    /// Asked when everything that a wanted action needs is done and a worker is free.
    fn need(&self, _action: ActionId) -> Need {
        Need::Run
    }
    /// An action has been given to a worker. What ended before it has been told.
    fn started(&self, _action: ActionId) {}
    /// An action succeeded and its outputs are in place: the moment to record it, since the run may be killed.
    fn finished(&self, _action: ActionId, _measured: Measured) {}
    /// An action failed; its earlier outputs are intact.
    fn failed(&self, _action: ActionId, _failure: &Failure) {}
}

/// Does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// Runs `wanted`, which the caller found out of date; every other action counts as up to date.
///
/// Returns when nothing runs any more. The caller prints the report's failures only if its progress does not.
pub fn run(graph: &ActionGraph, wanted: &[ActionId], options: &Options<'_>, hooks: &dyn Hooks) -> Report {
    let start = Instant::now();
    let history = History::load(options.history);
    let estimates =
        Estimates::new(graph, wanted, history, options.directory, options.spawner.is_warm(), options.name);
    let schedule = Schedule::new(graph, wanted, options.policy, |id| estimates.weight(id));
    let memory = Memory::new(options.memory, System::real(), start);
    let modules = Modules::new(options.directory).ignoring_hashes(options.ignores_hashes);
    let digests = FileDigests::new(options.directory.unwrap_or(Path::new("")));
    let own = Cc1Commands::default();
    let cc1_commands = options.cc1_commands.unwrap_or(&own);
    let backends = wanted.iter().filter(|&&id| graph.action(id).kind == ActionKind::Opt).count();
    let context = Context {
        spawner: options.spawner,
        cancel: options.cancel,
        modules: &modules,
        directory: options.directory,
        expected: options.expected,
        grace: options.grace,
        cc1_commands: (backends >= cc1::MANY || options.cache.is_some()).then_some(cc1_commands),
        places: options.places,
        digests: options.digests.unwrap_or(&digests),
        cache: options.cache,
    };
    let (sender, events) = mpsc::channel();
    options.progress.plan(Plan {
        actions: schedule.states().count(),
        cost: schedule.cost_left(),
        jobs: options.jobs.max(1),
    });
    let (schedule, mut ended, estimates) = thread::scope(|scope| {
        let tokens = Tokens::new(options.jobserver, sender.clone(), Event::Token);
        let workers = Workers {
            scope,
            context: &context,
            graph,
            provide: options.provide,
            sender,
            idle: Vec::new(),
            all: Vec::new(),
        };
        let mut runner = Runner {
            graph,
            options,
            hooks,
            schedule,
            workers,
            tokens,
            ended: BTreeMap::new(),
            lanes: BTreeMap::new(),
            memory,
            estimates,
            again: BTreeSet::new(),
            told: None,
        };
        runner.drive(&events);
        runner.workers.end();
        (runner.schedule, runner.ended, runner.estimates)
    });
    let outcome = |(id, state)| {
        let outcome = ended.remove(&id).unwrap_or(match state {
            State::Skipped(cause) => Outcome::Skipped(cause),
            _ => Outcome::NotStarted,
        });
        (id, outcome)
    };
    let report = Report {
        outcomes: schedule.states().map(outcome).collect(),
        wall: start.elapsed(),
        cancelled: options.cancel.is_cancelled().then(|| options.cancel.exit_code()),
    };
    options.progress.outcomes(&report.outcomes);
    // Before the lines below, which a terminal's line would be drawn over.
    options.progress.summary(report.counts(), report.wall);
    if let Err(error) = estimates.history().save() {
        // The next run's estimates are worse, and nothing else.
        eprintln!("distlto: note: {error}");
        options.progress.warned(&error.to_string());
    }
    // The results are right all the same.
    for trouble in options.cache.map(|cache| cache.troubles()).unwrap_or_default() {
        eprintln!("distlto: warning: {trouble}");
        options.progress.warned(&trouble);
    }
    report
}
