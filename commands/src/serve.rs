//! The service: runs a command with the hook in its processes, and answers its linkers.
//!
//! The user's command is unchanged: it prints, reads, writes and returns the same as without the service. A link's way
//! leads downwards: [`service`] answers a process, [`request`] decides on its kind, [`serving`] performs the link,
//! [`connection`] answers its questions, [`conclude`] ends it. Two contexts are passed on: the command's ([`build`]) and
//! the link's ([`link`]). Does not depend on how backends are run.
//!
//! # Why the linker is asked from within
//!
//! A second link in place of the first resolves symbols anew. It can differ in the prevailing weak definition, in the
//! order of constructors and in the extracted members. lld's ThinLTO cache has no such problem: since version 15, lld
//! asks it for each module on the thread that waits for the object. lld links the answer like an object of its own.
//! lld's DTLTO needs version 21, drops options, and writes members and shards to files in every link. If the service
//! fails, the linker compiles by itself.
//!
//! lld's key covers the module, its imports, the summaries and the LTO options. It covers neither `-mllvm` options and
//! their files nor the compiler, so [`settings`] adds a digest of these.

mod action_records;
mod backends;
pub(crate) mod build;
pub(crate) mod collection;
pub(crate) mod command;
mod compilations;
mod conclude;
mod connection;
pub(crate) mod describe;
pub(crate) mod graph;
mod import_steps;
mod inputs;
mod jobs;
mod kept;
mod key_parts;
mod left_alone;
mod libraries;
mod link;
mod link_reads;
pub(crate) mod linkers;
mod misses;
pub(crate) mod module;
mod module_inputs;
pub(crate) mod module_record;
pub(crate) mod modules;
pub(crate) mod objects;
mod observed;
mod preview;
mod previous_program;
pub(crate) mod process;
mod progress;
#[expect(dead_code, reason = "the other half is compiled into the hook")]
mod protocol;
mod request;
mod roles;
mod run_record;
mod service;
mod serving;
pub(crate) mod settings;
mod socket;
mod source_names;
pub mod static_linker;
mod tasks;
mod thin_link;
mod whole_link;

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use distlto_exec::environment::SERVICE;
use distlto_executor::cancel::Cancel;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::threads;

use crate::link::dry_run;
use crate::link::error::LinkError;
use crate::link::options::LinkOptions;
use crate::link::state;
use build::{Build, ServicePlace, Task};
use command::CommandEnd;
use service::Service;
use socket::Connection;

/// Runs a command and answers its linkers, and keeps no state.
pub(crate) fn run_once(
    command: &[Word],
    options: &LinkOptions,
    cancel: &Cancel,
    task: Task<'_>,
) -> Result<CommandEnd, LinkError> {
    let place = ServicePlace::make()?;
    let spawner = options.run.spawner();
    let reporter = Arc::new(dry_run::reporter(options)?);
    let key = state::key(command, options);
    run(&Build::new((command, key), options, (&spawner, cancel), reporter, &place, task))
}

/// Whether this process runs within a command that a service of this user answers.
pub(crate) fn is_served() -> bool {
    std::env::var_os(SERVICE).is_some_and(|folder| Connection::connect(Path::new(&folder)).is_ok())
}

/// Runs the command to its end, and answers its linkers.
pub(crate) fn run(build: &Build<'_>) -> Result<CommandEnd, LinkError> {
    let (end, ended) = std::io::pipe().map_err(IoError::on("make", "a pipe"))?;
    let service = Service { build, links: Mutex::default(), is_over: AtomicBool::new(false) };
    let (code, at) = thread::scope(|scope| {
        let listening = threads::start_in(scope, "service", || service.listen(scope, end.as_fd()));
        listening.map_err(IoError::on("start", "a thread for the service"))?;
        let code = command::run(build);
        // Also where the command could not be run: nobody is to wait for a silent process.
        drop(ended);
        service.is_over.store(true, Ordering::Relaxed);
        Ok::<_, LinkError>((code?, Instant::now()))
    })?;
    let links = service.links.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seen = build.take_seen();
    let mut end = CommandEnd { code, at, folders: build.folders(), seen, is_concluded: false };
    for previous in std::mem::take(&mut end.seen.previous) {
        // The linker may have gone on by itself, and a driver removes the program after its linker failed.
        let replaced = previous.is_replaced();
        previous.settle(replaced, &end.seen.observed)?;
    }
    for link in links {
        end.code = link.conclude(Some(&end))?;
        end.is_concluded = true;
    }
    Ok(end)
}
