//! Execution and Operations: actions are queued, and their operations followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    Action, Command, ExecuteRequest, ExecuteResponse, ExecutedActionMetadata, WaitExecutionRequest,
    execution_server::Execution, execution_stage::Value,
};
use bazel_remote_apis::google::longrunning::{
    CancelOperationRequest, DeleteOperationRequest, GetOperationRequest, ListOperationsRequest,
    ListOperationsResponse, Operation, WaitOperationRequest, operations_server::Operations,
};
use bazel_remote_apis::google::protobuf::Empty;
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, async_trait};

use crate::bytestream::break_off;
use crate::cas::{cached, status_message};
use crate::connection::{Line, line_of};
use crate::digest::{self, Digest, now};
use crate::faults::{cut, take};
use crate::missing;
use crate::operation::Job;
use crate::queue::is_known;
use crate::state::State;

/// The services.
#[derive(Clone)]
pub struct Executions(pub Arc<State>);

type Stream = ReceiverStream<Result<Operation, Status>>;

#[async_trait]
impl Execution for Executions {
    type ExecuteStream = Stream;
    type WaitExecutionStream = Stream;

    async fn execute(&self, request: Request<ExecuteRequest>) -> Result<Response<Stream>, Status> {
        let line = line_of(&request);
        let request = request.into_inner();
        self.0.instance(&request.instance_name)?;
        if self.0.faults().no_execution {
            return Err(Status::unimplemented("there is no execution here"));
        }
        self.has_room()?;
        let digest = digest::checked(request.action_digest.as_ref())?;
        let job = self.job(digest, request.skip_cache_lookup)?;
        Ok(self.follow(job, 0, line))
    }

    async fn wait_execution(
        &self,
        request: Request<WaitExecutionRequest>,
    ) -> Result<Response<Stream>, Status> {
        let line = line_of(&request);
        if take(&mut self.0.faults().wait_not_found) {
            return Err(Status::not_found("no such operation, by a switch"));
        }
        self.has_room()?;
        let job = self.find(&request.into_inner().name)?;
        let known = job.history.borrow().len();
        Ok(self.follow(job, known.saturating_sub(1), line))
    }
}

impl Executions {
    fn has_room(&self) -> Result<(), Status> {
        if self.0.is_crowded() {
            return Err(Status::resource_exhausted("Concurrent RPC limit exceeded!"));
        }
        Ok(())
    }

    /// The operation for a request: one in flight, one that is cached, or one that is queued.
    fn job(&self, digest: Digest, skip_cache: bool) -> Result<Arc<Job>, Status> {
        if self.0.faults().merge {
            let equal = |job: &Arc<Job>| job.digest == digest && !job.is_done();
            if let Some(job) = self.0.queue.all().into_iter().find(equal) {
                return Ok(job);
            }
        }
        let result = if skip_cache { None } else { cached(&self.0, &digest)? };
        if let Some(result) = result {
            let job = job(digest, Action::default(), Command::default());
            job.end(&ExecuteResponse {
                result: Some(result),
                cached_result: true,
                status: Some(status_message(&Status::ok(""))),
                ..ExecuteResponse::default()
            });
            return Ok(job);
        }
        match self.described(&digest)? {
            Ok(job) => {
                if self.0.faults().refuse_platforms && !is_known(&self.0.options.workers, &job) {
                    return Err(Status::failed_precondition("no worker has this platform"));
                }
                job.at(Value::Queued, Some(&job.queued));
                self.0.queue.push(job.clone());
                Ok(job)
            }
            Err(blob) => self.unknown(digest, &blob),
        }
    }

    /// What is to be run, or the blob that is missing.
    fn described(&self, digest: &Digest) -> Result<Result<Arc<Job>, Digest>, Status> {
        let Some(action) = self.0.store.message::<Action>(digest)? else { return Ok(Err(digest.clone())) };
        let command_digest = digest::checked(action.command_digest.as_ref())?;
        let Some(command) = self.0.store.message::<Command>(&command_digest)? else {
            return Ok(Err(command_digest));
        };
        Ok(Ok(job(digest.clone(), action, command)))
    }

