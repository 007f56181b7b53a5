//! The queue of actions and the workers that take from it, each with its slots.
//!
//! A worker takes the oldest action whose platform it has. One that is lost gives its actions back to the queue.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use bazel_remote_apis::build::bazel::remote::execution::v2::execution_stage::Value;
use tokio::sync::Notify;

use crate::operation::Job;
use crate::options::Worker;
use crate::run;
use crate::state::{State, locked};

/// Actions that wait, and all that are known.
#[derive(Default)]
pub struct Queue {
    waiting: Mutex<VecDeque<Arc<Job>>>,
    known: Mutex<HashMap<String, Arc<Job>>>,
    lost: Mutex<HashSet<String>>,
    changed: Notify,
}

impl Queue {
    /// Adds an action.
    pub fn push(&self, job: Arc<Job>) {
        locked(&self.known).insert(job.name.clone(), job.clone());
        locked(&self.waiting).push_back(job);
        self.wake();
    }

    /// Lets workers look again.
    pub fn wake(&self) {
        self.changed.notify_waiters();
    }

    /// The operation of this name.
    pub fn find(&self, name: &str) -> Option<Arc<Job>> {
        locked(&self.known).get(name).cloned()
    }

    /// All operations.
    pub fn all(&self) -> Vec<Arc<Job>> {
        locked(&self.known).values().cloned().collect()
    }

    /// Takes an action out of the queue, if it waits.
    pub fn remove(&self, name: &str) {
        locked(&self.waiting).retain(|job| job.name != name);
        self.wake();
    }

    /// Ends a worker: what it runs goes back to the queue.
    pub fn lose(&self, worker: &str) {
        locked(&self.lost).insert(worker.to_owned());
        self.wake();
    }

    /// Ends all that is known, since nobody will.
    pub fn abandon(&self) {
        locked(&self.waiting).clear();
        locked(&self.known).clear();
    }

    fn is_lost(&self, worker: &Worker) -> bool {
        locked(&self.lost).contains(&worker.name)
    }

    fn take(&self, worker: &Worker) -> Option<Arc<Job>> {
        let mut waiting = locked(&self.waiting);
        let fits = |job: &Arc<Job>| job.platform().all(|property| has(worker, property));
        let at = waiting.iter().position(fits)?;
        waiting.remove(at)
    }

    /// Waits until something changed, or until `done` holds.
    async fn until<T>(&self, mut done: impl FnMut() -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // What changes from here on is heard.
            changed.as_mut().enable();
            if let Some(found) = done() {
                return found;
            }
            changed.await;
        }
    }
}

fn has(worker: &Worker, (name, value): (&str, &str)) -> bool {
    worker.platform.iter().any(|(known, has)| known == name && has == value)
}

/// Whether any worker has the platform of this action.
pub fn is_known(workers: &[Worker], job: &Job) -> bool {
    workers.iter().any(|worker| job.platform().all(|property| has(worker, property)))
}

/// One slot of a worker.
pub async fn work(state: Arc<State>, worker: Worker) {
    let queue = &state.queue;
    while !queue.is_lost(&worker) {
        let next = queue.until(|| {
            if queue.is_lost(&worker) {
                return Some(None);
            }
            let held = state.faults().hold || state.is_crowded();
            if held { None } else { queue.take(&worker).map(Some) }
        });
        let Some(job) = next.await else { return };
        let lost = queue.until(|| queue.is_lost(&worker).then_some(()));
        let cancelled = queue.until(|| job.is_done().then_some(()));
        tokio::select! {
            response = run::run(&state, &worker, &job) => {
                if job.is_done() { continue; }
                state.count(|counts| *counts.executed.entry(worker.name.clone()).or_default() += 1);
                job.end(&response);
            }
            () = lost => {
                job.at(Value::Queued, Some(&job.queued));
                locked(&queue.waiting).push_front(job.clone());
                queue.wake();
            }
            () = cancelled => {}
        }
    }
}
