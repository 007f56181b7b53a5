//! One way to execute an action: [`Execute`] gets an [`ExecutionRequest`], and gives what was [`Executed`] or why nothing was.
//!
//! [`local::Local`] runs the command on this machine, [`remote::Remote`] has an engine run it, or hands it to `Local`, as the
//! schedule says. Checking, keeping and putting in place is the job's. Knows nothing of caches and schedules.

pub mod capture;
pub mod cc1;
pub mod drivers;
pub mod forkserver;
pub mod heap;
pub mod local;
pub mod process;
pub mod redirect;
pub mod remote;
pub mod response_file;
pub mod spawn;

use std::process::ExitStatus;
use std::time::Duration;

use distlto_record::action::EngineTimes;
use distlto_record::report::{Measured, Span};

use crate::cause::Cause;
use crate::describe::Described;
use crate::job::Job;
use crate::output::Output;
use crate::schedule::Site;
use crate::undeclared::Undeclared;
use capture::Captured;

/// Executes actions, any number at once.
pub trait Execute: Sync {
    /// Executes an action to its end, or until the run is cancelled. What it wrote is where the request says, unchecked.
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause>;
}

/// An action to be executed.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionRequest<'a> {
    /// The command, with what it reads and writes.
    pub job: &'a Job<'a>,
    /// The same by content; `None` where not all of it is known, so that this machine alone can execute it.
    pub described: Option<&'a Described<'a>>,
    /// Where the outputs are to be.
    pub outputs: &'a [Output<'a>],
    /// Where it is to run.
    pub site: Site,
    /// How long it takes here, by estimate.
    pub estimate: Duration,
    /// Whether a result that an engine has kept is of no use.
    pub anew: bool,
}

/// What an action did.
#[derive(Debug)]
pub struct Executed {
    /// How its command ended.
    pub status: ExitStatus,
    /// What that wrote to standard output.
    pub stdout: Captured,
    /// What that wrote to standard error.
    pub stderr: Captured,
    /// What it cost.
    pub measured: Measured,
    /// When the command ran.
    pub span: Span,
    /// Whether it was told to end because the run was cancelled.
    pub interrupted: bool,
    /// The worker that ran it; `None` for this machine.
    pub worker: Option<String>,
    /// How long its way there and back took.
    pub times: EngineTimes,
    /// Whether it ran earlier, and an engine has kept the result.
    pub kept: bool,
    /// What it read besides its inputs, as far as that is known: nothing where a worker ran it, which had those alone.
    pub undeclared: Undeclared,
}
