//! Whether a call is made again, and when: by time, with growing pauses of random length.
//!
//! A pure function of a status and of the attempts before. Knows nothing of channels.

use std::error::Error as _;
use std::io;
use std::time::{Duration, Instant};

use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::error::too_large;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(3);
/// How often a call is made that the server says it failed in, or that nobody takes: that seldom passes.
const FEW_TRIES: u32 = 3;

/// The meaning of a status for a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryVerdict {
    /// The connection is bad: again, on another one.
    Transport,
    /// Nobody listens there: as for a bad connection, but not for long if nobody has listened before.
    Refused,
    /// The server is busy: again, later.
    Busy,
    /// The server failed: again, but not for long.
    Internal,
    /// Other credentials may help.
    Unauthenticated,
    /// It will not be otherwise the next time.
    Final,
}

/// Returns the meaning of `status` for a retry.
pub fn verdict(status: &Status) -> RetryVerdict {
    // A status that the server sent has no source; one that this side made has the error of the connection.
    if status.source().is_some() {
        return match () {
            () if untrusted(status) => RetryVerdict::Final,
            () if is_refused(status) => RetryVerdict::Refused,
            () => RetryVerdict::Transport,
        };
    }
    if too_large(status.code(), status.message()) {
        return RetryVerdict::Final;
    }
    match status.code() {
        Code::Unavailable | Code::ResourceExhausted | Code::Aborted | Code::DeadlineExceeded => {
            RetryVerdict::Busy
        }
        // A proxy that lost the server resets the stream.
        Code::Internal | Code::Unknown if reset(status.message()) => RetryVerdict::Transport,
        // Servers in Python say UNKNOWN of an uncaught exception.
        Code::Internal | Code::Unknown => RetryVerdict::Internal,
        Code::Unauthenticated => RetryVerdict::Unauthenticated,
        _ => RetryVerdict::Final,
    }
}

fn reset(message: &str) -> bool {
    ["RST_STREAM", "GOAWAY", "stream terminated", "connection reset", "unexpected EOF"]
        .iter()
        .any(|words| message.contains(words))
}

/// Whether TLS failed, which no second try mends.
pub fn untrusted(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        let text = error.to_string();
        if text.contains("invalid peer certificate") || text.contains("received fatal alert") {
            return true;
        }
        source = error.source();
    }
    false
}

/// Whether nobody listens at a server's address.
fn is_refused(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}

/// The tries of one call.
#[derive(Debug)]
pub struct Retry {
    limit: Duration,
    begun: Instant,
    failed: Option<Instant>,
    /// Tries that failed since something went well.
    tries: u32,
    /// Whether credentials were renewed for it.
    pub renewed: bool,
    /// Whether it is the first call to its server.
    is_first: bool,
}

impl Retry {
    /// For a call that is made again for at most `limit` after it first failed.
    pub fn new(limit: Duration) -> Self {
        Self { limit, begun: Instant::now(), failed: None, tries: 0, renewed: false, is_first: false }
    }

    /// The same for the first call to a server, where a refused connection is not waited for.
    pub fn first(limit: Duration) -> Self {
        Self { is_first: true, ..Self::new(limit) }
    }

    /// Something went well: time counts from the next failure.
    pub fn progress(&mut self) {
        self.failed = None;
        self.tries = 0;
        self.renewed = false;
    }

    /// How often and for how long it was tried.
    pub fn spent(&self) -> (u32, Duration) {
        (self.tries, self.begun.elapsed())
    }

