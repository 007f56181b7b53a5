//! One served link, from its linker's role to its end.
//!
//! Does not answer single questions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use distlto_executor::cache::ResultCache;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use distlto_prepare::warning::warn;
use distlto_record::progress::{Phase, Progress, ProgressEvent};

use super::conclude::FinishedLink;
use super::connection;
use super::inputs;
use super::jobs::{Distributor, Jobs};
use super::kept;
use super::link::{Link, LinkStart};
use super::module::LinkModule;
use super::previous_program::PreviousProgram;
use super::progress::{LinkResult, Outcome};
use super::protocol::Role;
use super::roles::{give_linker, handing_over};
use super::service::Service;
use super::socket::Connection;
use super::tasks::remove_saved;
use crate::link::error::LinkError;
use crate::link::file_state::Start;

/// The time from which the digest of the linker is a phase of its own.
const WORTH_A_PHASE: Duration = Duration::from_millis(50);

impl<'b> Service<'b> {
    /// Serves a linker to its end. `record` is the directory for the link's record.
    pub fn serve(
        &self,
        connection: &Connection,
        mut start: LinkStart<'b>,
        record: Option<&str>,
    ) -> Result<(), LinkError> {
        let is_distributed = start.request.settings.is_distributed();
        let state = self.hold(record)?;
        let build = self.build;
        let is_single = build.single.is_some() && build.single.as_deref() == record;
        let reporter = if is_single { Arc::clone(&build.reporter) } else { build.link_reporter()? };
        start.request.record_names(&reporter);
        let (process, output) = (Arc::clone(&start.process), start.request.command.line.output().to_owned());
        let previous = PreviousProgram::of(&process.directory.join(&output), Path::new(state.directory()));
        let jobs = if is_distributed { Some(hand_over(connection, &mut start)) } else { None };
        let opened =
            jobs.transpose().and_then(|jobs| Ok((Link::open(build, start, (state, None), reporter)?, jobs)));
        // The linker goes on by itself. What its driver leaves of the program shows when the command ends.
        let give_up = |previous: Option<PreviousProgram>, notes| {
            build.seen().previous.extend(previous);
            build.observe(Arc::clone(&process), notes);
        };
        let (mut link, served) = match opened {
            Ok((mut link, jobs)) => {
                link.previous = Some(previous);
                let served = ask(&link, connection, jobs);
                (link, served)
            }
            Err(error) => {
                end_jobs(connection, is_distributed);
                give_up(Some(previous), None);
                return Err(error);
            }
        };
        if served.is_err() {
            end_jobs(connection, is_distributed);
        }
        if is_distributed {
            remove_saved(&process, &output)?;
        }
        let (result, start) = match served {
            Ok(served) => served,
            Err(error) => {
                give_up(link.previous.take(), link.notes.take());
                return Err(error);
            }
        };
        link.remove_cache();
        match result.outcome {
            Outcome::Anew => Ok(()),
            _ => self.finish(FinishedLink { link, result, start }, is_single),
        }
    }

    /// Concludes a link, or leaves that to the end of the command.
    fn finish(&self, mut finished: FinishedLink<'b>, is_single: bool) -> Result<(), LinkError> {
        let FinishedLink { link, result, .. } = &mut finished;
        if let Some(asked) = result.asked {
            // The first link by a linker reads it whole.
            let is_known = link.opened.duration_since(link.begun) < WORTH_A_PHASE;
            let phase = |name, start, end| {
                link.reporter.report(ProgressEvent::Phase(Phase { name, start, end: Some(end) }));
            };
            if is_known {
                phase("thin link", link.begun, asked);
            } else {
                phase("digest of the linker", link.begun, link.opened);
                phase("thin link", link.opened, asked);
            }
        }
        let failed = !matches!(result.outcome, Outcome::Complete) || !link.is_replaced();
        if !failed && !result.modules.is_empty() {
            share(link, &result.modules)?;
        }
        if failed || is_single {
            // Its trace names the linker's unfinished files.
            self.build.observe(Arc::clone(&link.process), link.notes.take());
        }
        if is_single {
            lock(&self.links).push(finished);
            return Ok(());
        }
        if failed {
            // A driver removes the program after its linker failed, so it is put back after that.
            self.build.seen().previous.extend(link.previous.take());
        }
        // The failure has been reported, and the linker has ended for it.
        finished.conclude(None).map(drop)
    }
}

/// Puts a link into the caches that are to have whole links.
fn share(link: &mut Link<'_>, modules: &[LinkModule]) -> Result<(), LinkError> {
    let Some(new) = link.take_new() else { return Ok(()) };
    let Some(engine) = link.servers.connected()?.engine else { return Ok(()) };
    let objects = modules.iter().filter_map(|module| module.object.as_ref());
    let took = link.begun.elapsed();
    let kept = new.and_then(|new| new.keep(&engine, objects, &link.process.directory, took));
    engine.troubles().iter().for_each(warn);
    if let Err(why) = kept {
        link.note(&format!("the link is not shared: {why}"));
    }
    Ok(())
}

/// Ends a linker that waits for its distributor: it cannot go on by itself.
fn end_jobs(connection: &Connection, is_distributed: bool) {
    if is_distributed {
        connection.end();
    }
}

/// Makes a linker hand over its jobs, and waits for them; `None` if it has ended without.
fn hand_over(connection: &Connection, start: &mut LinkStart<'_>) -> Result<Option<Jobs>, LinkError> {
    let (process, notes, settings) = (&start.process, start.notes.as_ref(), &mut start.request.settings);
    let words = handing_over(settings, None)?;
    give_linker(connection, process, &[notes], Role::Distributing, (&start.cache, &words))?;
    Distributor { connection, process, notes }.jobs(settings)
}

/// Has a linker ask for its objects, or makes those of its `jobs`; answers it until it is gone.
fn ask(
    link: &Link<'_>,
    connection: &Connection,
    jobs: Option<Option<Jobs>>,
) -> Result<(LinkResult, Start), LinkError> {
    if jobs.is_none() {
        begin(link, connection)?;
    }
    let inputs = inputs::of_line(link.root(), link.command.line.arguments());
    inputs::warn_of_empty(&inputs);
    let start = inputs::start(&inputs);
    link.record_link();
    link.record_compiler();
    let has_bitcode = || inputs::has_bitcode(inputs.iter().map(|(path, _)| path.clone()));
    let is_new = link.asks_caches() && link.earlier.all().is_empty() && has_bitcode();
    let result = match jobs.flatten() {
        Some(jobs) => jobs.serve(link, connection, is_new).unwrap_or_else(|error| {
            connection.end();
            LinkResult::broken(error)
        }),
        None => connection::serve(link, connection, is_new),
    };
    let store = link.build.store();
    store.into_iter().flat_map(|store| ResultCache::troubles(&**store)).for_each(|trouble| warn(&trouble));
    Ok((result, start))
}

/// Makes a linker ask. It gets a list of the last link's objects, if it compiles its modules itself.
fn begin(link: &Link<'_>, connection: &Connection) -> Result<(), LinkError> {
    let has_list = link.settings.linker.is_some() && link.notes.is_some() && !link.was_damaged();
    let kept = match link.build.store().filter(|_| has_list) {
        Some(store) => {
            let list = kept::list(&link.earlier, &link.identity, store);
            list.map_err(IoError::on("list", "kept objects"))?
        }
        None => None,
    };
    let words = link.build.asking((&link.command, &link.settings, link.stable_names), &link.cache);
    let files = [kept.as_ref(), link.notes.as_ref()];
    Ok(give_linker(connection, &link.process, &files, Role::Linker, (&link.cache, &words))?)
}
