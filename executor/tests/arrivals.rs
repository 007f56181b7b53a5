//! Runs to which actions are added while they last. Commands are real processes: a script in place of the compiler, which says
//! that it runs and waits or fails where a file says so, and clang itself.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::{Child, Command, Spawner};
use distlto_executor::ledger::Ledger;
use distlto_executor::run::{Arrival, RunOptions};
use distlto_executor::schedule::Policy;
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::{Counts, Outcome};
use proptest::prelude::*;

use crate::support::{eventually, tool, which};
use support::{End, PATIENCE, Place, all, beside, ends_of};

#[test]
fn what_several_threads_add_runs_once_and_within_the_job_limit() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let options = RunOptions { jobs: 3, ..place.options(&cancel) };
    let (graph, report, (labels, ends), most) = beside(&options, |arrivals, ends| {
        let labels = Mutex::new(BTreeMap::new());
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (arrivals, labels, place) = (arrivals.clone(), &labels, &place);
                scope.spawn(move || {
                    for n in 0..8 {
                        // Some come together, and some when all before have ended.
                        thread::sleep(Duration::from_millis((thread * 7 + n * 13) % 5 * 20));
                        let name = format!("m{thread}-{n}");
                        let id = arrivals.add(place.arrival(&name, 1000 * n)).unwrap();
                        assert_eq!(labels.lock().unwrap().insert(id, name), None);
                    }
                });
            }
        });
        drop(arrivals);
        (labels.into_inner().unwrap(), all(&ends))
    });
    assert_eq!(labels.keys().map(|id| id.index()).collect::<Vec<_>>(), (0..32).collect::<Vec<_>>());
    assert!(
        graph.actions().map(|(id, action)| (id, &action.label)).eq(labels.iter().map(|(&id, l)| (id, l)))
    );
    let mut log = place.log();
    log.sort_unstable();
    let expected: BTreeSet<_> = labels.into_values().collect();
    assert_eq!(log, expected.into_iter().collect::<Vec<_>>());
    assert_eq!((ends.len(), &ends), (32, &ends_of(&report)));
    assert!(report.is_success() && ends.values().all(|&end| end == End::Finished), "{report:?}");
    assert!((1..=3).contains(&most), "{most} at once");
    assert_eq!(fs::read(place.path("out/m3-7")).unwrap(), fs::read(place.path("native.o")).unwrap());
}

#[test]
fn of_those_that_wait_the_largest_starts_first() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let options = RunOptions { jobs: 1, ..place.options(&cancel) };
    let (_, report, (), most) = beside(&options, |arrivals, _ends| {
        arrivals.add(place.arrival("waits", 1)).unwrap();
        eventually("the first does not run", || place.log() == ["waits"]);
        for (name, cost) in [("b", 20_000), ("e", 1), ("a", 900_000), ("d", 3_000), ("c", 10_000)] {
            arrivals.add(place.arrival(name, cost)).unwrap();
        }
        fs::write(place.path("go"), "").unwrap();
    });
    assert!(report.is_success(), "{report:?}");
    assert_eq!((place.log().join(" "), most), ("waits a b c d e".to_owned(), 1));
}

#[test]
fn a_failure_stops_the_rest_and_everybody_is_told_at_once() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let options = RunOptions { jobs: 2, ..place.options(&cancel) };
    let (_, report, ends, _) = beside(&options, |arrivals, ends| {
        let next = || ends.recv_timeout(PATIENCE).expect("nobody is told");
        let add = |name: &str, cost| arrivals.add(place.arrival(name, cost)).unwrap();
        let waits = add("waits", 9);
        eventually("the first does not run", || place.log() == ["waits"]);
        let ready = [add("fails", 8), add("ready1", 2), add("ready2", 1)];
        // The first still runs, and goes on to its end, when the others are told.
        let mut told: Vec<_> = (0..3).map(|_| next()).collect();
        assert_eq!(told.remove(0), (ready[0], End::Failed));
        told.sort_unstable_by_key(|&(id, _)| id);
        assert_eq!(told, [(ready[1], End::Abandoned), (ready[2], End::Abandoned)]);
        let late = add("late", 100);
        assert_eq!(next(), (late, End::Abandoned));
        fs::write(place.path("go"), "").unwrap();
        assert_eq!(next(), (waits, End::Finished));
        let latest = add("latest", 100);
        assert_eq!(next(), (latest, End::Abandoned));
        [(waits, End::Finished), (ready[0], End::Failed)]
            .into_iter()
            .chain([ready[1], ready[2], late, latest].map(|id| (id, End::Abandoned)))
            .collect()
    });
    assert_eq!(ends_of(&report), ends);
    assert_eq!(place.log(), ["waits", "fails"]);
    assert!(report.outcomes.iter().filter(|(_, end)| matches!(end, Outcome::NotStarted)).count() == 4);
}

