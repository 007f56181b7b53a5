//! Runs the wanted actions of a graph on this machine: a scheduler, workers, and one thread that talks to both.
//!
//! The calling thread holds the schedule and calls the hooks and the progress, so those need no locks and see
//! events in order. A worker thread takes one action at a time, and starts a process and waits for it (see
//! `process` for why both are on one thread). Knows nothing of why an action is wanted.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use std::{io, thread};

use distlto_planner::graph::{ActionGraph, ActionId, ActionKind};
use distlto_prepare::kind::Native;
use jobserver::{Acquired, Client};

use crate::cancel::Cancel;
use crate::capture::whole_lines;
use crate::frontend::{self, Frontends};
use crate::job::{self, Attempt, Cause, Context, Job};
use crate::process::{GRACE, Spawner};
use crate::progress::{Plan, Progress, Step};
use crate::report::{Failure, Measured, Outcome, Report};
use crate::schedule::{Policy, Schedule, State};
use crate::staging::Places;
use crate::tokens::Tokens;
use crate::verify::{Backend, Modules, Role};

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
    /// What a person runs to repeat an action; its command in `directory` when `None`.
    pub repeat: Option<&'a dyn Fn(ActionId) -> String>,
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
            repeat: None,
        }
    }
}

/// What the caller does as actions start and end. Called on the thread that called [`run`].
pub trait Hooks {
    /// An action is about to start.
    fn before(&self, _action: ActionId) {}
    /// An action succeeded and its outputs are in place: the moment to record it, since the run may be killed.
    fn finished(&self, _action: ActionId, _measured: Measured) {}
    /// An action failed; its earlier outputs are intact.
    fn failed(&self, _action: ActionId, _failure: &Failure) {}
}

/// Does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// What workers and the jobserver tell the thread that schedules.
enum Event {
    /// `worker` is `None` for an action that this thread ran itself.
    Ended {
        worker: Option<usize>,
        action: ActionId,
        attempt: Box<Attempt>,
    },
    Token(io::Result<Acquired>),
}

/// Runs `wanted`, which the caller found out of date; every other action counts as up to date.
///
/// Returns when nothing runs any more. The caller prints the report's failures only if its progress does not.
pub fn run(graph: &ActionGraph, wanted: &[ActionId], options: &Options<'_>, hooks: &dyn Hooks) -> Report {
    let start = Instant::now();
    let schedule = Schedule::new(graph, wanted, options.policy);
    let modules = Modules::new(options.directory);
    let frontends = Frontends::default();
    let backends = wanted.iter().filter(|&&id| graph.action(id).kind == ActionKind::Opt).count();
    let context = Context {
        spawner: options.spawner,
        cancel: options.cancel,
        modules: &modules,
        directory: options.directory,
        expected: options.expected,
        grace: options.grace,
        frontends: (backends >= frontend::MANY).then_some(&frontends),
        places: options.places,
    };
    let (sender, events) = mpsc::channel();
    options.progress.plan(Plan {
        actions: schedule.states().count(),
        cost: schedule.cost_left(),
        jobs: options.jobs.max(1),
    });
    let (schedule, mut ended) = thread::scope(|scope| {
        let tokens = Tokens::new(options.jobserver, sender.clone(), Event::Token);
        let workers = Workers { scope, context: &context, graph, sender, idle: Vec::new(), all: Vec::new() };
        let mut runner = Runner { graph, options, hooks, schedule, workers, tokens, ended: BTreeMap::new() };
        runner.drive(&events);
        runner.workers.end();
        (runner.schedule, runner.ended)
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
    options.progress.summary(report.counts(), report.wall);
    report
}

/// The thread that schedules.
struct Runner<'scope, 'env, 'g> {
    graph: &'g ActionGraph,
    options: &'g Options<'g>,
    hooks: &'g dyn Hooks,
    schedule: Schedule<'g>,
    workers: Workers<'scope, 'env>,
    tokens: Tokens,
    ended: BTreeMap<ActionId, Outcome>,
}

impl Runner<'_, '_, '_> {
    fn drive(&mut self, events: &Receiver<Event>) {
        loop {
            self.start_what_may();
            if self.schedule.is_finished() {
                return;
            }
            match events.recv() {
                Ok(Event::Ended { worker, action, attempt }) => {
                    self.workers.idle.extend(worker);
                    self.end(action, *attempt);
                }
                Ok(Event::Token(answer)) => self.tokens.take(answer),
                // Not reached: this thread holds a sender itself.
                Err(mpsc::RecvError) => return,
            }
        }
    }

    fn start_what_may(&mut self) {
        if self.options.cancel.is_cancelled() {
            self.schedule.stop();
        }
        let jobs = self.options.jobs.max(1);
        while self.schedule.running() < jobs.min(self.tokens.allowed()) {
            let Some(action) = self.schedule.take() else { break };
            let command = self.command_line(action);
            self.hooks.before(action);
            self.options.progress.start(self.step(action, &command));
            self.workers.give(action);
        }
        if self.schedule.has_ready() && self.schedule.running() < jobs {
            self.tokens.ask();
        } else {
            self.tokens.give_back(self.schedule.running());
        }
    }

    fn end(&mut self, action: ActionId, attempt: Attempt) {
        let measured = attempt
            .finished
            .as_ref()
            .map_or_else(Measured::default, |finished| Measured::new(finished.wall, finished.ended));
        let stderr = attempt.finished.as_ref().map_or_else(String::new, |finished| finished.stderr.text());
        let outcome = match attempt.result {
            Ok(()) => {
                self.schedule.done(action);
                self.hooks.finished(action, measured);
                self.options.progress.finish(self.step(action, ""), measured, &whole_lines(&stderr));
                Outcome::Done(measured)
            }
            Err(cause) => {
                self.schedule.failed(action);
                let command = self.command_line(action);
                let failure = Box::new(Failure { cause, command, stderr });
                if !matches!(failure.cause, Cause::Interrupted { .. }) {
                    self.hooks.failed(action, &failure);
                    self.options.progress.fail(self.step(action, ""), &failure);
                }
                Outcome::Failed(failure)
            }
        };
        self.ended.insert(action, outcome);
    }

    fn command_line(&self, action: ActionId) -> String {
        match self.options.repeat {
            Some(repeat) => repeat(action),
            None => job_of(self.graph, action, &[]).command_line(self.options.directory),
        }
    }

    fn step<'s>(&'s self, id: ActionId, command: &'s str) -> Step<'s> {
        let action = self.graph.action(id);
        Step { id: id.index(), kind: action.kind, label: &action.label, cost: action.cost.max(1), command }
    }
}

