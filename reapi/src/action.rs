//! A `Command` and an `Action` message in canonical form.
//!
//! Variables, outputs and platform properties are sorted, the platform stands in both messages (servers differ in which
//! one they read), and outputs are `output_paths` alone (some servers ignore `output_files`). Knows nothing of how an
//! action is sent.

use std::time::Duration;

use prost::Message;

use crate::blob::Blob;
use crate::digest::{Digest, DigestMessage};
use crate::proto;

/// An action to execute.
#[derive(Debug, Clone)]
pub struct Action {
    /// The command's words; the first one is the program.
    pub arguments: Vec<String>,
    /// Variables, in any order.
    pub environment: Vec<(String, String)>,
    /// Files and directories that it makes, relative to the input root, in any order.
    pub output_paths: Vec<String>,
    /// Properties that a worker must have, in any order.
    pub platform: Vec<(String, String)>,
    /// The root of the input tree.
    pub input_root: Digest,
    /// How long it may run; the server's own limit if `None`.
    pub timeout: Option<Duration>,
    /// Bytes that distinguish it from otherwise equal actions.
    pub salt: Vec<u8>,
}

impl Action {
    /// An action that runs `arguments` in `input_root`, and nothing else.
    pub fn new(arguments: Vec<String>, input_root: Digest) -> Self {
        Self {
            arguments,
            input_root,
            environment: Vec::new(),
            output_paths: Vec::new(),
            platform: Vec::new(),
            timeout: None,
            salt: Vec::new(),
        }
    }

    /// Its messages, encoded.
    pub fn encode(&self) -> EncodedAction {
        let platform = (!self.platform.is_empty()).then(|| {
            let property = |(name, value)| proto::platform::Property { name, value };
            proto::Platform { properties: sorted(&self.platform).into_iter().map(property).collect() }
        });
        let variable = |(name, value)| proto::command::EnvironmentVariable { name, value };
        let mut output_paths = self.output_paths.clone();
        output_paths.sort_unstable();
        output_paths.dedup();
        #[expect(deprecated, reason = "older servers read the platform from the Command")]
        let command = proto::Command {
            arguments: self.arguments.clone(),
            environment_variables: sorted(&self.environment).into_iter().map(variable).collect(),
            platform: platform.clone(),
            output_paths,
            ..Default::default()
        };
        let command = Blob::new(command.encode_to_vec());
        let timeout = self.timeout.map(|timeout| bazel_remote_apis::google::protobuf::Duration {
            seconds: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            nanos: timeout.subsec_nanos().cast_signed(),
        });
        let action = proto::Action {
            command_digest: Some(command.digest().message()),
            input_root_digest: Some(self.input_root.message()),
            timeout,
            salt: self.salt.clone(),
            platform,
            ..Default::default()
        };
        EncodedAction { action: Blob::new(action.encode_to_vec()), command }
    }
}

fn sorted(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// The messages of an action, to be uploaded.
#[derive(Debug, Clone)]
pub struct EncodedAction {
    /// The `Action`; its digest is the action's name.
    pub action: Blob,
    /// The `Command`.
    pub command: Blob,
}

impl EncodedAction {
    /// The action's name.
    pub fn digest(&self) -> Digest {
        self.action.digest()
    }
}
