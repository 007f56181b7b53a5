//! The service of a command: answers each process that connects, and serves the linkers among them.
//!
//! Does not answer a linker's questions (see `connection`).

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use distlto_executor::trace;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::threads;

use super::build::{Build, Task};
use super::conclude::FinishedLink;
use super::inputs::{self, FULL_LTO};
use super::link::LinkStart;
use super::process::{Process, strings};
use super::protocol::{self, PACKET, Role};
use super::request::{self, LinkRequest, ProcessKind};
use super::roles::{answering, give};
use super::socket::{Connection, Received};
use super::whole_link::WholeLink;
use crate::cargo::without_lto;
use crate::link::error::LinkError;
use crate::link::state::LinkState;
use crate::run_args::LinkServers;

/// Interval of checks whether the command is over, while a process is silent.
const LOOK: Duration = Duration::from_millis(100);

/// The service of one command.
pub struct Service<'b> {
    pub build: &'b Build<'b>,
    /// Links that are concluded when the command has ended.
    pub links: Mutex<Vec<FinishedLink<'b>>>,
    /// Whether the command has ended.
    pub is_over: AtomicBool,
}

impl<'b> Service<'b> {
    /// Answers processes until the command has ended, each on a thread of its own.
    pub fn listen<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, end: BorrowedFd<'_>) {
        loop {
            match self.build.listener().next(end) {
                Ok(Some(connection)) => {
                    // Without a thread the process gets no answer, and goes on without.
                    let _ = threads::start_in(scope, "process", move || {
                        self.answer(&connection).unwrap_or_else(|error| self.build.fail(error));
                    });
                }
                Ok(None) => return,
                Err(error) => {
                    let error = IoError::on("hear", "the processes of the command")(error);
                    return self.build.fail(error.into());
                }
            }
        }
    }

    /// Answers a process, to its end if it is a linker.
    fn answer(&self, connection: &Connection) -> Result<(), LinkError> {
        let mut bytes = vec![0; PACKET];
        loop {
            match connection.receive(&mut bytes, Some(LOOK)).map_err(answering)? {
                Received::Packet(bytes, _) if bytes == protocol::greeting() => {
                    return self.greet(connection);
                }
                Received::Packet(bytes, [Some(strings), _]) if bytes == protocol::announcement() => {
                    let Ok(process) = Process::announced(connection.process, strings) else { return Ok(()) };
                    let line = self.build.line_without_hook(&process)?;
                    let role = if line.is_some() { Role::Program } else { Role::None };
                    return Ok(give(connection, role, &line.iter().collect::<Vec<_>>())?);
                }
                Received::Nothing if !self.is_over.load(Ordering::Relaxed) => {}
                _ => return Ok(()),
            }
        }
    }

    /// Gives a process with the hook its role.
    fn greet(&self, connection: &Connection) -> Result<(), LinkError> {
        let build = self.build;
        // One that is gone needs no answer.
        let Ok(process) = Process::of(connection.process) else { return Ok(()) };
        let native = if build.variables.is_empty() { None } else { without_lto(&process.words) };
        if let Some(words) = native {
            // Its children link without bitcode.
            let line = strings([&Word::new()].into_iter().chain(&words)).map_err(answering)?;
            return Ok(give(connection, Role::Program, &[&line])?);
        }
        let kind = self.kind_of(&process)?;
        if !matches!(kind, ProcessKind::Other | ProcessKind::Native) {
            build.seen().has_linker = true;
        }
        // Without memory for notes, the reads of the process are unknown.
        let is_noted = build.is_observed || matches!(kind, ProcessKind::Link(_));
        let notes = is_noted.then(trace::notes).and_then(Result::ok);
        match kind {
            ProcessKind::Link(request) => self.link(connection, process, notes, *request),
            ProcessKind::Alone(why) => {
                build.note_alone(&why);
                let role = if build.task.is_thin() {
                    Role::End
                } else if let Err(error) = build.pass_process_through(&process, &why) {
                    build.fail(error);
                    Role::Refused
                } else {
                    Role::None
                };
                self.pass(connection, process, notes, role)
            }
            ProcessKind::Native => {
                build.count_native(&process.program);
                self.pass(connection, process, notes, Role::None)
            }
            ProcessKind::Other => {
                request::note_hidden_lld(build, &process);
                self.pass(connection, process, notes, Role::None)
            }
        }
    }

    fn kind_of(&self, process: &Process) -> Result<ProcessKind, LinkError> {
        let kind = self.build.kind_of(process)?;
        // Later, its build would take the link for a good one.
        let is_required = self.build.options.require && matches!(self.build.task, Task::Link);
        if is_required
            && matches!(kind, ProcessKind::Link(_))
            && inputs::lacks_thin_lto(inputs::of_process(process))
        {
            return Ok(ProcessKind::Alone(FULL_LTO.to_owned()));
        }
        Ok(kind)
    }

    /// Lets a process go on, with memory for its notes.
    fn pass(
        &self,
        connection: &Connection,
        process: Process,
        notes: Option<File>,
        role: Role,
    ) -> Result<(), LinkError> {
        let files: Vec<&File> = notes.iter().collect();
        give(connection, role, &files)?;
        if self.build.is_observed {
            self.build.observe(Arc::new(process), notes);
        }
        Ok(())
    }

    /// Performs the command's task for a linker.
    fn link(
        &self,
        connection: &Connection,
        process: Process,
        notes: Option<File>,
        request: LinkRequest,
    ) -> Result<(), LinkError> {
        let build = self.build;
        let output = process.directory.join(request.command.line.output());
        // Relative to this process where both run in one directory.
        let named = process.elsewhere().unwrap_or_default().join(request.command.line.output());
        let record = build.options.record_of(&named.to_string_lossy());
        let begun = Instant::now();
        let servers = LinkServers::new(&build.options.run, build.cancel);
        let process = Arc::new(process);
        let mut start = LinkStart {
            cache: build.make_folder("linker")?,
            process,
            notes,
            request,
            servers,
            whole: None,
            begun,
        };
        match build.task {
            Task::Preview => {
                let there = record.filter(|record| Path::new(record).is_dir());
                let earlier = there.map(|there| self.hold(Some(&there))).transpose()?;
                build.preview(connection, start, earlier)
            }
            Task::Collect(collection) => build.collect(connection, start, collection),
            Task::Graph(objects) => build.link_graph(connection, start, objects),
            Task::Link => {
                start.whole = WholeLink::of(build, &start.process, &start.request);
                let whole = start.whole.as_ref();
                if whole.is_some_and(|whole| whole.take(build, &start.servers, &output, begun)) {
                    return Ok(give(connection, Role::End, &[])?);
                }
                self.serve(connection, start, record.as_deref())
            }
        }
    }

    /// Takes the state of a link. Waits while another linker of this command holds it, or the same one before it
    /// began anew.
    pub fn hold(&self, directory: Option<&str>) -> Result<LinkState, LinkError> {
        loop {
            if let Some(directory) = directory {
                if let Some(held) = self.build.seen().held.take_if(|held| held.is_for(directory)) {
                    return Ok(held);
                }
                if let Some(earlier) = self.superseded(directory) {
                    return Ok(earlier.link.into_state());
                }
            }
            match LinkState::open_or_scratch(directory) {
                Err(LinkError::Busy { ref holder, .. })
                    if *holder == std::process::id().to_string() && !self.build.cancel.is_cancelled() =>
                {
                    thread::sleep(Duration::from_millis(5));
                }
                opened => return opened,
            }
        }
    }

    /// Takes over an ended link of this command if its program is linked again.
    fn superseded(&self, directory: &str) -> Option<FinishedLink<'b>> {
        let mut links = lock(&self.links);
        let at = links.iter().position(|finished| finished.link.is_for(directory))?;
        Some(links.remove(at))
    }
}
