//! An engine as a command uses it: connections, what it is good for, and whether it is gone.
//!
//! One engine serves all runs of a command. When it is gone for good that is said once, and from then on nothing is sent
//! there. Knows nothing of schedules.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use distlto_prepare::mutex::lock;
use distlto_prepare::warning::warn;
use distlto_reapi::execute::{self, ExecuteOptions};
use distlto_reapi::statistics::Snapshot;
use distlto_reapi::worker_times::{command_time, worker_time};
use distlto_reapi::{Client, Digest, Error};
use distlto_record::action::EngineTimes;
use distlto_record::progress::UnderWay;
use distlto_record::report::{Measured, Span};
use distlto_record::run::EngineUse;
use miette::Diagnostic;
use tokio::runtime::Runtime;

use super::pace::{FlightStage, InFlight, Pace};
use super::setup::{ActionCache, Setup};
use super::stop::Stop;
use super::uploads::ResultUploads;
use super::{Action, transfer};
use crate::cancel::Cancel;
use crate::cause::Cause;
use crate::describe::Platform;
use crate::execute::{Executed, ExecutionRequest};
use crate::runtime;

/// How often blobs that an engine lost are uploaded again for one action.
const REPAIRS: usize = 5;
/// After so many actions that stayed in a queue for too long or were refused, and none that ran, the engine counts as gone.
const IN_VAIN: usize = 3;
/// Threads for connections. What waits for an action is a thread of its own.
const THREADS: usize = 2;

/// An engine, or what there is of one: a cache alone.
#[derive(Debug)]
pub struct Engine {
    pub(super) runtime: Runtime,
    pub(super) pace: Pace,
    pub(super) keeping: ResultUploads,
    pub(super) stop: Stop,
    execution: Option<Client>,
    /// And whether results are kept in it.
    cache: Option<(Client, bool)>,
    setup: Setup,
    /// Why the engine is not used any more.
    gone: Mutex<Option<Error>>,
    /// Whether an action failed for that.
    end_told: AtomicBool,
    notes: Mutex<BTreeSet<String>>,
    /// Of which actions its cache had no result. They are not looked up again.
    pub(super) missing: Mutex<HashSet<Digest>>,
    /// How many actions it did not execute, and of one of them why.
    returned: Mutex<Option<(usize, String)>>,
    ran: AtomicUsize,
    in_vain: AtomicUsize,
}

