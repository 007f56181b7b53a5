//! The threads of a run that start processes and wait for them, one action at a time each.
//!
//! Both are on one thread, since the kernel ends a child when the thread that started it ends (see `process`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use distlto_planner::graph::ActionId;
use distlto_prepare::threads;

use super::event::Event;
use super::options::Provide;
use crate::attempt::{self, Context, JobAttempt};
use crate::cause::Cause;
use crate::job::Job;
use crate::schedule::Site;

/// The task of a worker.
pub(super) struct Task {
    pub(super) action: ActionId,
    pub(super) job: Job,
    /// The site where it runs.
    pub(super) site: Site,
    /// Its estimated time here.
    pub(super) estimate: Duration,
}

/// Threads that run actions; started when they are first needed.
pub(super) struct Workers<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    work: WorkerContext<'scope, 'env>,
    sender: Sender<Event>,
    pub(super) idle: Vec<usize>,
    pub(super) all: Vec<Worker<'scope>>,
    are_given_up: bool,
}

/// Where a worker gets its tasks, and its thread.
type Worker<'scope> = (Sender<Task>, ScopedJoinHandle<'scope, ()>);

/// The context of a running action.
#[derive(Clone, Copy)]
struct WorkerContext<'scope, 'env> {
    context: &'scope Context<'env>,
    provide: Option<&'scope Provide<'env>>,
}

impl<'scope, 'env> Workers<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        context: &'scope Context<'env>,
        provide: Option<&'scope Provide<'env>>,
        sender: Sender<Event>,
    ) -> Self {
        let work = WorkerContext { context, provide };
        Self { scope, work, sender, idle: Vec::new(), all: Vec::new(), are_given_up: false }
    }

    /// The number of a worker that has nothing to do; `None` at the system's limit of threads.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.idle.pop().or_else(|| (!self.are_given_up).then(|| self.start())?)
    }

    /// Ends the idle workers, so that other programs can use their threads. No worker may run an action. From here on
    /// the calling thread runs actions itself.
    pub(super) fn give_up(&mut self) {
        self.are_given_up = true;
        self.idle.clear();
        end(std::mem::take(&mut self.all));
    }

    /// Gives an action to a worker that was taken.
    pub(super) fn give(&mut self, worker: Option<usize>, task: Task) {
        match worker {
            // A worker ends only when this structure is dropped, so it takes each task.
            Some(worker) => drop(self.all[worker].0.send(task)),
            // At the system's limit of threads, one action at a time is better than none.
            None => drop(self.sender.send(self.work.ended(None, &task))),
        }
    }

    /// Starts a worker, if the system lets us.
    fn start(&mut self) -> Option<usize> {
        let (give, take) = mpsc::channel();
        let worker = self.all.len();
        let (work, sender) = (self.work, self.sender.clone());
        let run = move || {
            for task in take {
                // The receiver lives until every action has ended.
                let _ = sender.send(work.ended(Some(worker), &task));
            }
        };
        let handle = threads::start_in(self.scope, "worker", run).ok()?;
        self.all.push((give, handle));
        Some(worker)
    }

    /// Ends all workers and waits until the system has. A scope waits for closures only. An unloaded library must not
    /// leave a thread that is still on its way out of it.
    pub(super) fn end(self) {
        end(self.all);
    }
}

fn end(workers: Vec<Worker<'_>>) {
    let (senders, handles): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
    drop(senders);
    for handle in handles {
        // A worker catches the panics of its actions.
        let _ = handle.join();
    }
}

impl WorkerContext<'_, '_> {
    /// Runs an action to its end.
    fn ended(self, worker: Option<usize>, task: &Task) -> Event {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(task)));
        let internal = |label| Cause::Internal { label };
        let attempt = Box::new(attempt.unwrap_or_else(|_| failed(task, internal)));
        Event::Ended { worker, action: task.action, attempt }
    }

    fn attempt(self, task: &Task) -> JobAttempt {
        if let Some(Err(source)) = self.provide.map(|provide| provide(task.action)) {
            return failed(task, |label| Cause::Io { label, source });
        }
        attempt::run(&task.job, task.site, task.estimate, self.context)
    }
}

/// Returns an attempt that failed by a panic or a full disk. It fails one action, not the run: its other objects are
/// good.
fn failed(task: &Task, cause: impl FnOnce(String) -> Cause) -> JobAttempt {
    JobAttempt::of(Err(cause(task.job.label.clone())))
}
