//! An action under way on an engine.

use std::path::Path;
use std::time::Duration;

use distlto_reapi::Client;

use crate::describe::Described;
use crate::execute::ExecutionRequest;

/// How often an action that is under way is looked at, while slots of this machine are idle.
pub const LOOK: Duration = Duration::from_millis(100);

/// An action, and the engine that executes it.
pub struct Action<'a> {
    pub client: &'a Client,
    pub described: &'a Described<'a>,
    pub request: &'a ExecutionRequest<'a>,
    pub directory: Option<&'a Path>,
}
