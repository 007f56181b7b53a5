//! Operations: what is known of an action in flight, as a history that any number of streams follow.

use bazel_remote_apis::build::bazel::remote::execution::v2::{
    Action, Command, ExecuteOperationMetadata, ExecuteResponse, ExecutedActionMetadata,
    execution_stage::Value,
};
use bazel_remote_apis::google::longrunning::{Operation, operation};
use tokio::sync::watch;

use crate::digest::{Digest, wrapped};

/// Package of the messages.
const PACKAGE: &str = "build.bazel.remote.execution.v2";

/// One action that was asked for.
pub struct Job {
    /// The operation's name.
    pub name: String,
    /// The action's digest.
    pub digest: Digest,
    /// The action.
    pub action: Action,
    /// Its command.
    pub command: Command,
    /// What is known of its run; only the queue time at first.
    pub queued: ExecutedActionMetadata,
    /// The history, which only grows.
    pub history: watch::Sender<Vec<Operation>>,
}

impl Job {
    /// The next stage.
    pub fn at(&self, stage: Value, metadata: Option<&ExecutedActionMetadata>) {
        self.tell(stage, metadata, None);
    }

    /// The end; a second one is not told.
    pub fn end(&self, response: &ExecuteResponse) {
        let metadata = response.result.as_ref().and_then(|result| result.execution_metadata.as_ref());
        self.tell(Value::Completed, metadata, Some(response));
    }

    fn tell(&self, stage: Value, run: Option<&ExecutedActionMetadata>, response: Option<&ExecuteResponse>) {
        let metadata = ExecuteOperationMetadata {
            stage: stage.into(),
            action_digest: Some(self.digest.clone()),
            partial_execution_metadata: run.cloned(),
            ..ExecuteOperationMetadata::default()
        };
        let result = response.map(|response| {
            operation::Result::Response(wrapped(&format!("{PACKAGE}.ExecuteResponse"), response))
        });
        let operation = Operation {
            name: self.name.clone(),
            metadata: Some(wrapped(&format!("{PACKAGE}.ExecuteOperationMetadata"), &metadata)),
            done: response.is_some(),
            result,
        };
        self.history.send_if_modified(|history| {
            let ended = history.last().is_some_and(|last| last.done);
            if !ended {
                history.push(operation);
            }
            !ended
        });
    }

    /// Whether the end was told.
    pub fn is_done(&self) -> bool {
        self.history.borrow().last().is_some_and(|last| last.done)
    }

    /// The platform that is asked for.
    pub fn platform(&self) -> impl Iterator<Item = (&str, &str)> {
        let properties = self.action.platform.iter().flat_map(|platform| &platform.properties);
        properties.map(|property| (property.name.as_str(), property.value.as_str()))
    }
}
