//! Progress as JSON lines (`--json`): one object a line, each with `version` and `event`.
//!
//! Version 1 has these events; `docs/progress-events.schema.json` is their JSON Schema.
//! Times are milliseconds, memory is bytes; a value that is not known is null.
//!
//! | `event` | other members |
//! |---|---|
//! | `phase` | `name`, `wall_ms` (null when it begins): a part of the command beside the run, such as the thin link |
//! | `plan` | `actions`, `cost`, `jobs`; `grown` is true for a run that lasts and has other numbers from here on, as actions arrive |
//! | `start` | `id`, `kind` (`prepare`, `thin-link`, `opt`, `link`), `label`, `lane`, `command` (for a POSIX shell) |
//! | `finish` | `id`, `kind`, `label`, `lane`, `origin` (`ran`, `cache`, `up-to-date`, `same-imports`), `wall_ms`, `cpu_ms`, `peak_memory`, `warnings` |
//! | `fail` | `id`, `kind`, `label`, `lane`, `class`, `cause`, `help`, `command`, `stderr` |
//! | `again` | `id`, `kind`, `label`, `cause`: it was killed and starts once more, alone |
//! | `warning` | `text`: something went wrong that fails nothing |
//! | `note` | `text`: a message of `-v`, such as why a link is left to the linker |
//! | `memory` | `in_use`, `budget`: of the running actions, by estimate |
//! | `summary` | `done`, `failed`, `interrupted`, `skipped`, `not_started`, `wall_ms`; of a command, also the fields of [`Summary`] |
//!
//! In a log ([`JsonProgress::log`]) each event also has `time_ms`, milliseconds since 1970, and members that name its
//! run. So several runs can append to one file.
//!
//! Members may be added without a new version; a reader ignores those that it does not know.

use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, SystemTime};

use miette::Diagnostic;
use serde_json::{Value, json};

use super::event::{Plan, Progress, ProgressEvent, put};
use crate::report::Counts;
use crate::report::summary::Summary;

/// The version of the events.
pub const VERSION: u32 = 1;

/// Writes events.
#[derive(Debug)]
pub struct JsonProgress<W> {
    out: RefCell<W>,
    /// The members that name the run in every event of a log.
    run: Option<Value>,
}

impl<W: Write> JsonProgress<W> {
    /// Events go to `out`.
    pub fn new(out: W) -> Self {
        Self { out: RefCell::new(out), run: None }
    }

    /// A log: every event has its time, and the members of the object `run`.
    pub fn log(out: W, run: Value) -> Self {
        Self { out: RefCell::new(out), run: Some(run) }
    }

    fn put_plan(&self, Plan { actions, cost, jobs }: Plan, grown: bool) {
        self.put("plan", json!({ "actions": actions, "cost": cost, "jobs": jobs, "grown": grown }));
    }

    fn put(&self, event: &str, members: Value) {
        let mut object = json!({ "version": VERSION, "event": event });
        if let (Value::Object(object), Value::Object(members)) = (&mut object, members) {
            if let Some(Value::Object(run)) = &self.run {
                object.insert("time_ms".to_owned(), since_1970());
                object.extend(run.clone());
            }
            object.extend(members);
        }
        put(&mut *self.out.borrow_mut(), &format!("{object}\n"));
    }
}

