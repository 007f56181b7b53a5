//! Execution of an action, to its end: Execute, and WaitExecution when the stream breaks.
//!
//! No more streams are open than the server bears (`stream_slots`): an action that gave up its stream is asked for again when
//! there is room. A server that no longer knows the operation may know the result, and else executes it again. The time
//! in a queue has a deadline of its own. A problem for the caller to mend (blobs that are gone) is an error of its own;
//! `execution_status` maps each status to one.

use std::future::Future;
use std::time::Duration;

use bazel_remote_apis::google::longrunning::{CancelOperationRequest, Operation, operation};
use bazel_remote_apis::google::protobuf::Timestamp;
use prost::Message;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::{Code, Status, Streaming};

use crate::action_cache;
use crate::call::{self, Attempt, AttemptFailure, Calls, stub};
use crate::digest::{Digest, DigestMessage};
use crate::error::{Error, too_large};
use crate::execution_status;
use crate::method::Method;
use crate::proto;
use crate::proto::execution_stage::Value;
use crate::stream_slots::StreamSlot;

const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// How to execute an action.
#[derive(Debug, Clone)]
pub struct ExecuteOptions {
    /// Runs it even if its result is cached: for a cached result with blobs that are gone.
    pub skip_cache_lookup: bool,
    /// How long it may be queued.
    pub queue_deadline: Duration,
    /// How long it may run, transfers of the worker included; for ever if `None`.
    pub run_deadline: Option<Duration>,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self { skip_cache_lookup: false, queue_deadline: Duration::from_secs(600), run_deadline: None }
    }
}

/// How far an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// It waits for a worker, or for the action cache.
    Queued,
    /// A worker has it.
    Executing,
    /// Its result is there.
    Completed,
}

/// An action that ran, or a cached result.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutedAction {
    /// Its result.
    pub result: proto::ActionResult,
    /// Whether the server took it from its action cache.
    pub cached: bool,
    /// The server's message for people.
    pub message: String,
}

/// Why an attempt stopped.
enum Stop {
    /// As that of any call.
    Attempt(AttemptFailure),
    /// The call went well: the operation ended with a status.
    Operation(Status),
    /// To make room for others.
    GaveWay,
}

impl<F: Into<AttemptFailure>> From<F> for Stop {
    fn from(failure: F) -> Self {
        Self::Attempt(failure.into())
    }
}

/// Whether WaitExecution knows nothing of the operation.
fn forgotten(code: Code) -> bool {
    matches!(code, Code::NotFound | Code::Unimplemented)
}

/// Whether a server has no room for another stream.
fn is_crowded(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted && !too_large(status.code(), status.message())
}

/// An action on its way.
pub(crate) struct Execution<'a, O> {
    calls: &'a Calls,
    action: Digest,
    options: &'a ExecuteOptions,
    observer: O,
    /// Its name on the server, while the server may know it.
    operation: Option<String>,
    stage: Stage,
    /// When the stage was reached.
    since: Instant,
    /// Whether the attempt had a message.
    heard: bool,
}

impl<'a, O: FnMut(Stage) + Send> Execution<'a, O> {
    pub fn new(calls: &'a Calls, action: Digest, options: &'a ExecuteOptions, observer: O) -> Self {
        let since = Instant::now();
        let stage = Stage::Queued;
        Self { calls, action, options, observer, operation: None, stage, since, heard: false }
    }

    /// Executes it.
    pub async fn run(mut self) -> Result<ExecutedAction, Error> {
        (self.observer)(Stage::Queued);
        let mut retry = self.calls.retry();
        loop {
            let mut place = self.enter().await;
            let method = self.method();
            let mut attempt = self.calls.attempt(method).await?;
            self.heard = false;
            let ended = self.follow(&mut attempt, &mut place).await;
            if self.heard {
                retry.progress();
            }
            let is_refused = |status: &Status| is_crowded(status) && place.refused();
            let gives_way =
                matches!(&ended, Err(Stop::Attempt(AttemptFailure::Status(status))) if is_refused(status));
            drop(place);
            if gives_way {
                continue;
            }
            let failure = match ended {
                Ok(executed) => {
                    self.reach(Stage::Completed);
                    return Ok(executed);
                }
                // Nobody follows the operation, for which a server may have cancelled it.
                Err(Stop::GaveWay) => {
                    self.operation = None;
                    continue;
                }
                Err(Stop::Attempt(AttemptFailure::Final(error))) => return Err(error),
                Err(Stop::Attempt(AttemptFailure::Status(status)))
                    if method == Method::WaitExecution && forgotten(status.code()) =>
                {
                    if let Some(executed) = self.known().await? {
                        return Ok(executed);
                    }
                    self.operation = None;
                    self.reach(Stage::Queued);
                    Status::aborted("the server forgot the operation").into()
                }
                Err(Stop::Attempt(AttemptFailure::Status(status))) => {
                    execution_status::meaning(self.calls, &attempt, method, self.action, status, false)?
                        .into()
                }
                Err(Stop::Operation(status)) => {
                    execution_status::meaning(self.calls, &attempt, method, self.action, status, true)?.into()
                }
                Err(Stop::Attempt(silence)) => silence,
            };
            let recovered = self.calls.recover(method, &mut retry, &attempt, failure);
            let recovered = match self.due() {
                Some(due) => timeout_at(due, recovered).await,
                None => Ok(recovered.await),
            };
            match recovered {
                Ok(recovered) => recovered.map_err(execution_status::after_last_try)?,
                Err(_late) => return Err(self.late().await),
            }
        }
    }