#[test]
fn what_goes_on_after_a_failure_goes_on() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let options = RunOptions { policy: Policy::KeepGoing, ..place.options(&cancel) };
    let (_, report, (), _) = beside(&options, |arrivals, ends| {
        let first = arrivals.add(place.arrival("fails", 1)).unwrap();
        assert_eq!(ends.recv_timeout(PATIENCE), Ok((first, End::Failed)));
        let second = arrivals.add(place.arrival("good", 1)).unwrap();
        assert_eq!(ends.recv_timeout(PATIENCE), Ok((second, End::Finished)));
    });
    assert_eq!(report.counts(), Counts { done: 1, failed: 1, ..Counts::default() });
}

/// Is not to be called.
struct Untold;

impl Progress for Untold {
    fn report(&self, event: ProgressEvent<'_>) {
        panic!("a run is reported: {event:?}");
    }
}

/// A spawner that nobody may even ask.
struct Unasked;

impl Spawner for Unasked {
    fn spawn(&self, _: &Command, _: OwnedFd, _: OwnedFd) -> io::Result<Box<dyn Child>> {
        panic!("a process is started");
    }
}

#[test]
fn a_run_without_actions_does_nothing() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let books = place.path("ledger");
    let ledger = Ledger::open(books.clone()).unwrap();
    let written = || fs::metadata(&books).unwrap().modified().unwrap();
    let before = written();
    // A seat that is taken shows as another time.
    eventually("the clock stands still", || before.elapsed().unwrap() > Duration::from_millis(50));
    let options =
        RunOptions { progress: &Untold, spawner: &Unasked, ledger: Some(&ledger), ..place.options(&cancel) };
    let (graph, report, (), _) = beside(&options, |arrivals, _ends| {
        let clone = arrivals.clone();
        arrivals.expect(100);
        drop((arrivals, clone));
    });
    assert_eq!(written(), before, "a seat was taken");
    assert!(graph.actions().len() == 0 && report.outcomes.is_empty() && report.cancelled.is_none());
}

#[test]
fn cancelling_ends_a_run_that_waits() {
    let place = Place::new();
    for idles in [false, true] {
        let cancel = Cancel::new().unwrap();
        let (_, report, (), _) = beside(&place.options(&cancel), |arrivals, ends| {
            if idles {
                let id = arrivals.add(place.arrival("m", 1)).unwrap();
                assert_eq!(ends.recv_timeout(PATIENCE), Ok((id, End::Finished)));
            }
            cancel.cancel(None);
            // The run has ended while somebody could still add to it.
            assert!(all(&ends).is_empty());
            assert_eq!(arrivals.add(place.arrival("late", 1)), None);
        });
        assert_eq!((report.cancelled, report.outcomes.len()), (Some(130), usize::from(idles)));
    }
}

#[test]
fn what_is_cancelled_while_it_runs_or_waits_is_abandoned() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let options = RunOptions { jobs: 1, ..place.options(&cancel) };
    let (_, report, ends, _) = beside(&options, |arrivals, ends| {
        arrivals.add(place.arrival("stays", 1)).unwrap();
        eventually("the first does not run", || place.log() == ["stays"]);
        arrivals.add(place.arrival("ready", 1)).unwrap();
        cancel.cancel(None);
        all(&ends)
    });
    assert_eq!((ends_of(&report), ends.len()), (ends.clone(), 2));
    assert!(ends.values().all(|&end| end == End::Abandoned), "{ends:?}");
    assert_eq!(place.log(), ["stays"]);
}

