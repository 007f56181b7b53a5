//! What the compiler's driver would run for a backend, asked while the thin link runs.
//!
//! The first backends of a run would wait for that answer (see `cc1`). The command is known before the thin link
//! but for the module's shard, and the thin link leaves processors idle while it reads. A wrong guess costs the question.

use std::thread::Scope;

use distlto_planner::index::Preview;
use distlto_planner::state::Place;
use distlto_prepare::threads;

use super::Session;
use distlto_executor::execute::cc1::{Cc1Commands, MANY, Names};
use distlto_executor::execute::drivers::Drivers;
use distlto_executor::execute::process::GRACE;

/// Asks for a link that has no objects yet, and enough modules for the answer to be used.
pub fn ask<'scope>(
    session: &'scope Session<'_>,
    cc1_commands: &'scope Cc1Commands,
    scope: &'scope Scope<'scope, '_>,
    backend: Preview,
) {
    if backend.modules < MANY || Place::Objects.path(session.directory).exists() {
        return;
    }
    let (spawner, cancel) = (session.options.run.asker(session.spawner), session.cancel);
    let question = move || {
        let words: Vec<_> = backend.command.into_iter().map(String::into_bytes).collect();
        let names =
            Names { module: &backend.module, shard: &backend.shard, object: &backend.object, others: &[] };
        Drivers { answers: cc1_commands, spawner, cancel, grace: GRACE, directory: None }
            .command(&words, names);
    };
    // Without a thread the run asks.
    let _ = threads::start_in(scope, "ahead", question);
}