    /// A place for a stream. Waiting for one is not being queued.
    async fn enter(&mut self) -> StreamSlot<'a> {
        let begun = Instant::now();
        let place = self.calls.slots.enter().await;
        self.since += begun.elapsed();
        place
    }

    fn method(&self) -> Method {
        if self.operation.is_some() { Method::WaitExecution } else { Method::Execute }
    }

    /// The result of an operation that the server forgot, if it has that.
    async fn known(&mut self) -> Result<Option<ExecutedAction>, Error> {
        // The caller may know that the cached result is useless.
        if self.options.skip_cache_lookup {
            return Ok(None);
        }
        let Some(result) = action_cache::get(self.calls, self.action, Vec::new()).await? else {
            return Ok(None);
        };
        self.reach(Stage::Completed);
        Ok(Some(ExecutedAction { result, cached: false, message: String::new() }))
    }

    /// Reads streams of operations until one says that the action is done. `attempt` is that of the last stream.
    async fn follow(
        &mut self,
        attempt: &mut Attempt,
        place: &mut StreamSlot<'_>,
    ) -> Result<ExecutedAction, Stop> {
        let patience = self.calls.options.stream_patience;
        let opened = self.open(attempt);
        let opened = match self.due() {
            Some(due) => timeout_at(due, opened).await,
            None => Ok(opened.await),
        };
        let Ok(opened) = opened else { return Err(self.late().await.into()) };
        let mut stream = opened?;
        loop {
            let silence = Instant::now() + patience;
            let due = self.due();
            let until = due.map_or(silence, |due| due.min(silence));
            let is_queued = self.stage == Stage::Queued;
            let message = tokio::select! {
                biased;
                message = timeout_at(until, stream.message()) => message,
                () = place.give_way(), if is_queued => return Err(Stop::GaveWay),
            };
            match message {
                Ok(message) => {
                    let ended = || Status::aborted("the stream ended before the action was done");
                    if let Some(executed) = self.take(message?.ok_or_else(ended)?)? {
                        return Ok(executed);
                    }
                }
                Err(_) if due.is_some_and(|due| due <= Instant::now()) => {
                    return Err(self.late().await.into());
                }
                Err(_) if self.operation.is_some() => {
                    // A server may cancel the action when its last stream ends, so the silent one stays until the next
                    // is open.
                    *attempt = self.calls.attempt(Method::WaitExecution).await?;
                    stream = self.calls.within(0, self.open(attempt)).await?;
                }
                Err(_) => {}
            }
        }
    }

    fn open(
        &self,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<Streaming<Operation>, AttemptFailure>> + use<O> {
        let mut stub = stub!(attempt, execution, ExecutionClient);
        let wait = self.operation.clone().map(|name| attempt.request(proto::WaitExecutionRequest { name }));
        let execute = attempt.request(proto::ExecuteRequest {
            instance_name: self.calls.options.instance.clone(),
            skip_cache_lookup: self.options.skip_cache_lookup,
            action_digest: Some(self.action.message()),
            inline_stdout: true,
            inline_stderr: true,
            ..Default::default()
        });
        async move {
            Ok(match wait {
                Some(wait) => stub.wait_execution(wait).await?,
                None => stub.execute(execute).await?,
            }
            .into_inner())
        }
    }

    /// Takes note of a message. Returns the result if the action is done.
    fn take(&mut self, operation: Operation) -> Result<Option<ExecutedAction>, Stop> {
        self.heard = true;
        let protocol = |what| Err(self.calls.protocol(Method::Execute, what).into());
        if operation.done {
            self.operation = None;
            let response = match operation.result {
                Some(operation::Result::Error(status)) => {
                    return Err(Stop::Operation(call::status(status)));
                }
                Some(operation::Result::Response(response)) => response,
                None => return protocol("an operation is done and has no result"),
            };
            let Ok(response) = proto::ExecuteResponse::decode(&*response.value) else {
                return protocol("the response is no ExecuteResponse");
            };
            if let Some(status) = response.status.filter(|status| status.code != 0) {
                return Err(Stop::Operation(call::status(status)));
            }
            let Some(result) = response.result else { return protocol("the response has no result") };
            return Ok(Some(ExecutedAction {
                result,
                cached: response.cached_result,
                message: response.message,
            }));
        }
        if !operation.name.is_empty() {
            self.operation = Some(operation.name);
        }
        let metadata = operation.metadata.unwrap_or_default();
        let stage = proto::ExecuteOperationMetadata::decode(&*metadata.value).unwrap_or_default().stage();
        self.reach(match stage {
            Value::CacheCheck | Value::Queued => Stage::Queued,
            // A server may report no stages: a running action must not count as queued.
            Value::Executing | Value::Completed | Value::Unknown => Stage::Executing,
        });
        Ok(None)
    }

    fn reach(&mut self, stage: Stage) {
        if self.stage != stage {
            (self.stage, self.since) = (stage, Instant::now());
            (self.observer)(stage);
        }
    }

    /// When the stage has lasted too long.
    fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Queued => self.since.checked_add(self.options.queue_deadline),
            Stage::Executing => self.options.run_deadline.and_then(|limit| self.since.checked_add(limit)),
            Stage::Completed => None,
        }
    }

    /// Asks the server to cancel the operation, without insisting. Returns the deadline's error.
    async fn late(&mut self) -> Error {
        let queued = self.stage == Stage::Queued;
        if let Some(name) = self.operation.take()
            && let Ok(attempt) = self.calls.attempt(Method::CancelOperation).await
        {
            let mut stub = stub!(attempt, operations, OperationsClient);
            let request = attempt.request(CancelOperationRequest { name });
            let _unsupported = timeout(CANCEL_LIMIT, stub.cancel_operation(request)).await;
        }
        let limit = if queued { Some(self.options.queue_deadline) } else { self.options.run_deadline };
        let limit = limit.unwrap_or_default();
        Error::Deadline { endpoint: self.calls.endpoint(), action: self.action, queued, limit }
    }
}

