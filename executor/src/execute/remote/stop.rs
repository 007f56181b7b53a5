//! The end of a run as a future, without polling. Knows nothing of the futures that wait.

use std::future::pending;
use std::io;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::cancel::Cancel;

/// Signals that a token is set.
#[derive(Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Follows a token. Needs tokio's runtime.
    pub fn of(cancel: &Cancel) -> io::Result<Self> {
        let ready = pipe::Receiver::from_owned_fd(cancel.ready().try_clone_to_owned()?)?;
        let (sender, asked) = watch::channel(false);
        tokio::spawn(async move {
            if ready.readable().await.is_ok() {
                sender.send_replace(true);
            }
        });
        Ok(Self(asked))
    }

    /// Until the run is to end.
    pub async fn asked(&self) {
        // Without the task that follows the token, the signal never comes.
        if self.0.clone().wait_for(|is_asked| *is_asked).await.is_err() {
            pending().await
        }
    }

    /// A future's value, unless the run is to end first.
    pub async fn unless<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            value = future => Some(value),
            () = self.asked() => None,
        }
    }
}
