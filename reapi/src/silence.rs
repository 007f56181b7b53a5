//! Limits of answers, and the failures of streams that end too early or not at all.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tonic::Status;

/// Of messages that are received. A result that lists ten thousands of outputs passes gRPC's usual 4 MiB.
pub const MESSAGE_LIMIT: usize = 256 << 20;

/// That nothing came for too long.
pub fn silent(limit: Duration) -> Status {
    let text = format!("silent for {limit:?}");
    let mut status = Status::deadline_exceeded(&*text);
    status.set_source(Arc::new(io::Error::new(io::ErrorKind::TimedOut, text)));
    status
}

/// That a stream ended before its end.
pub fn cut(text: &str) -> Status {
    let mut status = Status::unavailable(text);
    status.set_source(Arc::new(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
    status
}
