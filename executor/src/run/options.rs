//! How a run goes: its options, and the caller's handlers for its actions.

use std::path::Path;
use std::thread;
use std::time::Duration;

use distlto_planner::digests::FileDigests;
use distlto_planner::graph::ActionId;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::Native;
use distlto_record::progress::Progress;
use distlto_record::report::{Failure, Measured};

use crate::cache::ResultCache;
use crate::cancel::Cancel;
use crate::describe::Toolchains;
use crate::execute::Linker;
use crate::execute::cc1::Cc1Commands;
use crate::execute::process::{GRACE, Spawner};
use crate::execute::remote::engine::Engine;
use crate::ledger::Ledger;
use crate::schedule::Policy;
use crate::schedule::memory::Limit;
use crate::schedule::tokens::JobSlots;
use crate::staging::Places;
use crate::undeclared::Undeclared;

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
    /// Whether recorded module hashes are not compared, see [`Modules::ignoring_hashes`](crate::verify::Modules::ignoring_hashes).
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

/// The caller's handlers for starting and ending actions. Called on the thread that called [`run`](super::run) or [`run_arriving`](super::run_arriving).
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