    /// Counts a failure, which was waited for in silence for so long. How long to wait before the next try; `None` if there is
    /// to be none.
    pub fn again(&mut self, verdict: RetryVerdict, status: &Status, silence: Duration) -> Option<Duration> {
        self.tries += 1;
        let now = Instant::now();
        let failed = self.failed.get_or_insert_with(|| now.checked_sub(silence).unwrap_or(now));
        let passed = failed.elapsed();
        match verdict {
            RetryVerdict::Final | RetryVerdict::Unauthenticated => return None,
            RetryVerdict::Internal if self.tries >= FEW_TRIES => return None,
            RetryVerdict::Refused if self.is_first && self.tries >= FEW_TRIES => return None,
            RetryVerdict::Transport | RetryVerdict::Refused | RetryVerdict::Busy | RetryVerdict::Internal => {
            }
        }
        let left = self.limit.checked_sub(passed).filter(|left| !left.is_zero())?;
        let pause = FIRST.saturating_mul(1 << (self.tries - 1).min(16)).min(LONGEST);
        // The last try is at the end of the time, however long the pause would be.
        let wish = status.get_details_retry_info().and_then(|info| info.retry_delay);
        Some(wish.unwrap_or_default().max(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).min(left))
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn verdicts() {
        let of = |code, message: &str| verdict(&Status::new(code, message));
        assert_eq!(of(Code::Unavailable, "no healthy upstream"), RetryVerdict::Busy);
        assert_eq!(of(Code::ResourceExhausted, "quota"), RetryVerdict::Busy);
        assert_eq!(
            of(Code::ResourceExhausted, "Received message larger than max (5 vs. 4)"),
            RetryVerdict::Final
        );
        assert_eq!(
            of(Code::Internal, "stream terminated by RST_STREAM with NO_ERROR"),
            RetryVerdict::Transport
        );
        assert_eq!(of(Code::Internal, "assertion failed"), RetryVerdict::Internal);
        assert_eq!(of(Code::NotFound, ""), RetryVerdict::Final);
        let mut broken = Status::unknown("transport error");
        broken.set_source(std::sync::Arc::new(io::Error::other("broken pipe")));
        assert_eq!(verdict(&broken), RetryVerdict::Transport);
    }

    #[test]
    fn time_ends_tries_and_progress_gives_more() {
        let status = Status::unavailable("");
        let mut retry = Retry::new(Duration::from_millis(60));
        let pause = retry
            .again(RetryVerdict::Busy, &status, Duration::ZERO)
            .expect("the first failure is followed by a try");
        assert!(pause <= FIRST);
        retry.failed = Instant::now().checked_sub(Duration::from_millis(61));
        assert_eq!(retry.again(RetryVerdict::Busy, &status, Duration::ZERO), None);
        retry.progress();
        assert!(retry.again(RetryVerdict::Busy, &status, Duration::ZERO).is_some());
        assert_eq!(retry.again(RetryVerdict::Final, &status, Duration::ZERO), None);
    }

    #[test]
    fn silence_is_part_of_the_time() {
        let (limit, silence) = (Duration::from_secs(3600), Duration::from_secs(1800));
        let mut retry = Retry::new(limit);
        assert!(retry.again(RetryVerdict::Transport, &Status::unavailable(""), silence).is_some());
        let mut retry = Retry::new(silence);
        assert_eq!(retry.again(RetryVerdict::Transport, &Status::unavailable(""), silence), None);
    }

    #[test]
    fn a_server_may_ask_for_time() {
        let wish = ErrorDetails::with_retry_info(Some(Duration::from_secs(20)));
        let status = Status::with_error_details(Code::Unavailable, "", wish);
        let pause = Retry::new(Duration::from_secs(60)).again(RetryVerdict::Busy, &status, Duration::ZERO);
        assert_eq!(pause, Some(Duration::from_secs(20)));
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let status = Status::unavailable("");
        let mut retry = Retry::new(Duration::from_secs(3600));
        let pauses: Vec<_> =
            (0..40).filter_map(|_| retry.again(RetryVerdict::Busy, &status, Duration::ZERO)).collect();
        assert_eq!(pauses.len(), 40);
        assert!(pauses.iter().all(|pause| *pause <= LONGEST) && pauses[39] >= LONGEST / 2);
    }
}