impl<W: Write> Progress for JsonProgress<W> {
    fn report(&self, event: ProgressEvent<'_>) {
        match event {
            ProgressEvent::Planned(plan) => self.put_plan(plan, false),
            ProgressEvent::Grown(plan) => self.put_plan(plan, true),
            ProgressEvent::Started(step) => self.put(
                "start",
                json!({
                    "id": step.id, "kind": step.kind.name(), "label": step.label, "lane": step.lane,
                    "command": step.command,
                }),
            ),
            ProgressEvent::Finished(step, measured, warnings) => self.put(
                "finish",
                json!({
                    "id": step.id, "kind": step.kind.name(), "label": step.label, "lane": step.lane,
                    "origin": measured.origin,
                    "wall_ms": milliseconds(measured.wall), "cpu_ms": measured.cpu.map(milliseconds),
                    "peak_memory": measured.peak_memory, "warnings": warnings,
                }),
            ),
            ProgressEvent::Again(step, cause) => self.put(
                "again",
                json!({ "id": step.id, "kind": step.kind.name(), "label": step.label, "cause": cause }),
            ),
            ProgressEvent::Failed(step, failure) => self.put(
                "fail",
                json!({
                    "id": step.id, "kind": step.kind.name(), "label": step.label, "lane": step.lane,
                    "class": failure.cause.code().map(|code| code.to_string()),
                    "cause": failure.cause.to_string(),
                    "help": failure.cause.help().map(|help| help.to_string()),
                    "command": failure.command, "stderr": failure.stderr,
                }),
            ),
            // Events are on standard output.
            ProgressEvent::Printed(lines) => put(&mut std::io::stderr(), lines),
            ProgressEvent::Warned(text) | ProgressEvent::Retried(text) => {
                self.put("warning", json!({ "text": text }));
            }
            ProgressEvent::Noted(text) => self.put("note", json!({ "text": text })),
            ProgressEvent::Ended(counts, wall) => self.put("summary", totals(counts, wall)),
            ProgressEvent::Phase(phase) => {
                let wall = phase.end.map(|end| milliseconds(end.saturating_duration_since(phase.start)));
                self.put("phase", json!({ "name": phase.name, "wall_ms": wall }));
            }
            ProgressEvent::Memory(memory) => {
                self.put("memory", json!({ "in_use": memory.in_use, "budget": memory.budget }));
            }
            ProgressEvent::Concluded(counts, summary) => {
                let mut members = totals(counts, summary.wall);
                if let (Value::Object(members), Value::Object(more)) = (&mut members, details(summary)) {
                    members.extend(more);
                }
                self.put("summary", members);
            }
            ProgressEvent::Arrived(_)
            | ProgressEvent::LookedUp(..)
            | ProgressEvent::ExecutedBy(..)
            | ProgressEvent::CameBack(..)
            | ProgressEvent::UnderWay(_)
            | ProgressEvent::Waits(_)
            | ProgressEvent::Engines(_)
            | ProgressEvent::Outcomes(_) => {}
        }
    }
}

fn totals(counts: Counts, wall: Duration) -> Value {
    json!({
        "done": counts.done, "failed": counts.failed, "interrupted": counts.interrupted,
        "skipped": counts.skipped, "not_started": counts.not_started, "wall_ms": milliseconds(wall),
    })
}

fn details(summary: &Summary) -> Value {
    let path = summary.critical_path.iter();
    let path: Vec<_> =
        path.map(|(name, time)| json!({ "name": name, "wall_ms": milliseconds(*time) })).collect();
    let expensive = summary.expensive.iter().map(|one| {
        let imports = one.imports.iter();
        let imports = imports.map(|(module, count)| json!({ "module": module, "instructions": count }));
        json!({
            "id": one.id, "label": one.label, "wall_ms": milliseconds(one.wall),
            "cpu_ms": one.cpu.map(milliseconds), "peak_memory": one.peak_memory,
            "own_instructions": one.own_instructions, "imports": imports.collect::<Vec<_>>(),
        })
    });
    json!({
        "ran": summary.ran, "cached": summary.cached, "same_imports": summary.same_imports,
        "up_to_date": summary.up_to_date, "jobs": summary.jobs,
        "makespan_ms": milliseconds(summary.makespan), "work_ms": milliseconds(summary.work),
        "cpu_ms": milliseconds(summary.cpu), "efficiency": summary.efficiency,
        "critical_path": path, "peak_memory": summary.peak_memory,
        "memory_in_use": summary.memory_in_use, "memory_budget": summary.memory_budget,
        "expensive": expensive.collect::<Vec<_>>(),
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970; null on a clock before that.
fn since_1970() -> Value {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(Value::Null, |since| milliseconds(since).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_grows_is_reported_as_one() {
        let mut out = Vec::new();
        let progress = JsonProgress::new(&mut out);
        let plan = Plan { actions: 1, cost: 5, jobs: 2 };
        progress.report(ProgressEvent::Planned(plan));
        progress.report(ProgressEvent::Grown(Plan { actions: 7, cost: 9, ..plan }));
        let events = out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let events: Vec<Value> = events.map(|line| serde_json::from_slice(line).expect("JSON")).collect();
        let event = |actions, cost, grown| json!({ "version": 1, "event": "plan", "actions": actions, "cost": cost, "jobs": 2, "grown": grown });
        assert_eq!(events, [event(1, 5, false), event(7, 9, true)]);
    }
}
