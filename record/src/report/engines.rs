//! The use of engines in a run, in numbers: bytes, calls, and the time of backends in each stage.
//!
//! Pure arithmetic over the record. Knows nothing of servers.

use std::collections::BTreeMap;

use crate::action::EngineTimes;
use crate::progress::text::{human_us, printable, size};
use crate::run::RunRecord;

/// How many workers are shown.
const WORKERS: usize = 10;

/// The use of engines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EngineSummary {
    /// Who executed, and how many backends.
    pub workers: BTreeMap<String, usize>,
    /// The time in each stage, of all backends together.
    pub times: EngineTimes,
    /// Bytes that were sent.
    pub sent: u64,
    /// Bytes that were received.
    pub received: u64,
    /// Calls, each attempt counted.
    pub round_trips: u64,
    /// Calls that were made again.
    pub retries: u64,
}

impl EngineSummary {
    pub(super) fn of(record: &RunRecord) -> Option<Self> {
        let mut all = Self::default();
        for action in record.done_backends() {
            let (Some(worker), Some(times)) = (&action.worker, action.engine) else { continue };
            *all.workers.entry(worker.clone()).or_default() += 1;
            all.times.uploading_us += times.uploading_us;
            all.times.queued_us += times.queued_us;
            all.times.running_us += times.running_us;
            all.times.downloading_us += times.downloading_us;
        }
        for engine in &record.engines {
            all.sent += engine.wire_up;
            all.received += engine.wire_down;
            all.round_trips += engine.round_trips();
            all.retries += engine.retries;
        }
        (!record.engines.is_empty()).then_some(all)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let retries =
            if self.retries > 0 { format!(", {} of them again", self.retries) } else { String::new() };
        let mut lines = vec![format!(
            "  engine: {} sent, {} received, {} round trips{retries}",
            amount(self.sent),
            amount(self.received),
            self.round_trips
        )];
        if !self.workers.is_empty() {
            let EngineTimes { uploading_us, queued_us, running_us, downloading_us } = self.times;
            lines.push(format!(
                "    all backends there: {} of uploads, {} queued, {} on workers, {} of downloads",
                human_us(uploading_us),
                human_us(queued_us),
                human_us(running_us),
                human_us(downloading_us)
            ));
        }
        let shown = self.workers.iter().take(WORKERS);
        lines.extend(shown.map(|(worker, count)| format!("    {count:>8}  {}", printable(worker))));
        let more = self.workers.len().saturating_sub(WORKERS);
        lines.extend((more > 0).then(|| format!("    {more} workers more")));
        lines
    }
}

/// As [`size`], and smaller ones: `340 KiB`.
fn amount(bytes: u64) -> String {
    if bytes < 10 << 20 { format!("{} KiB", bytes.div_ceil(1 << 10)) } else { size(bytes) }
}
