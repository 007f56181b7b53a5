//! How long a worker says that it had an action, and ran its command.
//!
//! By the worker's clock: only lengths are of use elsewhere. A result that was cached has the times of when it was made.

use std::time::Duration;

use bazel_remote_apis::google::protobuf::Timestamp;

use crate::proto::ExecutedActionMetadata;

/// How long the command ran; `None` where the worker does not say, or says that it took no time.
pub fn command_time(metadata: &ExecutedActionMetadata) -> Option<Duration> {
    between(metadata.execution_start_timestamp.as_ref()?, metadata.execution_completed_timestamp.as_ref()?)
}

/// How long the worker had the action, fetching of inputs and uploading of outputs included; `None` as for the command.
pub fn worker_time(metadata: &ExecutedActionMetadata) -> Option<Duration> {
    between(metadata.worker_start_timestamp.as_ref()?, metadata.worker_completed_timestamp.as_ref()?)
}

fn between(start: &Timestamp, end: &Timestamp) -> Option<Duration> {
    let nanoseconds = i64::from(end.nanos) - i64::from(start.nanos);
    let seconds = end.seconds.checked_sub(start.seconds)?;
    let length = seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    u64::try_from(length).ok().filter(|length| *length > 0).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_what_is_said() {
        let at = |seconds, nanos| Some(Timestamp { seconds, nanos });
        let mut metadata = ExecutedActionMetadata::default();
        assert_eq!((command_time(&metadata), worker_time(&metadata)), (None, None));
        metadata.worker_start_timestamp = at(1_700_000_000, 900_000_000);
        metadata.worker_completed_timestamp = at(1_700_000_002, 100_000_000);
        assert_eq!(worker_time(&metadata), Some(Duration::from_millis(1200)));
        for (start, end) in [(at(7, 0), at(7, 0)), (at(7, 0), at(6, 0)), (at(i64::MIN, 0), at(i64::MAX, 0))] {
            metadata.execution_start_timestamp = start;
            metadata.execution_completed_timestamp = end;
            assert_eq!(command_time(&metadata), None);
        }
    }
}