/// Keeps what the run says of its size.
#[derive(Default)]
struct Sizes {
    plans: Mutex<Vec<usize>>,
    arrived: Mutex<Vec<String>>,
}

impl Progress for Sizes {
    fn report(&self, event: ProgressEvent<'_>) {
        match event {
            ProgressEvent::Planned(plan) => self.plans.lock().unwrap().push(plan.actions),
            ProgressEvent::Grown(plan) => {
                let mut plans = self.plans.lock().unwrap();
                plans.push(plan.actions);
                plans.dedup();
            }
            ProgressEvent::Arrived(action) => {
                let arrived = format!("{} {} {:?}", action.id, action.label, action.module);
                self.arrived.lock().unwrap().push(arrived);
            }
            _ => {}
        }
    }
}

#[test]
fn the_total_is_what_is_expected_until_more_have_arrived() {
    let place = Place::new();
    let cancel = Cancel::new().unwrap();
    let sizes = Sizes::default();
    let last = || sizes.plans.lock().unwrap().last().copied();
    let options = RunOptions { progress: &sizes, ..place.options(&cancel) };
    beside(&options, |arrivals, ends| {
        let add = |name: &str| {
            let id = arrivals.add(place.arrival(name, 1)).unwrap();
            assert_eq!(ends.recv_timeout(PATIENCE), Ok((id, End::Finished)));
        };
        arrivals.expect(3);
        add("a");
        assert_eq!(last(), Some(3));
        arrivals.expect(2);
        eventually("that fewer are expected is not told", || last() == Some(2));
        add("b");
        add("c");
        eventually("that more have arrived is not told", || last() == Some(3));
        arrivals.expect(9);
        eventually("that more are expected is not told", || last() == Some(9));
    });
    assert_eq!(*sizes.plans.lock().unwrap(), [3, 2, 3, 9, 3]);
    let arrived = sizes.arrived.lock().unwrap();
    assert_eq!(*arrived, ["0 a Some(\"a\")", "1 b Some(\"b\")", "2 c Some(\"c\")"]);
}

#[test]
fn clang_compiles_what_arrives() {
    let place = Place::new();
    fs::write(place.path("a.c"), "int b(int); int main(void) { return b(3); }\n").unwrap();
    fs::write(place.path("b.c"), "int b(int x) { return x * 7; }\n").unwrap();
    for name in ["a", "b"] {
        let (source, object) = (format!("{name}.c"), format!("{name}.o"));
        tool(place.0.path(), &["clang-22", "-O2", "-flto=thin", "-c", &source, "-o", &object]);
    }
    let link = ["ld.lld-22", "--thinlto-index-only", "-e", "main", "-o", "program", "a.o", "b.o"];
    tool(place.0.path(), &link);
    let clang = which("clang-22");
    let arrival = |name: &str, imports: &[&str]| {
        let (module, shard) = (format!("{name}.o"), format!("{name}.o.thinlto.bc"));
        let (index, object) = (format!("-fthinlto-index={shard}"), format!("{name}.native.o"));
        Arrival {
            label: module.clone(),
            prefix: [clang.as_str(), "-O2", "-c"].map(str::to_owned).into(),
            args: [module.as_str(), &index, "-o", &object].map(str::to_owned).to_vec(),
            module: module.into(),
            shard: shard.into(),
            imports: imports.iter().map(Into::into).collect(),
            extra: vec![],
            object: object.into(),
            dwo: None,
            cost: 0,
        }
    };
    let cancel = Cancel::new().unwrap();
    let (_, report, (), _) = beside(&place.options(&cancel), |arrivals, ends| {
        arrivals.add(arrival("a", &["b.o"])).unwrap();
        ends.recv_timeout(PATIENCE).unwrap();
        arrivals.add(arrival("b", &[])).unwrap();
    });
    assert!(report.is_success(), "{report:?}");
    for name in ["a", "b"] {
        let (module, index) = (format!("{name}.o"), format!("-fthinlto-index={name}.o.thinlto.bc"));
        tool(place.0.path(), &[&clang, "-O2", "-c", &module, &index, "-o", "plain.o"]);
        let ours = fs::read(place.path(&format!("{name}.native.o"))).unwrap();
        assert_eq!(ours, fs::read(place.path("plain.o")).unwrap(), "{name}");
    }
}

