//! The action cache of an engine as what jobs ask for results, and have them kept by.
//!
//! What is kept is uploaded while the run goes on. A cache is no reason for a job to fail: what is wrong with it is a miss.

use std::fs;
use std::sync::Mutex;

use distlto_prepare::write::IoError;
use distlto_reapi::blob::Blob;
use distlto_reapi::{Client, Error, proto};
use tokio::task::JoinSet;

use super::engine::Engine;
use super::setup::CacheMode;
use super::transfer;
use crate::cache::{Hit, ResultCache};
use crate::cancel::Cancel;
use crate::describe::Described;
use crate::result::NewResult;
use crate::staging::Output;

/// How many results are on their way at once; a job waits for room.
const MOST: usize = 64;

/// Results on their way.
#[derive(Debug, Default)]
pub(super) struct Keeping(Mutex<JoinSet<Result<(), Error>>>);

impl Keeping {
    fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<Result<(), Error>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits for all of them, or for the end of the run.
    pub(super) async fn finish(&self, cancel: &Cancel) {
        let mut tasks = std::mem::take(&mut *self.tasks());
        while !tasks.is_empty() && !cancel.is_cancelled() {
            let _ = tokio::time::timeout(super::LOOK, tasks.join_next()).await;
        }
    }
}

impl Engine {
    /// A future's value, unless the run is cancelled first.
    fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async {
            let cancelled = async {
                while !self.cancel.is_cancelled() {
                    tokio::time::sleep(super::LOOK).await;
                }
            };
            tokio::select! {
                value = future => Some(value),
                () = cancelled => None,
            }
        })
    }

    /// A result whose outputs are in their places; `None` where there is none that is whole.
    async fn kept(
        &self,
        client: &Client,
        described: &Described<'_>,
        outputs: &[Output<'_>],
    ) -> Result<Option<Hit>, Error> {
        let Some(result) = client.action_result(described.encoded.digest(), &[]).await? else {
            return Ok(None);
        };
        if result.exit_code != 0 {
            return Ok(None);
        }
        transfer::fetch(client, &result, described, outputs).await?;
        let stderr = client.stderr(&result).await?.to_vec();
        Ok(Some(Hit { stderr, is_far: true }))
    }
}

impl ResultCache for Engine {
    fn find(&self, action: &Described<'_>, outputs: &[Output<'_>]) -> Result<Option<Hit>, IoError> {
        let Some((client, _)) = self.cache() else { return Ok(None) };
        match self.wait(self.kept(client, action, outputs)) {
            None | Some(Ok(None)) => Ok(None),
            Some(Ok(found)) => {
                transfer::put_in_place(outputs)?;
                Ok(found)
            }
            Some(Err(Error::Lost { .. })) => {
                self.note(
                    "a kept result names blobs that are gone; such actions are executed anew".to_owned(),
                );
                // Its outputs are nothing, which the job does not take for a result.
                Ok(Some(Hit { stderr: Vec::new(), is_far: true }))
            }
            Some(Err(error @ (Error::Corrupt { .. } | Error::Io { .. }))) => {
                self.note(error.to_string());
                Ok(None)
            }
            Some(Err(error)) => {
                self.give_up(&error);
                Ok(None)
            }
        }
    }

    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>) {
        let Some((client, CacheMode::ReadWrite)) = self.cache() else { return };
        if result.by_engine || !client.capabilities().action_cache_updates {
            return;
        }
        let mut blobs = Vec::new();
        let mut files = Vec::new();
        for ((name, _), output) in action.action.outputs.iter().zip(result.outputs) {
            // In memory: the file gets another name as soon as this returns.
            let Ok(bytes) = fs::read(output.file) else { return };
            let blob = Blob::new(bytes);
            files.push(proto::OutputFile {
                path: name.clone().into_owned(),
                digest: Some(blob.digest().message()),
                ..Default::default()
            });
            blobs.push(blob);
        }
        let message = proto::ActionResult {
            output_files: files,
            stderr_raw: result.stderr.to_vec(),
            ..Default::default()
        };
        let (client, key) = (client.clone(), action.encoded.digest());
        let mut tasks = self.keeping.tasks();
        while tasks.len() >= MOST {
            let Some(Some(done)) = self.wait(tasks.join_next()) else { return };
            if let Ok(Err(error)) = done {
                self.give_up(&error);
            }
        }
        tasks.spawn_on(
            async move {
                client.upload(blobs).await?;
                client.update_action_result(key, message).await
            },
            self.runtime.handle(),
        );
    }

    fn troubles(&self) -> Vec<String> {
        self.troubles()
    }
}
