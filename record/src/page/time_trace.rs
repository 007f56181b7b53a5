//! Traces of clang's `-ftime-trace` and lld's `--time-trace`, in the lanes of a run.
//!
//! The format is Chrome's Trace Event Format as LLVM writes it: complete events with microseconds since `beginningOfTime`, which is
//! in microseconds since 1970. Totals, which lie at the beginning on threads of their own, are left out. Pure.

use distlto_prepare::json::{self, JsonError};
use distlto_prepare::text::printable;
use miette::Diagnostic;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::run::RunRecord;

/// How many events of a file are shown, the longest ones.
const SHOWN: usize = 2000;
/// The prefix of a total's name.
const TOTAL: &str = "Total ";

/// Why a file is no such trace.
#[derive(Debug, Error, Diagnostic)]
pub enum TimeTraceError {
    /// It is no JSON of that shape.
    #[error("{name} is no time trace: {source}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("name a file that clang wrote for -ftime-trace, or lld for --time-trace")
    )]
    Malformed {
        /// The file.
        name: String,
        /// The error and its place.
        source: JsonError,
    },
}

/// A trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeTrace {
    name: String,
    begun_us: u64,
    events: Vec<LlvmSpan>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct File {
    #[serde(rename = "traceEvents")]
    events: Vec<LlvmEvent>,
    #[serde(rename = "beginningOfTime")]
    begun_us: u64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct LlvmEvent {
    ph: String,
    name: String,
    #[serde(default)]
    ts: u64,
    #[serde(default)]
    dur: u64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct LlvmSpan {
    name: String,
    start: u64,
    length: u64,
}

impl TimeTrace {
    /// Reads a trace; `name` is its name on the page.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, TimeTraceError> {
        let file: File = json::read(bytes)
            .map_err(|source| TimeTraceError::Malformed { name: name.to_owned(), source })?;
        let spans = file.events.into_iter().filter(|event| event.ph == "X" && !event.name.starts_with(TOTAL));
        let mut events: Vec<LlvmSpan> = spans
            .map(|event| LlvmSpan {
                name: match event.args.detail.filter(|detail| !detail.is_empty()) {
                    Some(detail) => format!("{}: {detail}", event.name),
                    None => event.name,
                },
                start: event.ts,
                length: event.dur,
            })
            .collect();
        events.sort_by_key(|span| std::cmp::Reverse(span.length));
        events.truncate(SHOWN);
        events.sort_by_key(|span| (span.start, std::cmp::Reverse(span.length)));
        Ok(Self { name: name.to_owned(), begun_us: file.begun_us, events })
    }

    /// Whether it was written in a run.
    pub fn is_within(&self, run: &RunRecord) -> bool {
        let zero = run.begun_ms.saturating_mul(1000);
        self.begun_us >= zero && self.begun_us - zero <= run.wall_us
    }

    /// Returns its events in microseconds since the run began, each with its depth. `None` if the trace was not written
    /// in the run.
    pub(super) fn within(&self, run: &RunRecord) -> Option<Value> {
        let zero = run.begun_ms.saturating_mul(1000);
        if !self.is_within(run) {
            return None;
        }
        let offset = self.begun_us - zero;
        let mut open: Vec<u64> = Vec::new();
        let events = self.events.iter().map(|LlvmSpan { name, start, length }| {
            let end = start.saturating_add(*length);
            open.retain(|&other| other > *start);
            open.push(end);
            json!([printable(name), start.saturating_add(offset), length, open.len() - 1])
        });
        let events: Vec<Value> = events.collect();
        Some(json!({ "name": printable(&self.name), "events": events }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_time_of_the_run_and_their_depth() {
        let text = br#"{"traceEvents":[{"pid":1,"tid":2,"ph":"X","ts":0,"dur":50,"name":"ExecuteLinker"},
            {"ph":"X","ts":10,"dur":5,"name":"Parse","args":{"detail":"<b>\u202e"}},
            {"ph":"X","ts":0,"dur":50,"name":"Total Parse","args":{"count":1,"avg ms":0}},
            {"ph":"M","ts":0,"name":"process_name","args":{"name":"ld.lld"}}],"beginningOfTime":1000500}"#;
        let trace = TimeTrace::read("t.json", text).expect("a trace");
        let run = RunRecord { begun_ms: 1000, wall_us: 600, ..RunRecord::default() };
        let shown = trace.within(&run).expect("of its time");
        assert_eq!(shown["events"][0], json!(["ExecuteLinker", 500, 50, 0]));
        assert_eq!(shown["events"][1], json!(["Parse: <b>\\u{202e}", 510, 5, 1]));
        assert_eq!(shown["events"].as_array().map(Vec::len), Some(2));
        let later = RunRecord { begun_ms: 1001, wall_us: 600, ..RunRecord::default() };
        assert!(trace.within(&later).is_none());
        assert!(TimeTrace::read("t.json", b"{}").is_err());
    }
}