/// What one thread does: adds a module that is good or not, after a while, or cancels everything.
#[derive(Debug, Clone)]
enum ImportStep {
    Add { cost: u64, fails: bool },
    Pause(u64),
    Cancel,
}

fn steps() -> impl Strategy<Value = Vec<Vec<ImportStep>>> {
    let add = (0..50_000_u64, prop::bool::weighted(0.1));
    let step = prop_oneof![
        8 => add.prop_map(|(cost, fails)| ImportStep::Add { cost, fails }),
        3 => (0..30_u64).prop_map(ImportStep::Pause),
        1 => Just(ImportStep::Cancel),
    ];
    // Most runs are not cancelled.
    let may_cancel = prop::bool::weighted(0.25);
    (prop::collection::vec(prop::collection::vec(step, 0..10), 1..4), may_cancel).prop_map(
        |(mut threads, may)| {
            threads
                .iter_mut()
                .for_each(|steps| steps.retain(|step| may || !matches!(step, ImportStep::Cancel)));
            threads
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever arrives when, fails, or is cancelled: whoever was given an id hears one end of it, which is that of the report;
    /// nothing runs twice; and nothing is left out without a reason.
    #[test]
    fn whoever_adds_hears_one_end(threads in steps(), jobs in 1..4_usize, keep_going in any::<bool>()) {
        let place = Place::new();
        let cancel = Cancel::new().unwrap();
        let policy = if keep_going { Policy::KeepGoing } else { Policy::StopAtFirstFailure };
        let options = RunOptions { jobs, policy, ..place.options(&cancel) };
        let (_, report, (added, ends), most) = beside(&options, |arrivals, ends| {
            let added = Mutex::new(BTreeMap::new());
            thread::scope(|scope| {
                for (thread, steps) in threads.iter().enumerate() {
                    let (arrivals, added, place, cancel) = (arrivals.clone(), &added, &place, &cancel);
                    scope.spawn(move || {
                        for (n, step) in steps.iter().enumerate() {
                            match *step {
                                ImportStep::Add { cost, fails } => {
                                    let name = format!("m{thread}-{n}{}", if fails { "fails" } else { "" });
                                    let id = arrivals.add(place.arrival(&name, cost));
                                    added.lock().unwrap().extend(id.map(|id| (id, (name, fails))));
                                }
                                ImportStep::Pause(time) => thread::sleep(Duration::from_millis(time)),
                                ImportStep::Cancel => cancel.cancel(None),
                            }
                        }
                    });
                }
            });
            drop(arrivals);
            (added.into_inner().unwrap(), all(&ends))
        });
        prop_assert!(added.keys().map(|id| id.index()).eq(0..added.len()));
        prop_assert!(ends.keys().eq(added.keys()), "{:?} of {:?}", ends, added);
        prop_assert_eq!(&ends_of(&report), &ends);
        prop_assert!(most <= jobs);
        let log = place.log();
        prop_assert_eq!(log.iter().collect::<BTreeSet<_>>().len(), log.len(), "something ran twice");
        let stops = cancel.is_cancelled() || (!keep_going && ends.values().any(|&end| end == End::Failed));
        for (id, (name, fails)) in &added {
            match ends[id] {
                End::Finished => prop_assert!(!fails && log.contains(name)),
                End::Failed => prop_assert!(*fails && log.contains(name)),
                End::Abandoned => prop_assert!(stops),
            }
        }
    }
}
