//! The one line that says how a run stands, for a bar on a terminal and for a log now and then.
//!
//! Pure: a function of the record, the moment and the room. The least important parts are left out first.

use std::time::{Duration, Instant};

use distlto_planner::graph::ActionKind;

use super::eta;
use super::event::{SlotWait, UnderWay, verb};
use super::recorded::Recorded;
use super::text::{about, fitted, human, printable, size, width};
use crate::action::ActionRecord;

/// The least columns that a name is shown in.
const NAME: usize = 12;

/// How things stand, in at most so many columns; empty when there is nothing to say.
pub fn of_terminal(recorded: &Recorded, now: Instant, columns: usize) -> String {
    let Some((plan, _)) = recorded.plan.filter(|_| !recorded.ended) else {
        return fitted(&phase(recorded, now), columns).into_owned();
    };
    let tally = &recorded.tally;
    let counts = format!("{}/{}", tally.ended, plan.actions);
    let left = left(recorded, now).map(|left| format!("{} left", about(left)));
    let hits = (tally.hits > 0).then(|| format!("{} cached", tally.hits));
    let same = (tally.same > 0).then(|| format!("{} kept", tally.same));
    let failed = (tally.failed > 0).then(|| format!("{} failed", tally.failed));
    let memory = memory(recorded);
    let running = recorded.running.len();
    let longest = longest(recorded).map(|action| {
        let since = eta::ran_for(recorded, action, now);
        let name = printable(action.label.rsplit('/').next().unwrap_or(&action.label)).into_owned();
        let before = if running > 1 { format!("{running} running, longest ") } else { String::new() };
        (format!("{before}{}", doing(action.kind)), name, human(round(since)))
    });

    let mut line = counts;
    // In order of importance; each is shown if it fits beside the more important ones.
    let mut add = |text: Option<String>| {
        if let Some(text) = text.filter(|text| width(&line) + 2 + width(text) <= columns) {
            line = format!("{line}  {text}");
        }
    };
    add(failed);
    add(left);
    if columns >= 60 {
        let wide = if columns >= 100 { 24 } else { 12 };
        let bar = bar(fraction(recorded, now), wide);
        line = line.replacen("  ", &format!(" {bar} "), 1);
        if !line.contains('[') {
            line = format!("{line} {bar}");
        }
    }
    let mut add = |text: Option<String>, keep: usize| {
        if let Some(text) = text.filter(|text| width(&line) + 2 + width(text) + keep <= columns) {
            line = format!("{line}  {text}");
        }
    };
    add(hits, 0);
    add(same, 0);
    add(engine(recorded), 0);
    add(waits(recorded), 0);
    let wanted = longest.as_ref().map_or(0, |(before, _, time)| width(before) + NAME + width(time) + 4);
    add(memory, wanted);
    if let Some((before, name, time)) = longest {
        let room = columns.saturating_sub(width(&line) + width(&before) + width(&time) + 3);
        if room >= NAME.min(width(&name)) {
            line = format!("{line}  {before}{} {time}", fitted(&name, room));
        } else if columns >= width(&line) + 3 + width(&time) {
            line = format!("{line}  {time}");
        }
    }
    fitted(&line, columns).into_owned()
}

