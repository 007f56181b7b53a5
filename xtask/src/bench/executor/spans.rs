//! When the jobs of a run began and ended, from what ran them, and how far the run is from the best one there is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// One run's jobs.
pub struct Spans(Vec<Span>);

/// One job, in seconds from any one moment.
struct Span {
    start: f64,
    end: f64,
}

impl Spans {
    /// From a trace of distlto: its spans of a category, with this name if one is given.
    pub fn of_trace(path: &Path, category: &str, name: Option<&str>) -> Result<Self> {
        let trace: Value = serde_json::from_slice(&fs::read(path)?)?;
        let events = trace["traceEvents"].as_array().context("the trace has no events")?;
        let seconds = |event: &Value, member: &str| {
            let micros = event[member].as_f64().with_context(|| format!("an event has no {member}"))?;
            anyhow::Ok(micros / 1e6)
        };
        let wanted = |event: &&Value| {
            event["ph"] == "X" && event["cat"] == category && name.is_none_or(|name| event["name"] == name)
        };
        let spans = events.iter().filter(wanted).map(|event| {
            let start = seconds(event, "ts")?;
            Ok(Span { start, end: start + seconds(event, "dur")? })
        });
        Self::some(spans.collect::<Result<_>>()?)
    }

    /// From the log that ninja keeps (version 5 and later): start and end in milliseconds.
    pub fn of_ninja_log(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let spans = lines.map(|line| {
            let mut fields = line.split('\t').map(|field| field.parse::<f64>().map(|millis| millis / 1e3));
            match (fields.next(), fields.next()) {
                (Some(Ok(start)), Some(Ok(end))) => Ok(Span { start, end }),
                _ => Err(anyhow::anyhow!("unexpected line in ninja's log: {line}")),
            }
        });
        Self::some(spans.collect::<Result<_>>()?)
    }

    fn some(spans: Vec<Span>) -> Result<Self> {
        ensure!(!spans.is_empty(), "nothing ran");
        Ok(Self(spans))
    }

    /// How many jobs ran.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// When the first one began.
    pub fn start(&self) -> f64 {
        self.0.iter().map(|span| span.start).fold(f64::INFINITY, f64::min)
    }

    /// When the last one ended.
    pub fn end(&self) -> f64 {
        self.0.iter().map(|span| span.end).fold(0.0, f64::max)
    }

    /// From the first start to the last end.
    pub fn makespan(&self) -> f64 {
        self.end() - self.start()
    }

    /// All of them one after the other.
    pub fn total(&self) -> f64 {
        self.0.iter().map(Span::length).sum()
    }

    /// What no order of these jobs on so many slots can do better than.
    pub fn lower_bound(&self, slots: usize) -> f64 {
        (self.total() / slots as f64).max(self.longest())
    }

    /// The longest job.
    pub fn longest(&self) -> f64 {
        self.0.iter().map(Span::length).fold(0.0, f64::max)
    }
}

impl Span {
    fn length(&self) -> f64 {
        self.end - self.start
    }
}
