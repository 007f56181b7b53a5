//! A run as blocks of the page: its phases and critical path as JSON, its actions in columns, then texts in lines.
//!
//! A text that many actions share, such as a reason, stands once in a list. Actions have its number; number 0 is the
//! empty text.

use std::collections::HashMap;

use distlto_planner::graph::ActionKind;
use distlto_prepare::text::printable;
use serde_json::{Value, json};

use crate::action::{ActionRecord, Interval};
use crate::inspect::{Inspection, linker_time};
use crate::page::block::PageBlock;
use crate::page::critical_path::{CriticalStep, path};
use crate::page::time_trace::TimeTrace;
use crate::report::Origin;
use crate::run::{RunRecord, SlotWaits};
use crate::trace::{Lane, lanes};
use crate::why;

/// Returns the facts of a run, and its actions as a block.
pub(super) fn of(run: &RunRecord, inspection: &Inspection, traces: &[TimeTrace]) -> (Value, String) {
    let lanes = lanes(run, run.wall_us);
    let mut placed: HashMap<*const ActionRecord, (usize, Interval)> = HashMap::new();
    for (number, Lane { actions, .. }) in lanes.iter().enumerate() {
        placed.extend(
            actions.iter().map(|&(interval, action)| (std::ptr::from_ref(action), (number, interval))),
        );
    }
    let places: Vec<Option<(usize, Interval)>> =
        run.actions.iter().map(|action| placed.get(&std::ptr::from_ref(action)).copied()).collect();
    let mut texts = Texts::default();
    let mut block = columns(run, inspection, &places, &mut texts);
    texts.list.iter().for_each(|text| block.line(text));
    let phases = run.phases.iter().map(|phase| {
        let end = phase.end_us.unwrap_or(run.wall_us);
        json!({ "name": printable(&phase.name), "start": phase.start_us, "end": end })
    });
    let facts = json!({
        "begun_ms": run.begun_ms,
        "wall_us": run.wall_us,
        "exit_code": run.exit_code,
        "jobs": run.jobs,
        "around": run.engines.is_empty().then(|| around(run)),
        "actions": run.actions.len(),
        "lanes": lanes.len(),
        "phases": phases.collect::<Vec<_>>(),
        "critical": critical(run, &places),
        "memory": run.memory.iter().map(|sample| [sample.at_us, sample.memory.in_use]).collect::<Vec<_>>(),
        "traces": traces.iter().filter_map(|trace| trace.within(run)).collect::<Vec<_>>(),
    });
    (facts, block.packed())
}

/// Returns the critical path of the run: an action by its number, a phase by its negative number from -1 on.
fn critical(run: &RunRecord, places: &[Option<(usize, Interval)>]) -> Vec<i64> {
    let phases = run.phases.iter().zip(1..).map(|(phase, number)| CriticalStep {
        interval: Interval { start: phase.start_us, end: phase.end_us.unwrap_or(run.wall_us) },
        lane: None,
        name: -number,
    });
    let actions = places.iter().zip(0..).filter_map(|(place, name)| {
        let (lane, interval) = (*place)?;
        Some(CriticalStep { interval, lane: Some(lane), name })
    });
    path(&phases.chain(actions).collect::<Vec<_>>())
}

/// Texts by number.
#[derive(Debug)]
struct Texts {
    numbers: HashMap<String, u64>,
    list: Vec<String>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { numbers: HashMap::from([(String::new(), 0)]), list: vec![String::new()] }
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.list.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.list.push(text.to_owned());
        number
    }
}