/// How things stand, for a log; `None` when no run goes on.
pub fn of_log(recorded: &Recorded, now: Instant) -> Option<String> {
    let (plan, begun) = recorded.plan.filter(|_| !recorded.ended)?;
    let tally = &recorded.tally;
    let mut text = format!("{}/{} done", tally.ended, plan.actions);
    for (count, what) in [(tally.failed, "failed"), (tally.hits, "from the cache"), (tally.same, "kept")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text.push_str(&format!(" after {}", about(eta::between(begun, recorded.since(now)))));
    if let Some(left) = left(recorded, now) {
        text.push_str(&format!(", about {} left", about(left)));
    }
    if let Some(engine) = engine(recorded) {
        text.push_str(&format!("; {engine}"));
    }
    if let Some(waits) = waits(recorded) {
        text.push_str(&format!("; {waits}"));
    }
    if let Some(action) = longest(recorded) {
        let since = human(eta::ran_for(recorded, action, now));
        text.push_str(&format!(
            "; {} running, longest {} ({since})",
            recorded.running.len(),
            printable(&action.label)
        ));
    }
    Some(text)
}

/// Returns the time left; `None` once all actions have ended, since uploads at the end have no estimate.
fn left(recorded: &Recorded, now: Instant) -> Option<Duration> {
    let (plan, _) = recorded.plan?;
    eta::left(recorded, now).filter(|_| recorded.tally.ended < plan.actions)
}

/// Returns the counts of actions on engines, by stage: `engine 2 up 5 queued 8 running 1 down`.
fn engine(recorded: &Recorded) -> Option<String> {
    let UnderWay { uploading, queued, running, downloading, storing } = recorded.under_way;
    let counts = [
        (uploading, "up"),
        (queued, "queued"),
        (running, "running"),
        (downloading, "down"),
        (storing, "to be kept"),
    ];
    let parts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| format!("engine {}", parts.join(" ")))
}

/// Returns who holds the slots that actions wait for: `1 slot waits for process 4711`.
fn waits(recorded: &Recorded) -> Option<String> {
    let SlotWait { slots, holders, .. } = &recorded.waits;
    let verb = if *slots == 1 { "slot waits" } else { "slots wait" };
    let holders = match holders.as_slice() {
        [] => "make".to_owned(),
        [one] => format!("process {one}"),
        [one, others @ ..] => format!("process {one} and {} more", others.len()),
    };
    (*slots > 0).then(|| format!("{slots} {verb} for {holders}"))
}

/// The action that has run longest.
fn longest(recorded: &Recorded) -> Option<&ActionRecord> {
    recorded.running.iter().map(|&at| &recorded.run.actions[at]).min_by_key(|action| action.start_us)
}

/// Returns the phase that runs beside a run, with its time.
fn phase(recorded: &Recorded, now: Instant) -> String {
    let runs = recorded.run.phases.iter().rev().find(|phase| phase.end_us.is_none());
    runs.map_or_else(String::new, |phase| {
        format!("{} {}", phase.name, human(round(eta::between(phase.start_us, recorded.since(now)))))
    })
}

/// Returns the verb of an action; none for a compilation, the usual kind.
fn doing(kind: ActionKind) -> String {
    if kind == ActionKind::Opt { String::new() } else { format!("{} ", verb(kind)) }
}

/// To tenths of a second: a bar that shows milliseconds is hard to read.
fn round(duration: Duration) -> Duration {
    let tenths = duration.as_millis() / 100;
    // Below one second the tenths of it are shown as milliseconds.
    Duration::from_millis(u64::try_from(tenths * 100).unwrap_or(u64::MAX))
}

/// Returns the share of the work that is done, by cost, with the work of running actions so far.
fn fraction(recorded: &Recorded, now: Instant) -> f64 {
    let Some((plan, _)) = recorded.plan else { return 0.0 };
    let each = eta::seconds_per_cost(recorded);
    let part = |action: &ActionRecord| {
        let cost = action.cost as f64;
        let done = eta::ran_for(recorded, action, now).as_secs_f64() / each.max(1e-12);
        done.min(cost * 0.95)
    };
    let running: f64 = recorded.running.iter().map(|&at| part(&recorded.run.actions[at])).sum();
    ((recorded.tally.cost as f64 + running) / (plan.cost.max(1)) as f64).min(1.0)
}

fn bar(fraction: f64, columns: usize) -> String {
    let full = ((fraction * columns as f64) as usize).min(columns);
    let head = if full < columns { ">" } else { "" };
    format!("[{}{head}{}]", "=".repeat(full), " ".repeat(columns - full - head.len()))
}

