//! What a link did, from the newest record in its state directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::linked::newest_record;

/// One backend that was started.
pub struct Ran {
    /// Where, if not on this machine.
    pub worker: Option<String>,
    /// From its start to its end as the client saw it, in seconds since the link began.
    pub span: [f64; 2],
    /// Seconds of its command.
    pub wall: f64,
    /// Whether it ran at all.
    pub computed: bool,
    /// Seconds of each of its phases.
    pub phases: BTreeMap<&'static str, f64>,
}

/// A record.
pub struct Link {
    /// Backends.
    pub backends: Vec<Ran>,
    /// Seconds of the parts of the link beside them.
    pub phases: Vec<(String, f64)>,
    /// Seconds of all of it.
    pub wall: f64,
}

impl Link {
    /// The newest one.
    pub fn newest(state: &Path) -> Result<Self> {
        Ok(Self::of(&newest_record(state)?))
    }

    fn of(record: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let seconds = |value: &Value| value.as_f64().unwrap_or(0.0) / 1e6;
        let between = |value: &Value| seconds(&value[1]) - seconds(&value[0]);
        let started = list(&record["actions"]).into_iter().filter(|action| !action["start_us"].is_null());
        let backend = |action: Value| {
            let phases = ["verify", "lookup", "command", "commit"]
                .map(|name| (name, between(&action["phases"][name])));
            let of_phases =
                ["verify", "lookup", "command", "commit"].map(|name| action["phases"][name].clone());
            let known = || of_phases.iter().filter(|phase| !phase.is_null());
            let span = [known().next().map(|phase| &phase[0]), known().next_back().map(|phase| &phase[1])];
            Ran {
                worker: action["worker"].as_str().map(str::to_owned),
                span: [
                    seconds(span[0].unwrap_or(&action["start_us"])),
                    seconds(span[1].unwrap_or(&action["end_us"])),
                ],
                wall: seconds(&action["took"]["wall_us"]),
                computed: action["took"]["origin"] == "ran",
                phases: phases.into(),
            }
        };
        let phase = |phase: Value| {
            let length = seconds(&phase["end_us"]) - seconds(&phase["start_us"]);
            (phase["name"].as_str().unwrap_or_default().to_owned(), length)
        };
        Self {
            backends: started.filter(|action| action["kind"] == "opt").map(backend).collect(),
            phases: list(&record["phases"]).into_iter().map(phase).collect(),
            wall: seconds(&record["wall_us"]),
        }
    }

    /// Those that another machine executed.
    pub fn elsewhere(&self) -> usize {
        self.backends.iter().filter(|ran| ran.worker.is_some()).count()
    }

    /// From the first backend's start to the last one's end.
    pub fn makespan(&self) -> f64 {
        let starts = self.backends.iter().map(|ran| ran.span[0]).fold(f64::INFINITY, f64::min);
        let ends = self.backends.iter().map(|ran| ran.span[1]).fold(0.0, f64::max);
        (ends - starts).max(0.0)
    }
}