/// Threads that run actions; started when they are first needed.
struct Workers<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    context: &'scope Context<'env>,
    graph: &'scope ActionGraph,
    sender: Sender<Event>,
    idle: Vec<usize>,
    all: Vec<(Sender<ActionId>, ScopedJoinHandle<'scope, ()>)>,
}

impl Workers<'_, '_> {
    fn give(&mut self, action: ActionId) {
        match self.idle.pop().or_else(|| self.start()) {
            // A worker ends only when this structure is dropped, so it takes what it is sent.
            Some(worker) => drop(self.all[worker].0.send(action)),
            // At the system's limit of threads, one action at a time is better than none.
            None => drop(self.sender.send(ended(None, self.graph, action, self.context))),
        }
    }

    /// Starts a worker, if the system lets us.
    fn start(&mut self) -> Option<usize> {
        let (give, take) = mpsc::channel();
        let worker = self.all.len();
        let (graph, context, sender) = (self.graph, self.context, self.sender.clone());
        let work = move || {
            for action in take {
                // The receiver lives until every action has ended.
                let _ = sender.send(ended(Some(worker), graph, action, context));
            }
        };
        let handle = thread::Builder::new().spawn_scoped(self.scope, work).ok()?;
        self.all.push((give, handle));
        Some(worker)
    }

    /// Ends all workers and waits until the system has. A scope waits for closures only, and a library that is
    /// unloaded after a run must not leave a thread that is still on its way out of it.
    fn end(self) {
        let (senders, handles): (Vec<_>, Vec<_>) = self.all.into_iter().unzip();
        drop(senders);
        for handle in handles {
            // A worker catches the panics of its actions.
            let _ = handle.join();
        }
    }
}

/// Runs an action to its end.
fn ended(worker: Option<usize>, graph: &ActionGraph, action: ActionId, context: &Context<'_>) -> Event {
    let attempt = catch_unwind(AssertUnwindSafe(|| attempt(graph, action, context)));
    let attempt = Box::new(attempt.unwrap_or_else(|_| internal(graph, action)));
    Event::Ended { worker, action, attempt }
}

fn attempt(graph: &ActionGraph, action: ActionId, context: &Context<'_>) -> Attempt {
    let others = others_of(graph, action);
    job::run(&job_of(graph, action, &others), context)
}

/// A worker's panic ends its action, not the run, whose other objects are good.
fn internal(graph: &ActionGraph, action: ActionId) -> Attempt {
    let label = graph.action(action).label.clone();
    Attempt { finished: None, result: Err(Cause::Internal { label }) }
}

fn others_of(graph: &ActionGraph, id: ActionId) -> Vec<&str> {
    let inputs = graph.action(id).inputs.iter().skip(2);
    inputs.map(|&input| graph.path(input).as_str()).collect()
}

/// An action of the graph as a job. A backend compilation's inputs are its module, its shard, then others.
fn job_of<'a>(graph: &'a ActionGraph, id: ActionId, others: &'a [&'a str]) -> Job<'a> {
    let action = graph.action(id);
    let backend = match (action.kind, action.inputs.as_slice()) {
        (ActionKind::Opt, &[module, shard, ..]) => {
            Some(Backend { module: graph.path(module).as_str(), shard: graph.path(shard).as_str(), others })
        }
        _ => None,
    };
    let role = |path: &camino::Utf8Path| match backend {
        None => Role::File,
        Some(_) if path.extension() == Some("dwo") => Role::Dwo,
        Some(_) => Role::Object,
    };
    let outputs = action.outputs.iter().map(|&output| graph.path(output)).map(|path| (path, role(path)));
    Job { label: &action.label, words: graph.command(id), backend, outputs: outputs.collect() }
}
