//! The record of a command as a trace that Chrome's `about:tracing` and Perfetto show.
//!
//! The format is Chrome's Trace Event Format, in its form of a JSON object: complete events (`X`) for spans, counters (`C`)
//! and metadata (`M`), with times in microseconds since the command began. One thread for each worker, and one for the
//! phases beside the workers. Pure: knows nothing of how the record came to be.

use std::collections::BTreeMap;

use distlto_planner::graph::ActionKind;
use serde_json::{Map, Value, json};

use crate::action::{ActionRecord, ActionStatus, Interval};
use crate::progress::text::printable;
use crate::report::Origin;
use crate::run::RunRecord;

/// The version of names and arguments in the trace.
pub const VERSION: u32 = 1;

/// The one process.
const PROCESS: u32 = 1;
/// The thread of the phases beside the workers.
const LINK: usize = 0;

/// The trace of a record until `now`, in microseconds since the command began. One line for each event, sorted by time.
pub fn to_bytes(record: &RunRecord, now: u64) -> Vec<u8> {
    let mut events = Events { timed: Vec::new() };
    let lanes = lanes(record, now);
    for phase in &record.phases {
        let interval = Interval { start: phase.start_us, end: phase.end_us.unwrap_or(now) };
        events.span(LINK, &phase.name, "link", interval, Map::new());
    }
    for Lane { number, actions } in &lanes {
        for &(interval, action) in actions {
            events.action(number + 1, action, interval);
        }
    }
    events.running(record, now);
    for sample in &record.memory {
        let mut values = Map::new();
        values.insert("in use".to_owned(), sample.memory.in_use.into());
        if let Some(budget) = sample.memory.budget {
            values.insert("budget".to_owned(), budget.into());
        }
        events.counter("memory (bytes, by estimate)", sample.at_us, values);
    }
    // A span comes before the spans within it, which begin at the same time.
    events.timed.sort_by_key(|event| (event.at, std::cmp::Reverse(event.duration)));
    render(&lanes.iter().map(|lane| lane.number + 1).collect::<Vec<_>>(), &events.timed)
}

/// The actions on one thread of a run.
pub(crate) struct Lane<'r> {
    /// The thread.
    pub(crate) number: usize,
    /// Its actions, one after the other.
    pub(crate) actions: Vec<(Interval, &'r ActionRecord)>,
}

/// The lanes of a run until `now`, by number.
pub(crate) fn lanes(record: &RunRecord, now: u64) -> Vec<Lane<'_>> {
    let mut lanes: BTreeMap<usize, Vec<(Interval, &ActionRecord)>> = BTreeMap::new();
    for action in record.started() {
        let interval = action.interval(now).unwrap_or_default();
        lanes.entry(action.lane.unwrap_or_default()).or_default().push((interval, action));
    }
    for actions in lanes.values_mut() {
        actions.sort_by_key(|(interval, _)| interval.start);
        let mut free = 0;
        for (interval, _) in actions {
            // An action that was reported late must not overlap the next one.
            interval.start = interval.start.max(free);
            interval.end = interval.end.max(interval.start);
            free = interval.end;
        }
    }
    lanes.into_iter().map(|(number, actions)| Lane { number, actions }).collect()
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
    timed: Vec<Event>,
}

impl Events {
    fn span(
        &mut self,
        thread: usize,
        name: &str,
        category: &str,
        interval: Interval,
        arguments: Map<String, Value>,
    ) {
        let (at, duration) = (interval.start, interval.length());
        let value = json!({
            "ph": "X", "pid": PROCESS, "tid": thread, "ts": at, "dur": duration,
            "name": printable(name), "cat": category, "args": arguments,
        });
        self.timed.push(Event { at, duration, value });
    }

    fn counter(&mut self, name: &str, at: u64, values: Map<String, Value>) {
        let value = json!({ "ph": "C", "pid": PROCESS, "tid": LINK, "ts": at, "name": name, "args": values });
        self.timed.push(Event { at, duration: 0, value });
    }

    fn action(&mut self, thread: usize, action: &ActionRecord, interval: Interval) {
        let name = action.label.rsplit('/').next().unwrap_or(&action.label);
        self.span(thread, name, action.kind.name(), interval, arguments(action));
        for (phase, part) in action.phases.named() {
            let name = match (phase, action.kind) {
                ("command", ActionKind::Opt) => "compile",
                ("command", _) => "run",
                ("commit", _) => "check and commit",
                (other, _) => other,
            };
            let part = Interval {
                start: part.start.clamp(interval.start, interval.end),
                end: part.end.clamp(interval.start, interval.end),
            };
            self.span(thread, name, "phase", part, Map::new());
        }
    }

    /// How many actions run, whenever that changes.
    fn running(&mut self, record: &RunRecord, now: u64) {
        let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
        for interval in record.started().filter_map(|action| action.interval(now)) {
            *changes.entry(interval.start).or_default() += 1;
            *changes.entry(interval.end).or_default() -= 1;
        }
        let mut count = 0;
        for (at, change) in changes {
            count += change;
            let values = Map::from_iter([("running".to_owned(), count.into())]);
            self.counter("jobs", at, values);
        }
    }
}

fn arguments(action: &ActionRecord) -> Map<String, Value> {
    let origin = match action.took.origin {
        Origin::Ran => "ran",
        Origin::Cache => "cache",
        Origin::UpToDate => "up to date",
        Origin::SameImports => "same imports",
    };
    let class = || action.failure.as_ref().map_or("distlto::failed", |failure| &failure.cause.class);
    let result = match action.result {
        ActionStatus::Failed => format!("failed: {}", class()),
        ActionStatus::Again => {
            format!("killed, runs again: {}", action.because.as_deref().unwrap_or_default())
        }
        ActionStatus::Running | ActionStatus::NotStarted | ActionStatus::Skipped => "interrupted".to_owned(),
        ActionStatus::Done | ActionStatus::Kept | ActionStatus::UpToDate | ActionStatus::SameImports => {
            "done".to_owned()
        }
    };
    let value = json!({
        "module": action.label, "id": action.id, "cost": action.cost, "origin": origin, "result": result,
        "cpu_ms": action.took.cpu_us.map(|cpu| cpu as f64 / 1000.0),
        "peak_memory": action.took.peak_memory,
    });
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