/// How long the command ran; `None` where the worker does not say, or says that it took no time. By the worker's clock:
/// only lengths are of use elsewhere. A cached result has the times of its first execution.
pub fn command_time(metadata: &proto::ExecutedActionMetadata) -> Option<Duration> {
    between(metadata.execution_start_timestamp.as_ref()?, metadata.execution_completed_timestamp.as_ref()?)
}

/// What a result says of a command that ran for so long, at no known time.
pub fn with_command_time(took: Duration) -> proto::ExecutedActionMetadata {
    let end = Timestamp {
        seconds: i64::try_from(took.as_secs()).unwrap_or(i64::MAX),
        nanos: took.subsec_nanos().cast_signed(),
    };
    proto::ExecutedActionMetadata {
        execution_start_timestamp: Some(Timestamp::default()),
        execution_completed_timestamp: Some(end),
        ..Default::default()
    }
}

/// How long the worker had the action, fetching of inputs and uploading of outputs included; `None` as for the command.
pub fn worker_time(metadata: &proto::ExecutedActionMetadata) -> Option<Duration> {
    between(metadata.worker_start_timestamp.as_ref()?, metadata.worker_completed_timestamp.as_ref()?)
}

fn between(start: &Timestamp, end: &Timestamp) -> Option<Duration> {
    let nanoseconds = i64::from(end.nanos) - i64::from(start.nanos);
    let seconds = end.seconds.checked_sub(start.seconds)?;
    let length = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    u64::try_from(length).ok().filter(|length| *length > 0).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_what_is_said() {
        let at = |seconds, nanos| Some(Timestamp { seconds, nanos });
        let mut metadata = proto::ExecutedActionMetadata::default();
        assert_eq!((command_time(&metadata), worker_time(&metadata)), (None, None));
        metadata.worker_start_timestamp = at(1_700_000_000, 900_000_000);
        metadata.worker_completed_timestamp = at(1_700_000_002, 100_000_000);
        assert_eq!(worker_time(&metadata), Some(Duration::from_millis(1200)));
        for (start, end) in [(at(7, 0), at(7, 0)), (at(7, 0), at(6, 0)), (at(i64::MIN, 0), at(i64::MAX, 0))] {
            metadata.execution_start_timestamp = start;
            metadata.execution_completed_timestamp = end;
            assert_eq!(command_time(&metadata), None);
        }
    }
}
