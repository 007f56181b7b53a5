//! Execution of actions: [`Execute`] takes an [`ExecutionRequest`] and returns the [`Executed`] action or the [`Cause`]
//! of a failure.
//!
//! [`local::Local`] runs the command on this machine. [`remote::Remote`] runs it on an engine, or on this machine, as the
//! schedule decides. The job checks, keeps and places the outputs. Knows nothing of caches and schedules.

pub mod capture;
pub mod cc1;
pub mod drivers;
pub mod local;
pub mod process;
pub mod redirect;
pub mod remote;
pub mod response_file;
pub mod spawn;

use std::process::ExitStatus;
use std::time::Duration;

use distlto_prepare::io_error::IoError;
use distlto_record::action::EngineTimes;
use distlto_record::report::{Measured, Span};

use crate::cancel::Cancel;
use crate::cause::Cause;
use crate::describe::Described;
use crate::job::Job;
use crate::output::Output;
use crate::result::Key;
use crate::schedule::Site;
use crate::undeclared::Undeclared;
use crate::verify::Expectation;
use capture::Captured;

/// Executes actions, any number at once.
pub trait Execute: Sync {
    /// Executes an action to its end, or until the run is cancelled. Its outputs are then at the paths of the request,
    /// unchecked.
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause>;
}

/// A linker that compiles its own modules, in the place of processes of this machine.
pub trait Linker: Execute {
    /// The key of this module's object in caches; `None` if no cache is asked by such a key.
    fn key(&self, label: &str) -> Option<Key>;

    /// The key by which machines without an engine ask for this module's object; `None` if there is none, or if `key` is
    /// that key.
    fn other_key(&self, label: &str) -> Option<Key>;

    /// The requirements on the object of this module.
    fn expectation(&self, label: &str) -> Result<Expectation, IoError>;
}

/// An action to be executed.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionRequest<'a> {
    /// The command, with its inputs and outputs.
    pub job: &'a Job,
    /// The action by content; `None` if part of it is unknown, so that only this machine can execute it.
    pub described: Option<&'a Described<'a>>,
    /// Where the outputs are to be.
    pub outputs: &'a [Output<'a>],
    /// Where it is to run.
    pub site: Site,
    /// How long it takes here, by estimate.
    pub estimate: Duration,
    /// Whether to ignore results that an engine has kept.
    pub anew: bool,
    /// Ends it early.
    pub cancel: &'a Cancel,
}

/// The outcome of an executed action.
#[derive(Debug)]
pub struct Executed {
    /// How its command ended.
    pub status: ExitStatus,
    /// Standard output of the command.
    pub stdout: Captured,
    /// Standard error of the command.
    pub stderr: Captured,
    /// Time and memory of the command.
    pub measured: Measured,
    /// When the command ran.
    pub span: Span,
    /// Whether the command was ended because the run was cancelled.
    pub interrupted: bool,
    /// The worker that ran it; `None` for this machine.
    pub worker: Option<String>,
    /// How long its way there and back took.
    pub times: EngineTimes,
    /// Whether it ran earlier, and an engine has kept the result.
    pub kept: bool,
    /// How long the earlier backend took whose object is this one, since the module is the same after its imports.
    pub same_imports: Option<Duration>,
    /// Undeclared inputs, as far as known. Empty if a worker ran the action, since a worker has the declared inputs
    /// alone.
    pub undeclared: Undeclared,
}
