//! Results on their way to an engine's action cache.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use distlto_prepare::mutex::lock;
use distlto_reapi::Error;
use tokio::task::JoinSet;

use super::stop::Stop;

/// Results on their way.
#[derive(Debug, Default)]
pub(super) struct ResultUploads {
    tasks: Mutex<JoinSet<Result<(), Error>>>,
    /// Whether the server does not keep what it is given.
    pub(super) stopped: AtomicBool,
    /// Why, to be told.
    pub(super) why: Mutex<Option<String>>,
}

impl ResultUploads {
    pub(super) fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<Result<(), Error>>> {
        lock(&self.tasks)
    }

    /// Waits for all of them, or for the end of the run; for none where the server is gone. What went wrong last.
    pub(super) async fn finish(&self, stop: &Stop, is_gone: bool) -> Option<Error> {
        let mut tasks = std::mem::take(&mut *self.tasks());
        let mut failed = None;
        if !is_gone {
            while let Some(Some(ended)) = stop.unless(tasks.join_next()).await {
                failed = ended.ok().and_then(Result::err).or(failed);
            }
        }
        failed
    }
}
