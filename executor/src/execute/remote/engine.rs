//! An engine as a command uses it: its settings, its connections, its services and its loss.
//!
//! One engine serves all runs of a command. Its loss is reported at once, all that wait for it end, and nothing more is
//! sent to it (`loss`). Knows nothing of schedules.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use distlto_prepare::mutex::lock;
use distlto_prepare::text;
use distlto_prepare::warning::warn;
use distlto_reapi::execute::{self, ExecuteOptions, command_time, worker_time};
use distlto_reapi::statistics::Snapshot;
use distlto_reapi::{Client, Digest, Error, Options};
use distlto_record::action::EngineTimes;
use distlto_record::progress::UnderWay;
use distlto_record::report::{Measured, Span, microseconds};
use distlto_record::run::{EngineUse, Lookups};
use miette::Diagnostic;

use super::link_list::LinkObjects;
use super::loss::EngineLoss;
use super::pace::{FlightStage, InFlight, Pace};
use super::silence::Silence;
use super::stop::Stop;
use super::transfer;
use super::under_way::Action;
use super::uploads::ResultUploads;
use crate::cache::Hit;
use crate::cancel::Cancel;
use crate::cause::Cause;
use crate::describe::Platform;
use crate::execute::{Executed, ExecutionRequest};
use crate::ledger::Ledger;
use crate::runtime::{self, Connections};
use crate::undeclared::Undeclared;

/// How often blobs that an engine lost are uploaded again for one action.
const REPAIRS: usize = 5;
/// After so many actions that stayed in a queue for too long or were refused, and none that ran, the engine counts as gone.
const IN_VAIN: usize = 3;
/// Threads for connections. Each action waits in a thread of its own.
const THREADS: usize = 2;

/// How an engine is used.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The server that executes actions, if one does.
    pub execution: Option<Options>,
    /// The server with the action cache. Without it, the cache of `execution` is read.
    pub cache: Option<ActionCacheSettings>,
    /// How many actions run there at once.
    pub slots: usize,
    /// Platform properties that a worker must have, sorted.
    pub platform: Vec<(String, String)>,
    /// How long an action may be queued.
    pub queue_time: Duration,
    /// How long it may run; for ever if `None`.
    pub run_time: Option<Duration>,
    /// How long a run waits for results on their way to the action cache.
    pub upload_time: Duration,
    /// Where it is noted that a server did not answer; nowhere when `None`.
    pub ledger: Option<Ledger>,
    /// Whether workers get the compiler as an input; else they have it.
    pub uploads_toolchain: bool,
    /// Whether this machine runs the actions that the engine does not.
    pub falls_back: bool,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            execution: None,
            cache: None,
            slots: 64,
            platform: Vec::new(),
            queue_time: Duration::from_secs(600),
            run_time: None,
            upload_time: Duration::from_secs(2),
            ledger: None,
            uploads_toolchain: false,
            falls_back: true,
        }
    }
}

impl EngineSettings {
    /// All servers.
    pub fn servers(&self) -> impl Iterator<Item = &Options> {
        self.execution.iter().chain(self.cache.iter().map(|cache| &cache.server))
    }

    /// The server of the action cache, if it is another than the one that executes.
    pub fn other_cache(&self) -> Option<&ActionCacheSettings> {
        let executing = self.execution.as_ref().map(|execution| &execution.endpoint);
        self.cache.as_ref().filter(|cache| executing != Some(&cache.server.endpoint))
    }
}

/// A server that is used as an action cache.
#[derive(Debug, Clone)]
pub struct ActionCacheSettings {
    /// Where it is.
    pub server: Options,
    /// Whether results are kept in it too, and not only taken from it.
    pub is_written: bool,
}

/// An engine, or a cache alone.
#[derive(Debug)]
pub struct Engine {
    pub(super) runtime: Connections,
    pub(super) pace: Pace,
    pub(super) result_uploads: ResultUploads,
    pub(super) stop: Stop,
    execution: Option<Client>,
    /// The server of the action cache, and whether results are kept in it.
    cache: Option<(Client, bool)>,
    settings: EngineSettings,
    pub(super) loss: EngineLoss,
    notes: Mutex<BTreeSet<String>>,
    pub(super) link_objects: Arc<LinkObjects>,
    pub(super) lookups: Mutex<LookupTimes>,
    pub(super) silence: Mutex<Silence>,
    /// Cache misses: these actions are not looked up again.
    pub(super) missing: Mutex<HashSet<Digest>>,
    /// Reasons why actions were not executed there.
    returned: Repeated,
    /// Reasons why results were unusable.
    pub(super) unusable: Repeated,
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
    /// Whether this machine executes the actions that the engine does not.
    pub(super) fn falls_back(&self) -> bool {
        self.settings.falls_back
    }

