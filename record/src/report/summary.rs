//! The end of a command in numbers: its time, how close that is to the best possible, and its longest backends.
//!
//! Pure arithmetic over the record. A backend's time is that on its worker, with verification and all. The best
//! possible time of the backends on so many workers is the larger of the longest backend and of all of them shared
//! evenly; no order is faster.

use std::collections::BTreeMap;
use std::time::Duration;

use distlto_planner::graph::ActionKind;

use super::Origin;
use super::engines::EngineSummary;
use crate::action::{ActionRecord, ActionStatus, Interval};
use crate::progress::text::{counted, human, printable, size};
use crate::run::{RunRecord, SlotWaits};
use crate::why;

/// How many of the most expensive backends are listed.
pub const EXPENSIVE: usize = 5;

/// The numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// From the command's beginning to its end.
    pub wall: Duration,
    /// Backends that ran their command and succeeded.
    pub ran: usize,
    /// Backends with a cache hit.
    pub cached: usize,
    /// Backends that kept their objects, since the functions that they import are the same.
    pub same_imports: usize,
    /// How many backends ran for each kind of reason ([`why::kind`]).
    pub reasons: BTreeMap<&'static str, usize>,
    /// Actions that turned out to be up to date.
    pub up_to_date: usize,
    /// Actions that failed.
    pub failed: usize,
    /// Backends that engines ran, or had run.
    pub on_engine: usize,
    /// The use of engines, with the time of all backends in each stage.
    pub engines: Option<EngineSummary>,
    /// How many workers there were.
    pub jobs: usize,
    /// From the first backend's beginning to the last one's end.
    pub makespan: Duration,
    /// The sum of the backends' times.
    pub work: Duration,
    /// Their processor time, as far as it is known.
    pub cpu: Duration,
    /// The best possible makespan over the real one, with the slots that others left; `None` without backends.
    pub efficiency: Option<f64>,
    /// How many of the jobs others held on average while backends waited for them.
    pub held_by_others: f64,
    /// The chain of steps that no number of workers shortens, each with its time: the steps before the backends, the
    /// longest backend, and the steps after them.
    pub critical_path: Vec<(String, Duration)>,
    /// The most memory that one backend held, in bytes; `None` unless the system reports it for most of them.
    pub peak_memory: Option<u64>,
    /// The most memory that running actions held together, in bytes, by estimate; `None` if not reported.
    pub memory_in_use: Option<u64>,
    /// The budget of that memory, in bytes.
    pub memory_budget: Option<u64>,
    /// The backends that took longest, longest first.
    pub expensive: Vec<Expensive>,
}

/// A backend that took long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expensive {
    /// Its number in the graph.
    pub id: usize,
    /// Its module.
    pub label: String,
    /// Its time.
    pub wall: Duration,
    /// Its processor time, if the system reports it.
    pub cpu: Option<Duration>,
    /// The most memory it held, in bytes, if the system reports it.
    pub peak_memory: Option<u64>,
    /// Instructions of its own that other modules could call, as far as its shard says; see [`super::imports`].
    pub own_instructions: u64,
    /// The modules that it imports from with the instructions of each, most first.
    pub imports: Vec<(String, u64)>,
}

