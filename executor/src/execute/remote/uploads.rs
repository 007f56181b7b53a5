//! Results on their way to an engine's action cache: how many there may be, and how long a link waits for them.
//!
//! A cache must not cost more than it gives, so a link waits for uploads for a limited time: when there are too many,
//! and after its last job. Late uploads are dropped and counted. Knows nothing of the results' content.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use distlto_prepare::mutex::lock;
use distlto_reapi::Error;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How many KiB are on their way at once, since they are in memory.
const MOST: u32 = 128 << 10;

/// Results on their way.
#[derive(Debug)]
pub(super) struct ResultUploads {
    tasks: Mutex<JoinSet<Result<(), Error>>>,
    room: Arc<Semaphore>,
    /// Whether room was waited for as long as it may be.
    is_behind: AtomicBool,
    dropped: AtomicUsize,
    /// Whether the server refuses uploads.
    pub(super) stopped: AtomicBool,
    /// The reason, until it is reported.
    pub(super) why: Mutex<Option<String>>,
}

impl Default for ResultUploads {
    fn default() -> Self {
        Self {
            tasks: Mutex::default(),
            room: Arc::new(Semaphore::new(MOST as usize)),
            is_behind: AtomicBool::new(false),
            dropped: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            why: Mutex::default(),
        }
    }
}

impl ResultUploads {
    /// Begins an upload of so many bytes when there is room for them, for which it waits so long.
    pub(super) async fn begin(
        &self,
        bytes: usize,
        wait: Duration,
        upload: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        let size = u32::try_from(bytes >> 10).unwrap_or(MOST).saturating_add(1).min(MOST);
        let wait = if self.is_behind.load(Relaxed) { Duration::ZERO } else { wait };
        match timeout(wait, self.room.clone().acquire_many_owned(size)).await {
            Ok(Ok(room)) => {
                let upload = async move {
                    let _room = room;
                    upload.await
                };
                lock(&self.tasks).spawn_on(upload, &Handle::current());
            }
            // It is never closed.
            Ok(Err(_)) => {}
            Err(_late) => {
                self.is_behind.store(true, Relaxed);
                self.dropped.fetch_add(1, Relaxed);
            }
        }
    }

    /// How many are on their way.
    pub(super) fn count(&self) -> usize {
        lock(&self.tasks).len()
    }

    /// Returns the outcome of one upload that has ended.
    pub(super) fn ended(&self) -> Option<Result<(), Error>> {
        let ended = lock(&self.tasks).try_join_next()?;
        Some(ended.unwrap_or(Err(Error::Shutdown)))
    }

    /// Ends all of them.
    pub(super) fn abort(&self) {
        lock(&self.tasks).abort_all();
    }

    /// Waits for all uploads until one fails, for at most `wait`; ends the others. Returns the failure.
    pub(super) async fn finish(&self, wait: Duration) -> Option<Error> {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let all = async {
            while let Some(ended) = tasks.join_next().await {
                if let Ok(Err(error)) = ended {
                    return Some(error);
                }
            }
            None
        };
        let failed = tokio::select! {
            biased;
            failed = all => failed,
            () = sleep(wait) => None,
        };
        self.dropped.fetch_add(tasks.len(), Relaxed);
        failed
    }

    /// How many were dropped since this was asked last.
    pub(super) fn dropped(&self) -> usize {
        self.dropped.swap(0, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn room_is_waited_for_once() {
        let uploads = ResultUploads::default();
        uploads.begin(usize::MAX, SOON, pending()).await;
        uploads.begin(1, SOON, async { Ok(()) }).await;
        assert_eq!((uploads.count(), uploads.dropped()), (1, 1));
        uploads.begin(1, Duration::from_secs(300), async { Ok(()) }).await;
        assert_eq!(uploads.dropped(), 1);
        uploads.abort();
        while uploads.ended().is_none() {
            tokio::task::yield_now().await;
        }
        uploads.begin(1, SOON, async { Ok(()) }).await;
        assert_eq!(uploads.count(), 1);
    }
}
