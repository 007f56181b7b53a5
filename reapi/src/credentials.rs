//! Headers that a credential helper gives, kept until they expire.
//!
//! The protocol is Bazel's (bazelbuild/proposals, 2022-06-07-bazel-credential-helpers.md): `HELPER get`, a request in JSON
//! on standard input, the answer on standard output. The helper shares this process's standard error, unread.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::Error;
use crate::options::{CredentialHelper, Endpoint};
use crate::statistics::Statistics;

/// A helper that says "expired" each time must not be started for each call.
const SHORTEST: Duration = Duration::from_secs(10);

/// Headers by name. The values are secret.
pub type HelperHeaders = BTreeMap<String, Vec<String>>;

#[derive(Serialize)]
struct HelperRequest<'a> {
    uri: &'a str,
}

#[derive(Deserialize)]
struct HelperOutput {
    #[serde(default)]
    headers: HelperHeaders,
    expires: Option<String>,
}

/// The headers from one run of the helper.
#[derive(Clone)]
pub struct HelperCredentials {
    /// The number of the run.
    pub number: u64,
    /// The headers.
    pub headers: Arc<HelperHeaders>,
    until: Instant,
}

/// Asks a helper when there is a need.
pub struct Credentials {
    helper: CredentialHelper,
    endpoint: Endpoint,
    // Held while the helper runs, so that it runs once for all who wait.
    given: Mutex<(u64, Option<HelperCredentials>)>,
}

impl Credentials {
    pub fn new(helper: CredentialHelper, endpoint: Endpoint) -> Self {
        Self { helper, endpoint, given: Mutex::default() }
    }

    /// Returns the headers that are valid now.
    pub async fn get(&self, statistics: &Statistics) -> Result<HelperCredentials, Error> {
        let mut slot = self.given.lock().await;
        let (runs, given) = &mut *slot;
        if let Some(given) = given.as_ref().filter(|given| Instant::now() < given.until) {
            return Ok(given.clone());
        }
        statistics.helper_ran();
        *runs += 1;
        let asked = timeout(self.helper.timeout, self.ask()).await;
        let late = || Err(format!("no answer within {:?}", self.helper.timeout));
        let (headers, lifetime) = asked.unwrap_or_else(|_| late()).map_err(|why| Error::Credentials {
            helper: self.helper.program.clone(),
            endpoint: self.endpoint.uri().into(),
            why,
        })?;
        let until = Instant::now() + lifetime.max(SHORTEST);
        Ok(given.insert(HelperCredentials { number: *runs, headers: Arc::new(headers), until }).clone())
    }

    /// Forgets the headers that the server refused, unless that is done already.
    pub async fn refuse(&self, number: u64) {
        let mut slot = self.given.lock().await;
        slot.1.take_if(|given| given.number == number);
    }

    async fn ask(&self) -> Result<(HelperHeaders, Duration), String> {
        let mut command = Command::new(&self.helper.program);
        command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let request = serde_json::to_vec(&HelperRequest { uri: self.endpoint.uri() }).unwrap_or_default();
        if let Some(mut stdin) = child.stdin.take() {
            // One that knows the answer anyway need not read.
            let _unread = stdin.write_all(&request).await;
        }
        let output = child.wait_with_output().await.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("it failed: {}", output.status));
        }
        let answer: HelperOutput = serde_json::from_slice(&output.stdout)
            // The error's text can quote a secret; its place cannot.
            .map_err(|error| format!("its answer is not what is expected, near byte {}", error.column()))?;
        let Some(expires) = answer.expires else { return Ok((answer.headers, self.helper.lifetime)) };
        let expires: Timestamp =
            expires.parse().map_err(|_| "its answer expires at a time that is not RFC 3339".to_owned())?;
        let left = expires.duration_since(Timestamp::now());
        Ok((answer.headers, Duration::try_from(left).unwrap_or_default()))
    }
}