/// The actions in the order of the record, one column after the other; `run` of the page's `data.js` reads them in this order.
fn columns(
    run: &RunRecord,
    inspection: &Inspection,
    places: &[Option<(usize, Interval)>],
    texts: &mut Texts,
) -> PageBlock {
    let modules: HashMap<&str, u64> =
        inspection.modules.iter().zip(0..).map(|(module, number)| (module.label.as_str(), number)).collect();
    let module = |action: &ActionRecord| {
        let is_backend = action.kind == ActionKind::Opt;
        modules.get(action.label.as_str()).copied().filter(|_| is_backend)
    };
    let mut block = PageBlock::default();
    let mut column = |value: &mut dyn FnMut(&ActionRecord) -> u64| {
        run.actions.iter().for_each(|action| block.number(value(action)));
    };
    let plus = |number: Option<u64>| number.map_or(0, |number| number.saturating_add(1));
    column(&mut |action| plus(module(action)));
    column(&mut |action| if module(action).is_some() { 0 } else { texts.number(&action.label) });
    column(&mut |action| texts.number(action.kind.name()));
    column(&mut |action| texts.number(&result(action)));
    column(&mut |action| texts.number(&reasons(action)));
    column(&mut |action| texts.number(why::main_reason(&action.why).map_or("", |one| one.what.noun())));
    column(&mut |action| texts.number(action.worker.as_deref().unwrap_or_default()));
    column(&mut |action| {
        texts.number(&action.failure.as_ref().map_or_else(String::new, |failure| failure.cause.text.clone()))
    });
    column(&mut |action| match (action.took.origin, action.cache.as_ref().map(|cache| cache.hit)) {
        (Origin::Cache, _) | (_, Some(true)) => 2,
        (_, Some(false)) => 1,
        (_, None) => 0,
    });
    column(&mut |action| plus(action.took.cpu_us));
    column(&mut |action| plus(action.took.peak_memory));
    column(&mut |action| match action.outputs.iter().any(|out| out.after.is_some()) {
        true => 1 + u64::from(action.outputs.iter().any(|out| out.before != out.after)),
        false => 0,
    });
    for times in [|interval: Interval| interval.start, Interval::length] {
        times_of(&mut block, places, times);
    }
    places.iter().for_each(|place| block.known(place.map(|(lane, _)| lane as u64)));
    phases(&mut block, run, places);
    block
}

fn times_of(block: &mut PageBlock, places: &[Option<(usize, Interval)>], time: impl Fn(Interval) -> u64) {
    places.iter().for_each(|place| block.number(place.map_or(0, |(_, interval)| time(interval))));
}

/// Adds the time of each action by phase: verify, lookup, command, commit; then its way to an engine and back.
fn phases(block: &mut PageBlock, run: &RunRecord, places: &[Option<(usize, Interval)>]) {
    let started = || run.actions.iter().zip(places).map(|(action, place)| place.map(|_| action));
    let length = |interval: Option<Interval>| interval.map_or(0, Interval::length);
    for part in 0..4 {
        for action in started() {
            let phases = action.map(|action| action.phases).unwrap_or_default();
            block.number(length([phases.verify, phases.lookup, phases.command, phases.commit][part]));
        }
    }
    for part in 0..4 {
        for action in started() {
            let times = action.and_then(|action| action.engine);
            block.number(times.map_or(0, |times| {
                [times.uploading_us, times.queued_us, times.running_us, times.downloading_us][part]
            }));
        }
    }
}

/// How it ended, in the record's word.
fn result(action: &ActionRecord) -> String {
    let word = serde_json::to_value(action.result).expect("a word serialises");
    word.as_str().unwrap_or_default().to_owned()
}

/// Why it ran: all reasons in one text.
fn reasons(action: &ActionRecord) -> String {
    let reasons = action.why.iter().map(ToString::to_string);
    reasons.chain(action.because.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// Returns the time around the backends of a run, and how many of its jobs others held on average meanwhile.
fn around(run: &RunRecord) -> Value {
    let SlotWaits { others_us, make_us, idle_us } = run.waited;
    let held = others_us.saturating_add(make_us) as f64 / run.backends_us().max(1) as f64;
    json!({ "linker_us": linker_time(run), "idle_us": idle_us, "held": held })
}
