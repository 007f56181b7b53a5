//! Progress as JSON lines (`--json`): one object a line, each with `version` and `event`.
//!
//! Version 1 has these events. Times are milliseconds, memory is bytes; a value that is not known is null.
//!
//! | `event` | other members |
//! |---|---|
//! | `plan` | `actions`, `cost`, `jobs` |
//! | `start` | `id`, `kind` (`prepare`, `thin-link`, `opt`, `link`), `label`, `command` (for a POSIX shell) |
//! | `finish` | `id`, `kind`, `label`, `wall_ms`, `cpu_ms`, `peak_memory`, `warnings` |
//! | `again` | `id`, `kind`, `label`, `cause`: it was killed and starts once more, alone |
//! | `fail` | `id`, `kind`, `label`, `class`, `cause`, `help`, `command`, `stderr` |
//! | `summary` | `done`, `failed`, `skipped`, `not_started`, `wall_ms` |
//!
//! In a log ([`JsonProgress::log`]) each event also has `time_ms`, milliseconds since 1970, and members that say whose
//! event it is, so that several runs can append to one file.
//!
//! Members may be added without a new version; a reader ignores those that it does not know.

use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, SystemTime};

use distlto_planner::graph::ActionKind;
use miette::Diagnostic;
use serde_json::{Value, json};

use super::{Plan, Progress, Step, put};
use crate::report::{Counts, Failure, Measured};

/// The version of the events.
pub const VERSION: u32 = 1;

/// Writes events.
#[derive(Debug)]
pub struct JsonProgress<W> {
    out: RefCell<W>,
    /// What every event of a log says of itself.
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
    fn plan(&self, plan: Plan) {
        self.put("plan", json!({ "actions": plan.actions, "cost": plan.cost, "jobs": plan.jobs }));
    }

    fn start(&self, step: Step<'_>) {
        let members = json!({
            "id": step.id, "kind": kind(step.kind), "label": step.label, "command": step.command,
        });
        self.put("start", members);
    }

    fn finish(&self, step: Step<'_>, measured: Measured, warnings: &str) {
        let members = json!({
            "id": step.id, "kind": kind(step.kind), "label": step.label,
            "wall_ms": milliseconds(measured.wall), "cpu_ms": measured.cpu.map(milliseconds),
            "peak_memory": measured.peak_memory, "warnings": warnings,
        });
        self.put("finish", members);
    }

    fn again(&self, step: Step<'_>, cause: &str) {
        let members = json!({ "id": step.id, "kind": kind(step.kind), "label": step.label, "cause": cause });
        self.put("again", members);
    }

    fn fail(&self, step: Step<'_>, failure: &Failure) {
        let members = json!({
            "id": step.id, "kind": kind(step.kind), "label": step.label,
            "class": failure.cause.code().map(|code| code.to_string()),
            "cause": failure.cause.to_string(),
            "help": failure.cause.help().map(|help| help.to_string()),
            "command": failure.command, "stderr": failure.stderr,
        });
        self.put("fail", members);
    }

    fn summary(&self, counts: Counts, wall: Duration) {
        let members = json!({
            "done": counts.done, "failed": counts.failed, "skipped": counts.skipped,
            "not_started": counts.not_started, "wall_ms": milliseconds(wall),
        });
        self.put("summary", members);
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970; null on a clock before that.
fn since_1970() -> Value {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(Value::Null, |since| milliseconds(since).into())
}

fn kind(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Prepare => "prepare",
        ActionKind::ThinLink => "thin-link",
        ActionKind::Opt => "opt",
        ActionKind::Link => "link",
    }
}
