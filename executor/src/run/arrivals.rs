//! A queue for actions that arrive while a run lasts, from any thread to the scheduling one.
//!
//! Independent of the sender of an action and of its outcome.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use distlto_planner::graph::{Action, ActionGraph, ActionId, BackendWork, Decided, Work};
use distlto_prepare::mutex::lock;
use distlto_record::action::ActionRecord;
use distlto_record::progress::{Progress, ProgressEvent};

use super::event::Event;
use crate::cancel::Cancel;

/// Interval between looks at cancellation and the expected total while actions may arrive.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// One backend compilation requested while a run lasts. It needs no other of the run. Paths are relative to the run's
/// directory or absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The module id.
    pub label: String,
    /// The words of its command that it shares with others.
    pub prefix: Arc<[String]>,
    /// The rest of its command.
    pub args: Vec<String>,
    /// The module.
    pub module: Utf8PathBuf,
    /// Its index shard.
    pub shard: Utf8PathBuf,
    /// The modules it imports from.
    pub imports: Vec<Utf8PathBuf>,
    /// Its other inputs.
    pub extra: Vec<Utf8PathBuf>,
    /// Its object; no other action of the run writes the same file.
    pub object: Utf8PathBuf,
    /// Its second output, the file for split debug information.
    pub dwo: Option<Utf8PathBuf>,
    /// Its cost in instructions, own and imported; 0 where nothing is known.
    pub cost: u64,
}

impl Arrival {
    fn add_to(self, graph: &mut ActionGraph) -> ActionId {
        let Self { label, prefix, args, module, shard, imports, extra, object, dwo, cost } = self;
        let work = Work::Backend(BackendWork {
            module: graph.file(module),
            shard: graph.file(shard),
            imports: imports.iter().map(|path| graph.file(path)).collect(),
            extra: extra.iter().map(|path| graph.file(path)).collect(),
            object: graph.file(object),
            dwo: dwo.map(|path| graph.file(path)),
            also: Vec::new(),
            decided: Decided::default(),
        });
        let prefix = Some(graph.prefix(prefix.to_vec()));
        graph.add(Action { work, label, prefix, args, cost })
    }
}

/// A way for actions to arrive, and the run that takes them.
pub fn arrivals() -> (Arrivals, Incoming) {
    let (sender, events) = mpsc::channel();
    let door = Arc::new(Mutex::new(Door::default()));
    let source = LastClone { door: door.clone(), wake: sender.clone() };
    (Arrivals(Arc::new(source)), Incoming { door, events, sender })
}

/// The sending end for actions. After the last clone is dropped, the run ends when all actions that arrived have ended.
#[derive(Debug, Clone)]
pub struct Arrivals(Arc<LastClone>);

impl Arrivals {
    /// Adds an action, and returns at once. Its id is its number in the order of these calls. The run's hooks report
    /// its outcome under this id, perhaps before this call has returned. `None` when the run has ended, for example by
    /// cancellation: the action will have no outcome.
    pub fn add(&self, arrival: Arrival) -> Option<ActionId> {
        let mut door = lock(&self.0.door);
        if door.is_shut {
            return None;
        }
        let id = ActionId::new(door.arrived);
        door.arrived += 1;
        let wakes = door.queue.is_empty();
        door.queue.push(arrival);
        if wakes {
            self.0.wake();
        }
        Some(id)
    }

    /// Sets the expected total of actions, which is shown until more have arrived. The last call counts.
    pub fn expect(&self, total: usize) {
        lock(&self.0.door).expected = total;
    }
}

/// The end of all clones.
#[derive(Debug)]
struct LastClone {
    door: Arc<Mutex<Door>>,
    wake: Sender<Event>,
}

impl LastClone {
    fn wake(&self) {
        // A run that has ended waits for nothing.
        let _ = self.wake.send(Event::Arrived);
    }
}

impl Drop for LastClone {
    fn drop(&mut self) {
        lock(&self.door).is_complete = true;
        self.wake();
    }
}

#[derive(Debug, Default)]
struct Door {
    /// Actions that the run has not taken so far.
    queue: Vec<Arrival>,
    /// How many have arrived.
    arrived: usize,
    expected: usize,
    /// Whether no more come.
    is_complete: bool,
    /// Whether no more are let in.
    is_shut: bool,
}

/// The receiving end of a run. Without a run nothing arrives.
#[derive(Debug)]
pub struct Incoming {
    door: Arc<Mutex<Door>>,
    pub(super) events: Receiver<Event>,
    /// For senders that report on actions of the run.
    pub(super) sender: Sender<Event>,
}

impl Incoming {
    /// An end for a run without arrivals.
    pub(super) fn nothing() -> Self {
        arrivals().1
    }

    /// Adds to the graph the actions that have arrived since the last call.
    pub(super) fn take(&self, graph: &mut ActionGraph, progress: &dyn Progress) -> Vec<ActionId> {
        let arrived = std::mem::take(&mut lock(&self.door).queue);
        let add = |arrival: Arrival| {
            let id = arrival.add_to(graph);
            progress.report(ProgressEvent::Arrived(&ActionRecord::of(graph, id)));
            id
        };
        arrived.into_iter().map(add).collect()
    }

    /// Waits for an arrival; false when there will be none.
    pub(super) fn wait(&self, cancel: &Cancel) -> bool {
        loop {
            if self.has_arrived() {
                return true;
            }
            if self.is_over(cancel.is_cancelled()) {
                // Something may have arrived in between.
                return self.has_arrived();
            }
            match self.events.recv_timeout(LOOK) {
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                // Not reached: this structure holds a sender itself.
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    fn has_arrived(&self) -> bool {
        !lock(&self.door).queue.is_empty()
    }

    /// Returns whether no more actions come and all were taken. `shuts` lets no more in.
    pub(super) fn is_over(&self, shuts: bool) -> bool {
        let mut door = lock(&self.door);
        door.is_shut |= shuts;
        (door.is_shut || door.is_complete) && door.queue.is_empty()
    }

    /// Returns whether more may come.
    pub(super) fn is_open(&self) -> bool {
        let door = lock(&self.door);
        !door.is_shut && !door.is_complete
    }

    /// Returns the expected total, while more may come.
    pub(super) fn expected(&self) -> usize {
        let door = lock(&self.door);
        if door.is_complete || door.is_shut { 0 } else { door.expected }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        lock(&self.door).is_shut = true;
    }
}