    /// Answers that a blob of the action is not there.
    fn unknown(&self, digest: Digest, blob: &Digest) -> Result<Arc<Job>, Status> {
        let faults = self.0.faults().clone();
        let status = missing::status(faults.missing, std::slice::from_ref(blob));
        if faults.missing_as_error {
            return Err(missing::error(&status));
        }
        let job = job(digest, Action::default(), Command::default());
        job.end(&ExecuteResponse { status: Some(status), ..ExecuteResponse::default() });
        Ok(job)
    }

    fn find(&self, name: &str) -> Result<Arc<Job>, Status> {
        self.0.queue.find(name).ok_or_else(|| Status::not_found(format!("no operation {name}")))
    }

    /// Sends an operation's history from a message on, until its end or the cut of the stream.
    fn follow(&self, job: Arc<Job>, from: usize, line: Line) -> Response<Stream> {
        let cut = cut(&mut self.0.faults().cut_executions);
        let (sender, receiver) = mpsc::channel(1);
        let state = self.0.clone();
        let followed = Followed::new(&self.0);
        tokio::spawn(async move {
            let _followed = followed;
            let mut history = job.history.subscribe();
            let mut sent = line.sent();
            for at in from.. {
                if let Some(cut) = cut.filter(|cut| (at - from) as u64 >= cut.after) {
                    return break_off(cut.how, &line, sent, &sender).await;
                }
                let known = tokio::select! {
                    known = history.wait_for(|history| history.len() > at) => known.is_ok(),
                    () = sender.closed() => false,
                };
                if !known {
                    return;
                }
                let operation = history.borrow()[at].clone();
                let delay = state.faults().message_delay;
                tokio::time::sleep(delay).await;
                let done = operation.done;
                sent += operation.encoded_len() as u64;
                let message = missing::as_error(&state, operation);
                if sender.send(message).await.is_err() || done {
                    return;
                }
            }
        });
        Response::new(ReceiverStream::new(receiver))
    }
}

/// An execution that is followed.
struct Followed(Arc<State>);

impl Followed {
    fn new(state: &Arc<State>) -> Self {
        state.streams.fetch_add(1, Ordering::Relaxed);
        Self(state.clone())
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
        self.0.queue.wake();
    }
}

fn job(digest: Digest, action: Action, command: Command) -> Arc<Job> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // Names differ over restarts too: an operation of before is not found, rather than another one.
    let name = format!("operations/{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let queued = ExecutedActionMetadata { queued_timestamp: now(), ..ExecutedActionMetadata::default() };
    Arc::new(Job { name, digest, action, command, queued, history: watch::Sender::default() })
}

#[async_trait]
impl Operations for Executions {
    async fn list_operations(
        &self,
        _: Request<ListOperationsRequest>,
    ) -> Result<Response<ListOperationsResponse>, Status> {
        let jobs = self.0.queue.all();
        let operations = jobs.iter().filter_map(|job| job.history.borrow().last().cloned()).collect();
        Ok(Response::new(ListOperationsResponse { operations, ..ListOperationsResponse::default() }))
    }

    async fn get_operation(
        &self,
        request: Request<GetOperationRequest>,
    ) -> Result<Response<Operation>, Status> {
        let job = self.find(&request.into_inner().name)?;
        let last = job.history.borrow().last().cloned();
        last.map(Response::new).ok_or_else(|| Status::not_found("an operation without a history"))
    }

    async fn delete_operation(&self, _: Request<DeleteOperationRequest>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("operations are kept"))
    }

    async fn cancel_operation(
        &self,
        request: Request<CancelOperationRequest>,
    ) -> Result<Response<Empty>, Status> {
        let job = self.find(&request.into_inner().name)?;
        let status = Some(status_message(&Status::cancelled("cancelled by the client")));
        job.end(&ExecuteResponse { status, ..ExecuteResponse::default() });
        self.0.queue.remove(&job.name);
        Ok(Response::new(Empty {}))
    }

    async fn wait_operation(&self, _: Request<WaitOperationRequest>) -> Result<Response<Operation>, Status> {
        Err(Status::unimplemented("use WaitExecution"))
    }
}