impl Summary {
    /// Of a record until now, in microseconds since the command began.
    pub fn of(record: &RunRecord, now: u64) -> Self {
        let time = |action: &ActionRecord| time(action, now);
        let done = |origin| record.done_backends().filter(move |action| action.took.origin == origin).count();
        let jobs = record.jobs.unwrap_or(1).max(1);
        let work: Duration = record.backends().map(time).sum();
        let longest = record.backends().max_by_key(|action| time(action));
        let on_worker = || record.backends().filter_map(|action| action.interval(now));
        let first = on_worker().map(|interval| interval.start).min();
        let last = on_worker().map(|interval| interval.end).max();
        let makespan = match (first, last) {
            (Some(start), Some(end)) => Duration::from_micros(Interval { start, end }.length()),
            _ => Duration::ZERO,
        };
        let held = held_by_others(record, jobs);
        let bound = (work.saturating_add(held).as_secs_f64() / jobs as f64)
            .max(longest.map_or(0.0, |one| time(one).as_secs_f64()));
        let budgets = record.memory.iter().filter_map(|sample| sample.memory.budget);
        let cpu =
            record.backends().flat_map(|action| [action.took.cpu_us, action.took.import_cpu_us]).flatten();
        Self {
            on_engine: record.done_backends().filter(|action| action.worker.is_some()).count(),
            engines: EngineSummary::of(record),
            wall: Duration::from_micros(now),
            ran: done(Origin::Ran),
            cached: done(Origin::Cache),
            same_imports: record.same_imports(),
            reasons: reasons(record),
            up_to_date: record.up_to_date(),
            failed: record.actions.iter().filter(|action| action.result == ActionStatus::Failed).count(),
            jobs,
            makespan,
            work,
            cpu: cpu.map(Duration::from_micros).sum(),
            // Rounding must not make more of it than everything.
            // Of workers elsewhere it is not known how many there were, and lookups take no job.
            efficiency: (!makespan.is_zero() && record.engines.is_empty())
                .then(|| (bound / makespan.as_secs_f64()).min(1.0)),
            held_by_others: held.as_secs_f64() / makespan.as_secs_f64().max(1e-3),
            critical_path: critical_path(record, longest, now),
            peak_memory: peak_memory(record.backends()),
            memory_in_use: record.memory.iter().map(|sample| sample.memory.in_use).max(),
            memory_budget: budgets.max(),
            expensive: expensive(record.done_backends(), now),
        }
    }

    /// One line: `app: 4 backends (1 for own code, 3 for imports) in 3.9 s, 7.4 s of processor time, 1.9 of 2 jobs busy`.
    pub fn sentence(&self, what: &str) -> String {
        let what = if what.is_empty() { String::new() } else { format!("{}: ", printable(what)) };
        let backends = self.ran + self.cached;
        let same = same_imports(self.same_imports);
        let cached = (self.cached > 0).then(|| format!("{} from the cache", self.cached));
        let reasons = self.reasons.iter().map(|(reason, count)| match *reason {
            why::NEW => format!("{count} new"),
            reason => format!("{count} for {reason}"),
        });
        // A first link needs no reasons.
        let is_first = self.reasons.keys().all(|reason| *reason == why::NEW);
        let notes: Vec<String> = cached.into_iter().chain(reasons.filter(|_| !is_first)).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        if backends == 0 {
            return format!("{what}no backend{same}{failed} in {}", human(self.wall));
        }
        let count = counted(backends, "backend");
        if self.engines.is_some() {
            let there = match self.on_engine {
                0 => String::new(),
                there => format!(", {there} of them on the engine"),
            };
            return format!(
                "{what}{count}{notes}{same}{failed} in {}{there}, {} of processor time here",
                human(self.makespan),
                human(self.cpu),
            );
        }
        let busy = self.work.as_secs_f64() / self.makespan.as_secs_f64().max(1e-3);
        let jobs = self.jobs.min(backends).max(1);
        format!(
            "{what}{count}{notes}{same}{failed} in {}, {} of processor time, {:.1} of {jobs} jobs busy",
            human(self.makespan),
            human(self.cpu),
            busy.min(jobs as f64),
        )
    }