    /// Connects to an engine, for runs that `cancel` ends.
    pub fn connect(settings: EngineSettings, cancel: &Cancel) -> Result<Self, EngineError> {
        let runtime = runtime::runtime("engine", THREADS)?;
        let connecting = async {
            let execution = match settings.execution.clone() {
                Some(options) => Some(executing(Client::connect(options).await?)?),
                None => None,
            };
            let cache = match (settings.cache.clone(), &execution) {
                // One client does for both.
                (Some(ActionCacheSettings { server, is_written }), Some(client))
                    if server.endpoint == client.options().endpoint =>
                {
                    Some((client.clone(), is_written))
                }
                (Some(ActionCacheSettings { server, is_written }), _) => {
                    Some((Client::connect(server).await?, is_written))
                }
                // The engine itself keeps the results of its executions.
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
            result_uploads: ResultUploads::default(),
            stop,
            execution,
            cache,
            settings,
            loss: EngineLoss::default(),
            notes: Mutex::default(),
            link_objects: Arc::default(),
            lookups: Mutex::default(),
            silence: Mutex::default(),
            missing: Mutex::default(),
            returned: Repeated::default(),
            unusable: Repeated::default(),
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
        if self.cache().is_some() { self.settings.slots } else { 0 }
    }

    /// Whether it is more than a cache.
    pub fn executes(&self) -> bool {
        self.execution.is_some()
    }

    /// How it is used.
    pub(super) fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Returns the requirements on workers, and whether they lack the compiler.
    pub fn platform(&self) -> Platform<'_> {
        Platform { properties: &self.settings.platform, lacks_compiler: self.settings.uploads_toolchain }
    }

    /// So many slots of this machine have nothing to do.
    pub fn set_idle(&self, slots: usize) {
        self.pace.set_idle(slots);
    }

    /// How far actions are that are under way.
    pub fn under_way(&self) -> UnderWay {
        UnderWay { storing: self.result_uploads.count(), ..self.pace.under_way() }
    }

    /// Waits until all uploads are kept, for at most the upload time, or until the run is cancelled.
    pub fn finish(&self) {
        let Some((client, _)) = &self.cache else { return };
        let time = self.settings.upload_time;
        let failed = self.wait(self.result_uploads.finish(time));
        if let Some(Some(error)) = &failed {
            self.upload_failed(error);
        }
        let dropped = self.result_uploads.dropped();
        // After another failure or a signal, dropped uploads need no note.
        if failed.is_some_and(|failed| failed.is_none()) && dropped > 0 {
            let server = client.options().endpoint.shown();
            self.note(format!(
                "{dropped} results were not uploaded to {server}, for which a link waits {time:?} in all; \
                 --remote-upload-time=TIME waits longer"
            ));
        }
    }

    /// Returns the traffic of each server.
    pub fn engines(&self) -> Vec<EngineUse> {
        let clients = self.execution.iter().chain(self.cache.as_ref().map(|(client, _)| client));
        let mut found: Vec<EngineUse> = Vec::new();
        for client in clients {
            let server = client.options().endpoint.shown().to_string();
            if found.iter().all(|known| known.server != server) {
                found.push(used(server, &client.statistics().snapshot()));
            }
        }
        let cache = self.cache.as_ref().map(|(client, _)| client.options().endpoint.shown().to_string());
        for engine in found.iter_mut().filter(|engine| Some(&engine.server) == cache.as_ref()) {
            engine.lookups = lock(&self.lookups).counts;
        }
        found
    }

    /// Returns one sentence for each new trouble since the last call.
    pub fn troubles(&self) -> Vec<String> {
        self.settle_uploads();
        let mut sentences = self.news();
        sentences.append(&mut std::mem::take(&mut *lock(&self.notes)).into_iter().collect());
        sentences.extend(self.unusable.take());
        let (returned, kept) = (self.returned.take(), self.upload_refusal());
        // The loss of an engine was reported already; its consequences need no note.
        if !self.loss.is_known() {
            sentences.extend(returned.into_iter().chain(kept));
        }
        sentences
    }

    /// Returns the sentences that have to be reported at once.
    pub fn news(&self) -> Vec<String> {
        self.settle_probe();
        self.loss.news()
    }

    pub(super) fn note(&self, text: String) {
        lock(&self.notes).insert(text);
    }

    /// Returns the client that executes actions, unless the engine is gone.
    pub(super) fn execution(&self) -> Option<&Client> {
        self.execution.as_ref().filter(|_| !self.loss.is_known())
    }

    /// Returns the client of the action cache, and whether results are kept in it, unless the engine is gone.
    pub(super) fn cache(&self) -> Option<&(Client, bool)> {
        self.cache.as_ref().filter(|_| !self.loss.is_known())
    }

    /// Returns why nothing more is executed anywhere: the engine is gone, and this machine is not to do its work.
    pub(super) fn ended(&self, label: &str) -> Option<Cause> {
        let needed = self.execution.is_some() && !self.settings.falls_back;
        let error = self.loss.why().filter(|_| needed)?;
        Some(self.failed(label, error))
    }

    /// Returns the failure of an action that this machine is not to do. Only the first action reports the loss of the
    /// engine.
    fn failed(&self, label: &str, error: Error) -> Cause {
        let label = label.to_owned();
        if self.loss.is_known() && !self.loss.report_once() {
            return Cause::Interrupted { label };
        }
        Cause::Engine { label, source: Box::new(error) }
    }

    /// A server is not used any more.
    pub(super) fn give_up(&self, error: &Error) {
        let is_new = self.loss.record(error, || self.loss_text(error));
        if !is_new {
            return;
        }
        self.result_uploads.abort();
        if let (Some(ledger), Some(server), true) =
            (&self.settings.ledger, error.endpoint(), error.is_silence())
        {
            ledger.record_absence(server);
        }
    }

    /// That a server is lost, and why.
    fn loss_text(&self, error: &Error) -> String {
        let mut why = error.to_string();
        let server = error.endpoint().map_or_else(String::new, |server| {
            why = why.strip_prefix(&format!("{server}: ")).unwrap_or(&why).to_owned();
            format!(" at {server}")
        });
        let executes = |client: &Client| Some(client.options().endpoint.shown()) == error.endpoint();
        let what =
            if self.execution.as_ref().is_none_or(executes) && self.executes() { "engine" } else { "cache" };
        let goes_on = if self.settings.falls_back || !self.executes() { ", continuing here" } else { "" };
        let help = error.help().map_or_else(String::new, |help| format!(" ({help})"));
        format!("lost the {what}{server}{goes_on}: {why}{help}")
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
            queue_deadline: self.settings.queue_time,
            run_deadline: self.settings.run_time,
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
                    // The record of uploaded blobs is wrong, at least for this action.
                    client.forget(blobs.iter().map(|blob| blob.digest()).chain(digests));
                    // The kept result names lost blobs.
                    options.skip_cache_lookup |= fetching;
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Shutdown)
    }