/// An engine cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum EngineError {
    /// The server said so, or none did.
    #[error("{0}")]
    #[diagnostic(code(distlto::tool), help("{}", .0.help().map_or_else(String::new, |help| help.to_string())))]
    Server(#[from] Error),
    /// No threads can be started.
    #[error("cannot start threads for connections: {0}")]
    #[diagnostic(code(distlto::io), help("raise the limit of threads"))]
    Threads(#[from] io::Error),
    /// Not even the signal that ends the run can be waited for.
    #[error("cannot wait for signals: {0}")]
    #[diagnostic(code(distlto::io), help("raise the limit of open files"))]
    Files(#[source] io::Error),
}

impl Engine {
    /// Connects to an engine, for runs that `cancel` ends.
    pub fn connect(setup: Setup, cancel: &Cancel) -> Result<Self, EngineError> {
        let runtime = runtime::runtime("engine", THREADS)?;
        let connecting = async {
            let execution = match setup.execution.clone() {
                Some(options) => Some(executing(Client::connect(options).await?)?),
                None => None,
            };
            let cache = match (setup.cache.clone(), &execution) {
                // One client does for both.
                (Some(ActionCache { server, is_written }), Some(client))
                    if server.endpoint == client.options().endpoint =>
                {
                    Some((client.clone(), is_written))
                }
                (Some(ActionCache { server, is_written }), _) => {
                    Some((Client::connect(server).await?, is_written))
                }
                // What it executes, it keeps by itself.
                (None, Some(client)) => Some((client.clone(), false)),
                (None, None) => None,
            };
            Ok::<_, Error>((execution, cache))
        };
        let stop = runtime.block_on(async { Stop::of(cancel) }).map_err(EngineError::Files)?;
        let connected = runtime.block_on(stop.unless(connecting));
        let (execution, cache) = connected.unwrap_or(Err(Error::Shutdown))?;
        let engine = Self {
            runtime,
            pace: Pace::default(),
            keeping: ResultUploads::default(),
            stop,
            execution,
            cache,
            setup,
            gone: Mutex::default(),
            end_told: AtomicBool::new(false),
            notes: Mutex::default(),
            missing: Mutex::default(),
            returned: Mutex::default(),
            ran: AtomicUsize::new(0),
            in_vain: AtomicUsize::new(0),
        };
        if let Some((client, true)) = &engine.cache
            && !client.capabilities().action_cache_updates
        {
            let server = client.options().endpoint.shown();
            engine.note(format!("{server} does not let this client write its action cache; it is only read"));
        }
        Ok(engine)
    }

    /// How many actions may run there at once, or be looked up where it is a cache alone; none once it is gone.
    pub fn slots(&self) -> usize {
        if self.cache().is_some() { self.setup.slots } else { 0 }
    }

    /// Whether it is more than a cache.
    pub fn executes(&self) -> bool {
        self.execution.is_some()
    }

    /// What its workers have to be, and lack.
    pub fn platform(&self) -> Platform<'_> {
        Platform { properties: &self.setup.platform, lacks_compiler: self.setup.uploads_toolchain }
    }

    /// So many slots of this machine have nothing to do.
    pub fn set_idle(&self, slots: usize) {
        self.pace.set_idle(slots);
    }

    /// How far actions are that are under way.
    pub fn under_way(&self) -> UnderWay {
        self.pace.under_way()
    }

    /// Waits until everything is kept that is to be kept, or the run is cancelled.
    pub fn finish(&self) {
        let is_gone = lock(&self.gone).is_some();
        let failed = self.runtime.block_on(self.keeping.finish(&self.stop, is_gone));
        if let Some(error) = failed.filter(|_| !is_gone) {
            self.stop_keeping(&error);
        }
    }

    /// What was sent and received, by server.
    pub fn engines(&self) -> Vec<EngineUse> {
        let clients = self.execution.iter().chain(self.cache.as_ref().map(|(client, _)| client));
        let mut found: Vec<EngineUse> = Vec::new();
        for client in clients {
            let server = client.options().endpoint.shown().to_string();
            if found.iter().all(|known| known.server != server) {
                found.push(used(server, &client.statistics().snapshot()));
            }
        }
        found
    }

    /// What went wrong since this was asked last, each thing in a sentence.
    pub fn troubles(&self) -> Vec<String> {
        self.settle_kept();
        let mut told: Vec<_> = std::mem::take(&mut *lock(&self.notes)).into_iter().collect();
        let (returned, kept) = (lock(&self.returned).take(), self.keeps_no_more());
        // What follows of an engine's end goes without saying.
        if lock(&self.gone).is_none() {
            told.extend(returned.map(|(count, why)| match count {
                1 => why,
                _ => format!("{why}; the same of {} more", count - 1),
            }));
            told.extend(kept);
        }
        told
    }

    pub(super) fn note(&self, text: String) {
        lock(&self.notes).insert(text);
    }

    /// Who executes actions, unless the engine is gone.
    pub(super) fn execution(&self) -> Option<&Client> {
        self.execution.as_ref().filter(|_| lock(&self.gone).is_none())
    }

    /// Whose action cache is used, and whether results are kept in it, unless the engine is gone.
    pub(super) fn cache(&self) -> Option<&(Client, bool)> {
        self.cache.as_ref().filter(|_| lock(&self.gone).is_none())
    }

    /// Why nothing more is executed anywhere: the engine is gone, and this machine is not to do its work.
    pub(super) fn ended(&self, label: &str) -> Option<Cause> {
        let needed = self.execution.is_some() && !self.setup.falls_back;
        let error = lock(&self.gone).clone().filter(|_| needed)?;
        Some(self.failed(label, error))
    }

    /// An action failed that this machine is not to do. What all that were under way died of is told once.
    fn failed(&self, label: &str, error: Error) -> Cause {
        let label = label.to_owned();
        if lock(&self.gone).is_some() && self.end_told.swap(true, Relaxed) {
            return Cause::Interrupted { label };
        }
        Cause::Engine { label, source: Box::new(error) }
    }

    /// The engine is not used any more.
    pub(super) fn give_up(&self, error: &Error) {
        let mut gone = lock(&self.gone);
        if gone.is_none() {
            let what = if self.setup.falls_back { "; this machine does the rest" } else { "" };
            let help = error.help().map_or_else(String::new, |help| format!(" ({help})"));
            self.note(format!("the engine is not used any more: {error}{help}{what}"));
            *gone = Some(error.clone());
        }
    }

    /// Executes an action. Its outputs are beside their files then.
    pub(super) async fn execute(
        &self,
        action: &Action<'_>,
        flight: &InFlight<'_>,
    ) -> Result<Executed, Error> {
        let Action { client, described, request, directory } = *action;
        let key = described.encoded.digest();
        let blobs = described.blobs(directory);
        let begun = Instant::now();
        let mut options = ExecuteOptions {
            skip_cache_lookup: request.anew,
            queue_deadline: self.setup.queue_time,
            run_deadline: self.setup.run_time,
            ..ExecuteOptions::default()
        };
        for repairs in 0.. {
            flight.reach(FlightStage::Uploading);
            let mut fetching = false;
            let tried = async {
                client.upload(blobs.iter().cloned()).await?;
                let executed = client.execute(key, &options, |stage| flight.reach(stage.into())).await?;
                fetching = true;
                flight.reach(FlightStage::Downloading);
                transfer::fetch(client, &executed.result, described, request.outputs).await?;
                let stdout = client.stdout(&executed.result).await?;
                let stderr = client.stderr(&executed.result).await?;
                Ok((executed, stdout, stderr))
            };
            match tried.await {
                Ok((executed, stdout, stderr)) => {
                    let times = flight.done();
                    self.ran.fetch_add(1, Relaxed);
                    let printed = [&*stdout, &*stderr];
                    return Ok(executed_there(client, executed, printed, Span::since(begun), times));
                }
                Err(Error::Lost { digests, .. }) if repairs < REPAIRS => {
                    // What is known to be there is known wrongly, of this action at least.
                    client.forget(blobs.iter().map(|blob| blob.digest()).chain(digests));
                    // The kept result names what is gone.
                    options.skip_cache_lookup |= fetching;
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Shutdown)
    }

    /// What becomes of an action that the engine did not execute.
    pub(super) fn judge(&self, request: &ExecutionRequest<'_>, error: Error) -> Cause {
        let label = || request.job.label.to_owned();
        match &error {
            // Blobs that are still missing after all repairs are another refusal in these words.
            Error::Deadline { queued: true, .. } | Error::Lost { .. } => {
                let vain = self.in_vain.fetch_add(1, Relaxed) + 1;
                if vain >= IN_VAIN && self.ran.load(Relaxed) == 0 {
                    self.give_up(&error);
                }
            }
            Error::Deadline { .. } | Error::TimedOut { .. } | Error::Changed { .. } | Error::Io { .. } => {}
            Error::Corrupt { .. } => {}
            _ => self.give_up(&error),
        }
        if !self.setup.falls_back {
            return self.failed(request.job.label, error);
        }
        let why = || format!("{} runs on this machine: {error}", label());
        lock(&self.returned).get_or_insert_with(|| (0, why())).0 += 1;
        Cause::NotThere { label: label(), reason: error.to_string() }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.finish();
        self.troubles().iter().for_each(warn);
    }
}

/// What an engine has executed, as every executor tells it, with what it printed.
fn executed_there(
    client: &Client,
    executed: execute::ExecutedAction,
    [stdout, stderr]: [&[u8]; 2],
    span: Span,
    times: EngineTimes,
) -> Executed {
    let metadata = executed.result.execution_metadata.unwrap_or_default();
    let times = as_worker_says(times, worker_time(&metadata));
    Executed {
        // As a shell says it, which stands before the command.
        status: ExitStatus::from_raw((executed.result.exit_code & 0xff) << 8),
        stdout: stdout.into(),
        stderr: stderr.into(),
        measured: Measured {
            wall: command_time(&metadata).unwrap_or(span.end - span.start),
            ..Measured::default()
        },
        span,
        interrupted: false,
        worker: Some(metadata.worker)
            .filter(|name| !name.is_empty())
            .or_else(|| Some(client.options().endpoint.shown().to_string())),
        times,
        kept: executed.cached,
    }
}

/// A client of a server that executes actions.
fn executing(client: Client) -> Result<Client, Error> {
    if client.capabilities().execution {
        return Ok(client);
    }
    let endpoint = client.options().endpoint.shown().clone();
    Err(Error::Unsupported {
        endpoint,
        what: "it executes no actions; it may serve as a remote cache".to_owned(),
    })
}

fn used(server: String, snapshot: &Snapshot) -> EngineUse {
    EngineUse {
        server,
        bytes_up: snapshot.bytes_up,
        wire_up: snapshot.wire_up,
        blobs_up: snapshot.blobs_up,
        bytes_down: snapshot.bytes_down,
        wire_down: snapshot.wire_down,
        blobs_down: snapshot.blobs_down,
        retries: snapshot.retries,
        connections: snapshot.channels,
        calls: snapshot.calls.iter().map(|(method, count)| (method.to_string(), *count)).collect(),
    }
}

/// Some engines say that an action runs as soon as they have it. What its worker does not count, it waited.
fn as_worker_says(times: EngineTimes, worker: Option<Duration>) -> EngineTimes {
    let worker_us = worker.and_then(|time| u64::try_from(time.as_micros()).ok());
    let waited_us = worker_us.map_or(0, |worker_us| times.running_us.saturating_sub(worker_us));
    EngineTimes { queued_us: times.queued_us + waited_us, running_us: times.running_us - waited_us, ..times }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_does_not_count_is_waiting() {
        let told = EngineTimes { uploading_us: 1, queued_us: 2, running_us: 9_000_000, downloading_us: 3 };
        let corrected = EngineTimes { queued_us: 7_000_002, running_us: 2_000_000, ..told };
        assert_eq!(as_worker_says(told, Some(Duration::from_secs(2))), corrected);
        assert_eq!(as_worker_says(told, None), told);
        assert_eq!(as_worker_says(told, Some(Duration::from_secs(60))), told, "clocks are not alike");
    }
}