    /// Returns the details, as lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let chain: Duration = self.critical_path.iter().map(|&(_, time)| time).sum();
        let steps =
            self.critical_path.iter().map(|(name, time)| format!("{} {}", printable(name), human(*time)));
        let steps: Vec<_> = steps.collect();
        lines.push(format!(
            "  total {}; critical path {}: {}",
            human(self.wall),
            human(chain),
            steps.join(", ")
        ));
        if let Some(efficiency) = self.efficiency {
            let held = match self.held_by_others {
                held if held < 0.05 => String::new(),
                held => format!(" with the jobs that others left; they held {held:.1}"),
            };
            lines.push(format!(
                "  {} of work on {} in {}: {:.0} % of the best possible{held}",
                human(self.work),
                counted(self.jobs, "job"),
                human(self.makespan),
                (efficiency * 100.0).floor()
            ));
        }
        let peak = self.peak_memory.map(|peak| format!("at most {} in one job", size(peak)));
        let together = self.memory_in_use.filter(|&bytes| bytes > 0).map(|bytes| {
            let budget =
                self.memory_budget.map_or_else(String::new, |budget| format!(" of {}", size(budget)));
            format!("{}{budget} in all jobs at once by estimate", size(bytes))
        });
        let memory: Vec<_> = peak.into_iter().chain(together).collect();
        if !memory.is_empty() {
            lines.push(format!("  memory: {}", memory.join(", ")));
        }
        lines.extend(self.engines.iter().flat_map(EngineSummary::lines));
        if self.expensive.len() > 1 {
            lines.push("  most expensive:".to_owned());
            lines.extend(self.expensive.iter().map(Expensive::line));
        }
        lines
    }
}

impl Expensive {
    fn line(&self) -> String {
        let imports: Vec<_> = self
            .imports
            .iter()
            .take(2)
            .map(|(name, instructions)| {
                format!("{} from {}", instructions, printable(name.rsplit('/').next().unwrap_or(name)))
            })
            .collect();
        let total: u64 = self.imports.iter().map(|&(_, instructions)| instructions).sum();
        let more = self.imports.len().saturating_sub(imports.len());
        let imports = match (imports.is_empty(), more) {
            (true, _) => String::new(),
            (_, 0) => format!("  imports {total} instructions: {}", imports.join(", ")),
            _ => format!("  imports {total} instructions: {}, and from {more} more", imports.join(", ")),
        };
        format!("    {:>8}  {}{imports}", human(self.wall), printable(&self.label))
    }
}

/// Says how many objects were kept that import the same.
pub fn same_imports(number: usize) -> String {
    match number {
        0 => String::new(),
        number => format!(", {} kept that import the same", counted(number, "object")),
    }
}

/// Returns the time of a started action on its worker.
fn time(action: &ActionRecord, now: u64) -> Duration {
    Duration::from_micros(action.worked_us(now))
}

/// The time of idle jobs that other links or make held while backends waited for them.
fn held_by_others(record: &RunRecord, jobs: usize) -> Duration {
    let SlotWaits { others_us, make_us, idle_us } = record.waited;
    let idle_us = idle_us.saturating_mul(jobs as u64);
    Duration::from_micros(others_us.saturating_add(make_us).saturating_add(idle_us))
}

/// How many backends ran for each kind of reason.
fn reasons(record: &RunRecord) -> BTreeMap<&'static str, usize> {
    let ran = |action: &&ActionRecord| action.took.origin == Origin::Ran;
    let mut reasons = BTreeMap::new();
    for kind in record.done_backends().filter(ran).filter_map(|action| why::kind(&action.why)) {
        *reasons.entry(kind).or_default() += 1;
    }
    reasons
}

fn peak_memory<'a>(backends: impl Iterator<Item = &'a ActionRecord>) -> Option<u64> {
    let ran = backends.filter(|action| action.took.origin == Origin::Ran);
    let peaks: Vec<_> = ran.map(|action| action.took.peak_memory).collect();
    let known = peaks.iter().flatten().count();
    peaks.iter().flatten().copied().max().filter(|_| known * 2 > peaks.len())
}

