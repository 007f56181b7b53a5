//! The end of a server for this command: everything that waits for it ends with it, and that is said at once.
//!
//! Knows nothing of the waiting tasks and of kinds of failures.

use std::future::pending;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use distlto_prepare::mutex::lock;
use distlto_reapi::Error;
use tokio::sync::watch;

/// Whether a server is gone, and why.
#[derive(Debug, Default)]
pub(super) struct EngineLoss {
    why: watch::Sender<Option<Error>>,
    news: Mutex<Vec<String>>,
    /// Whether an action failed for that.
    is_reported: AtomicBool,
}

impl EngineLoss {
    /// Why it is gone, if it is.
    pub(super) fn why(&self) -> Option<Error> {
        self.why.borrow().clone()
    }

    pub(super) fn is_known(&self) -> bool {
        self.why.borrow().is_some()
    }

    /// Marks the server as gone and stores `news`. Returns whether it was there until now; otherwise nothing changes.
    pub(super) fn record(&self, error: &Error, news: impl FnOnce() -> String) -> bool {
        let is_new = self.why.send_if_modified(|why| {
            let is_new = why.is_none();
            why.get_or_insert_with(|| error.clone());
            is_new
        });
        if is_new {
            lock(&self.news).push(news());
        }
        is_new
    }

    /// Takes the sentences to report.
    pub(super) fn news(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.news))
    }

    /// Records that an action fails because the server is gone. Returns whether it is the first one.
    pub(super) fn report_once(&self) -> bool {
        !self.is_reported.swap(true, Relaxed)
    }

    /// Until it is gone.
    pub(super) async fn wait(&self) -> Error {
        let mut changes = self.why.subscribe();
        // The sender lives as long as this.
        let Ok(why) = changes.wait_for(Option::is_some).await else { return pending().await };
        why.clone().unwrap_or(Error::Shutdown)
    }
}