    /// Decides about an action that the engine did not execute: it fails, or runs here. Gives up the engine on fatal
    /// errors.
    pub(super) fn judge(&self, request: &ExecutionRequest<'_>, error: Error) -> Cause {
        let label = || request.job.label.clone();
        match &error {
            // Blobs that are still missing after all repairs are another refusal in these words.
            Error::Deadline { queued: true, .. } | Error::Lost { .. } => {
                let vain = self.in_vain.fetch_add(1, Relaxed) + 1;
                if vain >= IN_VAIN && self.ran.load(Relaxed) == 0 {
                    self.give_up(&error);
                }
            }
            Error::Deadline { .. } | Error::TimedOut { .. } | Error::Changed { .. } | Error::Io { .. } => {}
            Error::Corrupt { .. } | Error::TooLarge { .. } => {}
            _ => self.give_up(&error),
        }
        if !self.settings.falls_back {
            return self.failed(&request.job.label, error);
        }
        self.returned.add(|| format!("{} runs on this machine: {error}", label()));
        Cause::NotOnEngine { label: label(), reason: error.to_string() }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.finish();
        self.troubles().iter().for_each(warn);
    }
}

/// Converts the result of an engine, with its printed output, to the form that all executors return.
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
        stdout: printed(stdout).as_slice().into(),
        stderr: printed(stderr).as_slice().into(),
        measured: Measured {
            wall: command_time(&metadata).unwrap_or(span.end - span.start),
            ..Measured::default()
        },
        span,
        interrupted: false,
        worker: Some(text::printable(&metadata.worker).into_owned())
            .filter(|name| !name.is_empty())
            .or_else(|| Some(client.options().endpoint.shown().to_string())),
        times,
        kept: executed.cached,
        same_imports: None,
        undeclared: Undeclared::default(),
    }
}

/// Returns a remote command's output with terminal control characters escaped: its author need not be a compiler.
pub(super) fn printed(bytes: &[u8]) -> Vec<u8> {
    text::printable_lines(&String::from_utf8_lossy(bytes)).into_owned().into_bytes()
}

/// The same trouble again and again: the first time in words, then how often.
#[derive(Debug, Default)]
pub(super) struct Repeated(Mutex<Option<(usize, String)>>);

impl Repeated {
    pub(super) fn add(&self, words: impl FnOnce() -> String) {
        lock(&self.0).get_or_insert_with(|| (0, words())).0 += 1;
    }

    fn take(&self) -> Option<String> {
        let (count, words) = lock(&self.0).take()?;
        Some(if count == 1 { words } else { format!("{words}; the same of {} more", count - 1) })
    }
}

/// Lookups, and the time in which at least one of them waited.
#[derive(Debug, Default)]
pub(super) struct LookupTimes {
    counts: Lookups,
    waiting: usize,
    since: Option<Instant>,
}

impl LookupTimes {
    pub(super) fn begin(&mut self) {
        self.waiting += 1;
        self.since.get_or_insert_with(Instant::now);
        self.counts.asked += 1;
    }

    /// Since when at least one has waited.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn end(&mut self, found: Option<&Hit>) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.counts.waited_us += self.since.take().map_or(0, |since| microseconds(since.elapsed()));
        }
        self.counts.found += u64::from(found.is_some());
        self.counts.spared_us += microseconds(found.and_then(|hit| hit.took).unwrap_or_default());
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
        lookups: Lookups::default(),
    }
}

/// Some engines report an action as running as soon as they have it. Time that its worker does not count is waiting.
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