/// Steps before the backends, the longest backend, steps after them, in the order in which they began.
fn critical_path(record: &RunRecord, longest: Option<&ActionRecord>, now: u64) -> Vec<(String, Duration)> {
    let mut steps: Vec<(u64, String, Duration)> = Vec::new();
    for phase in &record.phases {
        let interval = Interval { start: phase.start_us, end: phase.end_us.unwrap_or(now) };
        steps.push((interval.start, phase.name.clone(), Duration::from_micros(interval.length())));
    }
    let mut add = |action: &ActionRecord, name: &str| {
        steps.push((action.start_us.unwrap_or_default(), name.to_owned(), time(action, now)));
    };
    for (kind, name) in [
        (ActionKind::Prepare, "prepare"),
        (ActionKind::ThinLink, "thin link"),
        (ActionKind::Link, "final link"),
    ] {
        let of_kind = record.started().filter(|action| action.kind == kind);
        if let Some(one) = of_kind.max_by_key(|action| time(action, now)) {
            add(one, name);
        }
    }
    if let Some(longest) = longest {
        add(longest, &longest.label);
    }
    steps.sort_by_key(|&(start, _, _)| start);
    steps.into_iter().map(|(_, name, time)| (name, time)).collect()
}

fn expensive<'a>(backends: impl Iterator<Item = &'a ActionRecord>, now: u64) -> Vec<Expensive> {
    // A cache hit cost nothing.
    let mut ran: Vec<_> = backends.filter(|action| action.took.origin == Origin::Ran).collect();
    ran.sort_by(|a, b| time(b, now).cmp(&time(a, now)).then_with(|| a.label.cmp(&b.label)));
    ran.truncate(EXPENSIVE);
    let one = |action: &ActionRecord| Expensive {
        id: action.id,
        label: action.label.clone(),
        wall: time(action, now),
        cpu: action.took.cpu_us.map(Duration::from_micros),
        peak_memory: action.took.peak_memory,
        own_instructions: 0,
        imports: Vec::new(),
    };
    ran.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::progress::recorded::Recorded;
    use crate::progress::{Phase, Plan, ProgressEvent, ProgressStep};
    use crate::report::{Counts, Measured, Phases, Span};
    use crate::run::MemoryUse;

    struct Clock {
        begun: Instant,
        recorded: Recorded,
    }

    impl Clock {
        fn at(&self, tenths: u64) -> Instant {
            self.begun + Duration::from_millis(tenths * 100)
        }

        /// An action on a worker, with times in tenths of a second.
        fn ran(
            &mut self,
            id: usize,
            kind: ActionKind,
            label: &str,
            lane: usize,
            times: (u64, u64),
            origin: Origin,
        ) {
            let step = ProgressStep { id, kind, label, cost: 1, lane, command: "" };
            let (from, to) = times;
            let span = Span { start: self.at(from), end: self.at(to) };
            let measured = Measured {
                wall: span.end - span.start,
                cpu: Some(span.end - span.start),
                import_cpu: None,
                spared_us: None,
                peak_memory: Some(id as u64 * 1000),
                origin,
                phases: Phases { verify: Some(span), ..Phases::default() },
            };
            let (start, end) = (self.at(from + 1), self.at(to + 1));
            self.recorded.report(ProgressEvent::Started(step), start);
            self.recorded.report(ProgressEvent::Finished(step, measured, ""), end);
        }
    }

    fn summary(recorded: &Recorded, now: Instant) -> Summary {
        Summary::of(&recorded.run, recorded.since(now))
    }

    /// Thin link 1 s; on two workers 3 s + 1 s, and 2 s; final link 0.5 s.
    fn link() -> (Recorded, Instant) {
        let begun = Instant::now();
        let mut clock = Clock { begun, recorded: Recorded::new(begun) };
        let phase = |name, start, end| Phase { name, start, end: Some(end) };
        clock.recorded.report(ProgressEvent::Phase(phase("thin link", clock.at(0), clock.at(10))), begun);
        clock.recorded.report(ProgressEvent::Planned(Plan { actions: 4, cost: 4, jobs: 2 }), begun);
        clock.ran(1, ActionKind::Opt, "a.o", 0, (10, 40), Origin::Ran);
        clock.ran(2, ActionKind::Opt, "b.o", 1, (10, 30), Origin::Ran);
        clock.ran(3, ActionKind::Opt, "c.o", 0, (40, 50), Origin::Ran);
        clock.ran(4, ActionKind::Opt, "d.o", 1, (30, 30), Origin::Cache);
        let memory = MemoryUse { in_use: 5 << 20, budget: Some(8 << 20) };
        clock.recorded.report(ProgressEvent::Memory(memory), clock.at(10));
        clock.recorded.report(ProgressEvent::Memory(MemoryUse { in_use: 1 << 20, ..memory }), clock.at(40));
        clock.recorded.report(ProgressEvent::Ended(Counts::default(), Duration::ZERO), clock.at(51));
        clock.recorded.report(ProgressEvent::Phase(phase("final link", clock.at(52), clock.at(57))), begun);
        let now = clock.at(60);
        (clock.recorded, now)
    }

    #[test]
    fn the_numbers_of_a_link_that_can_be_added_up_by_hand() {
        let (recorded, now) = link();
        let summary = summary(&recorded, now);
        let seconds = Duration::from_secs;
        assert_eq!((summary.wall, summary.makespan, summary.work), (seconds(6), seconds(4), seconds(6)));
        assert_eq!((summary.ran, summary.cached, summary.failed, summary.jobs), (3, 1, 0, 2));
        // max(6 s / 2, 3 s) over 4 s.
        assert_eq!(summary.efficiency, Some(0.75));
        let path: Vec<_> =
            summary.critical_path.iter().map(|(name, time)| (name.as_str(), time.as_millis())).collect();
        assert_eq!(path, [("thin link", 1000), ("a.o", 3000), ("final link", 500)]);
        let expensive: Vec<_> = summary.expensive.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(expensive, ["a.o", "b.o", "c.o"], "what the cache had cost nothing");
        assert_eq!(summary.memory_in_use, Some(5 << 20));
        assert_eq!(
            summary.sentence("app\n"),
            "app\\n: 4 backends (1 from the cache) in 4.0 s, 6.0 s of processor time, 1.5 of 2 jobs busy"
        );
        assert_eq!(
            summary.lines()[..2],
            [
                "  total 6.0 s; critical path 4.5 s: thin link 1.0 s, a.o 3.0 s, final link 500 ms",
                "  6.0 s of work on 2 jobs in 4.0 s: 75 % of the best possible",
            ]
        );
    }

    #[test]
    fn one_long_backend_on_many_workers_is_the_best_possible() {
        let begun = Instant::now();
        let mut clock = Clock { begun, recorded: Recorded::new(begun) };
        clock.recorded.report(ProgressEvent::Planned(Plan { actions: 2, cost: 2, jobs: 64 }), begun);
        clock.ran(0, ActionKind::Opt, "a.o", 0, (0, 100), Origin::Ran);
        clock.ran(1, ActionKind::Opt, "b.o", 1, (0, 5), Origin::Ran);
        assert_eq!(summary(&clock.recorded, clock.at(101)).efficiency, Some(1.0));
    }

    #[test]
    fn nothing_divides_nothing() {
        let begun = Instant::now();
        let summary = summary(&Recorded::new(begun), begun);
        assert_eq!((summary.efficiency, summary.ran, summary.expensive.len()), (None, 0, 0));
        assert_eq!(summary.sentence("app"), "app: no backend in 0 ms");
        assert_eq!(summary.lines().len(), 1);
    }

    #[test]
    fn steps_of_a_graph_are_steps_of_the_critical_path() {
        let begun = Instant::now();
        let mut clock = Clock { begun, recorded: Recorded::new(begun) };
        clock.recorded.report(ProgressEvent::Planned(Plan { actions: 3, cost: 3, jobs: 2 }), begun);
        clock.ran(0, ActionKind::ThinLink, "app", 0, (0, 10), Origin::Ran);
        clock.ran(1, ActionKind::Opt, "a.o", 0, (10, 20), Origin::Ran);
        clock.ran(2, ActionKind::Link, "app", 0, (20, 25), Origin::Ran);
        let summary = summary(&clock.recorded, clock.at(30));
        let names: Vec<_> = summary.critical_path.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["thin link", "a.o", "final link"]);
        assert_eq!(
            (summary.ran, summary.makespan),
            (1, Duration::from_secs(1)),
            "backends alone are counted"
        );
    }
}
