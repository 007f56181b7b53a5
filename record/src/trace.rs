//! The record of a command as a trace that Chrome's `about:tracing` and Perfetto show.
//!
//! The format is Chrome's Trace Event Format, in its form of a JSON object: complete events (`X`) for spans, counters (`C`)
//! and metadata (`M`), with times in microseconds since the command began. One thread for each worker, and one for what is
//! beside the workers. Pure: knows nothing of how the record came to be.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use distlto_planner::graph::ActionKind;
use serde_json::{Map, Value, json};

use crate::progress::recorded::{Fate, Recorded, Recording};
use crate::progress::text::printable;
use crate::report::{Origin, Span};

/// The version of names and arguments in the trace.
pub const VERSION: u32 = 1;

/// The one process.
const PROCESS: u32 = 1;
/// The thread of what is beside the workers.
const LINK: usize = 0;

/// The trace, until `now`. One line for each event, sorted by time.
pub fn to_bytes(recorded: &Recorded, now: Instant) -> Vec<u8> {
    let mut events = Events { begun: recorded.begun, timed: Vec::new() };
    let mut lanes: BTreeMap<usize, Vec<&Recording>> = BTreeMap::new();
    for action in &recorded.actions {
        lanes.entry(action.lane).or_default().push(action);
    }
    for phase in &recorded.phases {
        let span = Span { start: phase.start, end: phase.end.unwrap_or(now) };
        events.span(LINK, phase.name, "link", span, Map::new());
    }
    for (&lane, actions) in &mut lanes {
        actions.sort_by_key(|action| action.span(now).start);
        let mut free = recorded.begun;
        for action in actions {
            // What was told late must not lie over what follows.
            let mut span = action.span(now);
            span.start = span.start.max(free);
            span.end = span.end.max(span.start);
            free = span.end;
            events.action(lane + 1, action, span);
        }
    }
    events.running(recorded, now);
    for &(at, memory) in &recorded.memory {
        let mut values = Map::new();
        values.insert("in use".to_owned(), memory.in_use.into());
        if let Some(budget) = memory.budget {
            values.insert("budget".to_owned(), budget.into());
        }
        events.counter("memory (bytes, by estimate)", at, values);
    }
    // A span comes before the spans within it, which begin at the same time.
    events.timed.sort_by_key(|event| (event.at, std::cmp::Reverse(event.duration)));
    render(&lanes.keys().map(|lane| lane + 1).collect::<Vec<_>>(), &events.timed)
}

fn render(workers: &[usize], timed: &[Event]) -> Vec<u8> {
    let name = |thread: usize| if thread == LINK { "link".to_owned() } else { format!("worker {thread}") };
    let metadata = |thread: usize, what: &str, arguments: Value| json!({ "ph": "M", "pid": PROCESS, "tid": thread, "name": what, "args": arguments });
    let mut lines = vec![metadata(LINK, "process_name", json!({ "name": "distlto" })).to_string()];
    for thread in std::iter::once(LINK).chain(workers.iter().copied()) {
        lines.push(metadata(thread, "thread_name", json!({ "name": name(thread) })).to_string());
        lines.push(metadata(thread, "thread_sort_index", json!({ "sort_index": thread })).to_string());
    }
    lines.extend(timed.iter().map(|event| event.value.to_string()));
    let about = json!({ "producer": concat!("distlto ", env!("CARGO_PKG_VERSION")), "version": VERSION });
    let text = format!(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[\n{}\n]}}\n",
        lines.join(",\n")
    );
    text.into_bytes()
}

struct Event {
    at: u64,
    duration: u64,
    value: Value,
}

struct Events {
    begun: Instant,
    timed: Vec<Event>,
}

impl Events {
    /// Microseconds since the command began.
    fn time(&self, at: Instant) -> u64 {
        microseconds(at.saturating_duration_since(self.begun))
    }

    fn span(&mut self, thread: usize, name: &str, category: &str, span: Span, arguments: Map<String, Value>) {
        let at = self.time(span.start);
        // Both ends are rounded alike, so that what touches does not overlap.
        let duration = self.time(span.end).saturating_sub(at);
        let value = json!({
            "ph": "X", "pid": PROCESS, "tid": thread, "ts": at, "dur": duration,
            "name": printable(name), "cat": category, "args": arguments,
        });
        self.timed.push(Event { at, duration, value });
    }

    fn counter(&mut self, name: &str, at: Instant, values: Map<String, Value>) {
        let at = self.time(at);
        let value = json!({ "ph": "C", "pid": PROCESS, "tid": LINK, "ts": at, "name": name, "args": values });
        self.timed.push(Event { at, duration: 0, value });
    }

    fn action(&mut self, thread: usize, action: &Recording, span: Span) {
        let name = action.label.rsplit('/').next().unwrap_or(&action.label);
        self.span(thread, name, action.kind.name(), span, arguments(action));
        for (phase, part) in action.measured.phases.named() {
            let name = match (phase, action.kind) {
                ("command", ActionKind::Opt) => "compile",
                ("command", _) => "run",
                ("commit", _) => "check and commit",
                (other, _) => other,
            };
            let part = Span {
                start: part.start.clamp(span.start, span.end),
                end: part.end.clamp(span.start, span.end),
            };
            self.span(thread, name, "phase", part, Map::new());
        }
    }

    /// How many actions run, whenever that changes.
    fn running(&mut self, recorded: &Recorded, now: Instant) {
        let mut changes: BTreeMap<Instant, i64> = BTreeMap::new();
        for span in recorded.actions.iter().map(|action| action.span(now)) {
            *changes.entry(span.start).or_default() += 1;
            *changes.entry(span.end).or_default() -= 1;
        }
        let mut count = 0;
        for (at, change) in changes {
            count += change;
            let values = Map::from_iter([("running".to_owned(), count.into())]);
            self.counter("jobs", at, values);
        }
    }
}

fn arguments(action: &Recording) -> Map<String, Value> {
    let origin = match action.measured.origin {
        Origin::Ran => "ran",
        Origin::Cache => "cache",
        Origin::UpToDate => "up to date",
    };
    let fate = match &action.fate {
        Fate::Running => "interrupted".to_owned(),
        Fate::Done => "done".to_owned(),
        Fate::Failed(class) => format!("failed: {class}"),
        Fate::Again(cause) => format!("killed, runs again: {cause}"),
    };
    let value = json!({
        "module": action.label, "id": action.id, "cost": action.cost, "origin": origin, "result": fate,
        "cpu_ms": action.measured.cpu.map(|cpu| microseconds(cpu) as f64 / 1000.0),
        "peak_memory": action.measured.peak_memory,
    });
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
