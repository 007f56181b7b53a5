//! Runs one action on a worker: its input root in a folder of its own, its command, what came out.
//!
//! The command sees only its own environment, and the machine's files: nothing is a sandbox here.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    ActionResult, Command, ExecuteResponse, ExecutedActionMetadata, execution_stage::Value,
};
use bazel_remote_apis::google::rpc;
use rustix::process::{Pid, Signal, kill_process_group};
use tonic::Status;

use crate::cas::status_message;
use crate::digest::now;
use crate::lies;
use crate::missing;
use crate::operation::Job;
use crate::options::Worker;
use crate::outputs;
use crate::stage::{self, Staged};
use crate::state::State;

/// Runs it.
pub async fn run(state: &Arc<State>, worker: &Worker, job: &Arc<Job>) -> ExecuteResponse {
    let mut metadata = job.queued.clone();
    metadata.worker.clone_from(&worker.name);
    metadata.worker_start_timestamp = now();
    job.at(Value::Executing, Some(&metadata));
    let mut response = match outcome(state, worker, job, &mut metadata).await {
        Ok(response) => response,
        Err(status) => ExecuteResponse { status: Some(status), ..ExecuteResponse::default() },
    };
    metadata.worker_completed_timestamp = now();
    if let Some(result) = &mut response.result {
        result.execution_metadata = Some(metadata);
        let good = result.exit_code == 0 && response.status.as_ref().is_none_or(|status| status.code == 0);
        if good
            && !job.action.do_not_cache
            && let Err(status) = state.store.set_result(&job.digest, result)
        {
            response.status = Some(status_message(&status));
        }
        match lies::told(state, std::mem::take(result)) {
            Ok(told) => *result = told,
            Err(status) => response.status = Some(status_message(&status)),
        }
    }
    response
}

async fn outcome(
    state: &Arc<State>,
    worker: &Worker,
    job: &Arc<Job>,
    metadata: &mut ExecutedActionMetadata,
) -> Result<ExecuteResponse, rpc::Status> {
    let own = |error: std::io::Error| status_message(&Status::internal(format!("{}: {error}", worker.name)));
    let folder = tempfile::tempdir_in(state.store.scratch()).map_err(own)?;
    metadata.input_fetch_start_timestamp = now();
    let (store, staged, root) = (state.store.clone(), job.clone(), folder.path().join("root"));
    let to = root.clone();
    let staging = tokio::task::spawn_blocking(move || {
        stage::stage(&store, staged.action.input_root_digest.as_ref(), &staged.command, &to)
    });
    match staging.await.map_err(|error| own(error.into()))? {
        Ok(Staged::Whole(files)) => state.count_inputs(&files),
        Ok(Staged::Missing(blobs)) => return Err(missing::status(state.faults().missing, &blobs)),
        Err(status) => return Err(status_message(&status)),
    }
    metadata.input_fetch_completed_timestamp = now();
    metadata.execution_start_timestamp = now();
    let ended = execute(job, &root, folder.path(), worker.delay).await.map_err(|s| status_message(&s))?;
    metadata.execution_completed_timestamp = now();
    metadata.output_upload_start_timestamp = now();
    let (store, command, from) = (state.store.clone(), job.command.clone(), folder.path().to_owned());
    let collecting = tokio::task::spawn_blocking(move || {
        let mut result = outputs::collect(&store, &command, &from.join("root"))?;
        let said =
            |name| fs::read(from.join(name)).map_err(|error| crate::store::failed("read output", &error));
        result.stdout_digest = Some(store.keep(&said("stdout")?)?);
        result.stderr_digest = Some(store.keep(&said("stderr")?)?);
        Ok::<ActionResult, Status>(result)
    });
    let collected = collecting.await.map_err(|error| own(error.into()))?;
    let mut result = collected.map_err(|status| status_message(&status))?;
    metadata.output_upload_completed_timestamp = now();
    let status = match ended {
        Some(code) => {
            result.exit_code = code;
            Status::ok("")
        }
        None => Status::deadline_exceeded("the action took longer than its timeout"),
    };
    let status = Some(status_message(&status));
    Ok(ExecuteResponse { result: Some(result), status, ..ExecuteResponse::default() })
}

/// How often a program is tried that somebody still has open for writing.
const BUSY: u32 = 3000;

/// Runs the command and gives its exit code, or nothing when its time was over.
async fn execute(job: &Job, root: &Path, beside: &Path, delay: Duration) -> Result<Option<i32>, Status> {
    let own = |error: std::io::Error| Status::internal(format!("cannot run the command: {error}"));
    let timeout = job.action.timeout.as_ref();
    let timeout = timeout
        .map_or(Duration::MAX, |time| Duration::new(time.seconds.max(0) as u64, time.nanos.max(0) as u32));
    let (out, error) = (beside.join("stdout"), beside.join("stderr"));
    let mut tries = 0;
    let mut child = loop {
        let (out, said) = (File::create(&out).map_err(own)?, File::create(&error).map_err(own)?);
        match command(&job.command, root)?.stdout(out).stderr(said).spawn() {
            Ok(child) => break child,
            // A child of another action that was forked while the program was written has it open until it runs its own.
            Err(failure) if failure.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // As a shell does: the action failed, not the worker.
            Err(failure) => {
                fs::write(&error, format!("{}: {failure}\n", job.command.arguments[0])).map_err(own)?;
                return Ok(Some(127));
            }
        }
    };
    let _group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    let run = async {
        let ended = child.wait().await;
        tokio::time::sleep(delay).await;
        ended
    };
    match tokio::time::timeout(timeout, run).await {
        // A signal as a shell tells it.
        Ok(Ok(status)) => Ok(Some(status.code().unwrap_or_else(|| 128 + signal(status)))),
        Ok(Err(error)) => Err(own(error)),
        Err(_) => Ok(None),
    }
}

fn signal(status: std::process::ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0)
}

fn command(wanted: &Command, root: &Path) -> Result<tokio::process::Command, Status> {
    let (program, arguments) =
        wanted.arguments.split_first().ok_or_else(|| Status::invalid_argument("a command without words"))?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    command.current_dir(root.join(&wanted.working_directory));
    command.envs(wanted.environment_variables.iter().map(|variable| (&variable.name, &variable.value)));
    Ok(command)
}

/// Ends the processes of an action, however its run ends.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Mostly they ended by themselves.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