/// Returns the estimated memory of the running actions, and the budget if there is one.
fn memory(recorded: &Recorded) -> Option<String> {
    let memory = recorded.run.memory.last()?.memory;
    Some(match memory.budget {
        Some(budget) => format!("{} of {}", size(memory.in_use), size(budget)),
        None => size(memory.in_use),
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::width;
    use super::*;
    use crate::progress::{Phase, Plan, ProgressEvent, ProgressStep};
    use crate::report::{Measured, Origin};
    use crate::run::MemoryUse;

    fn step(id: usize, label: &str) -> ProgressStep<'_> {
        ProgressStep { id, kind: ActionKind::Opt, label, cost: 1_000_000, lane: id, command: "" }
    }

    fn busy() -> (Recorded, Instant) {
        let begun = Instant::now();
        let mut recorded = Recorded::new(begun);
        recorded.report(ProgressEvent::Planned(Plan { actions: 232, cost: 232_000_000, jobs: 4 }), begun);
        let wall = Duration::from_secs(1);
        for id in 0..100 {
            recorded.report(ProgressEvent::Started(step(id, "a.o")), begun);
            let origin = if id % 4 == 0 { Origin::Cache } else { Origin::Ran };
            let measured = Measured { wall, origin, ..Measured::default() };
            recorded.report(ProgressEvent::Finished(step(id, "a.o"), measured, ""), begun + wall * 25);
        }
        let wide = "src/libgit2/pcre2_match\x1b[31m\n.c.o";
        recorded.report(ProgressEvent::Started(step(100, wide)), begun + wall * 24);
        recorded.report(ProgressEvent::Started(step(101, "src/b.o")), begun + wall * 25);
        let memory = MemoryUse { in_use: 400 << 20, budget: Some(3 << 30) };
        recorded.report(ProgressEvent::Memory(memory), begun);
        (recorded, begun + wall * 26)
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        let (recorded, now) = busy();
        assert_eq!(
            of_terminal(&recorded, now, 140),
            "100/232 [==========>             ] 33 s left  25 cached  400 MiB of 3.0 GiB  2 running, longest \
             pcre2_match\\u{1b}[31m\\n.c.o 2.0 s"
        );
    }

    #[test]
    fn a_narrow_terminal_shows_what_matters_most() {
        let (recorded, now) = busy();
        assert_eq!(of_terminal(&recorded, now, 20), "100/232  33 s left");
        assert_eq!(of_terminal(&recorded, now, 7), "100/232");
        assert!(of_terminal(&recorded, now, 80).starts_with("100/232 [=====>      ] 33 s left  25 cached"));
        for columns in 0..200 {
            let line = of_terminal(&recorded, now, columns);
            assert!(width(&line) <= columns, "{columns} columns: {line}");
            assert!(!line.contains(['\x1b', '\n']), "{line:?}");
        }
    }

    #[test]
    fn who_holds_slots_is_named() {
        let (mut recorded, now) = busy();
        let log = |recorded: &Recorded| of_log(recorded, now).expect("runs");
        for (slots, holders, expected) in [
            (1, vec![4711], "1 slot waits for process 4711"),
            (2, vec![4711, 8, 9], "2 slots wait for process 4711 and 2 more"),
            (2, vec![], "2 slots wait for make"),
        ] {
            recorded.report(ProgressEvent::Waits(&SlotWait { slots, is_alone: false, holders }), now);
            assert!(log(&recorded).contains(&format!("left; {expected}; 2 running")), "{}", log(&recorded));
            assert!(of_terminal(&recorded, now, 140).contains(&format!("  {expected}  ")));
        }
        recorded.report(ProgressEvent::Waits(&SlotWait::default()), now);
        assert!(!log(&recorded).contains("wait"), "{}", log(&recorded));
    }

    #[test]
    fn beside_a_run_the_phase_is_shown() {
        let begun = Instant::now();
        let mut recorded = Recorded::new(begun);
        assert_eq!(of_terminal(&recorded, begun, 80), "");
        let phase = Phase { name: "thin link", start: begun, end: None };
        recorded.report(ProgressEvent::Phase(phase), begun);
        let now = begun + Duration::from_millis(2345);
        assert_eq!(of_terminal(&recorded, now, 80), "thin link 2.3 s");
        recorded.report(ProgressEvent::Phase(Phase { end: Some(now), ..phase }), begun);
        assert_eq!(of_terminal(&recorded, now, 80), "");
        assert_eq!(of_log(&recorded, now), None);
    }
}
