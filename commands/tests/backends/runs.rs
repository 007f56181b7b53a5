//! Whole runs: job slots, hooks, and what progress tells.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use distlto_executor::cancel::Cancel;
use distlto_executor::run::{Hooks, Made, NoHooks, RunOptions, run};
use distlto_executor::schedule::Policy;
use distlto_executor::schedule::tokens::JobSlots;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_record::progress::recorded::Recorded;
use distlto_record::progress::{JsonProgress, Progress, Style, TextProgress};
use distlto_record::report::Failure;
use serde_json::Value;

use super::common::{Link, add_opt};

/// Counts what runs at once.
#[derive(Default)]
struct Count {
    running: Cell<usize>,
    most: Cell<usize>,
    finished: RefCell<Vec<ActionId>>,
}

impl Hooks for Count {
    fn started(&self, _: ActionId) {
        self.running.set(self.running.get() + 1);
        self.most.set(self.most.get().max(self.running.get()));
    }

    fn finished(&self, action: ActionId, made: &Made<'_>) {
        let measured = made.measured;
        assert!(measured.peak_memory.is_none_or(|bytes| bytes > 100_000), "{measured:?}");
        self.running.set(self.running.get() - 1);
        self.finished.borrow_mut().push(action);
    }

    fn failed(&self, _: ActionId, failure: &Failure) {
        panic!("{failure:?}");
    }
}

/// Six modules that take a while each.
pub fn six(link: &Link) -> (ActionGraph, Vec<ActionId>) {
    let compiler = link.compiler("sleep 0.1; exec clang-22 \"$@\"");
    let mut graph = ActionGraph::new();
    let mut ids = Vec::new();
    for n in 0..6 {
        let name = format!("m{n}.o");
        link.tool(&["clang-22", "-flto=thin", "-c", "b.c", "-o", &name]);
        link.thin_link(22, &[&name]);
        ids.push(add_opt(&mut graph, &compiler, &name));
    }
    (graph, ids)
}

#[test]
fn jobs_and_job_slots_bound_what_runs_at_once() {
    let link = Link::new(22);
    let (graph, wanted) = six(&link);
    let cancel = Cancel::new().unwrap();
    let slots = [0, 1].map(|free| {
        let pipe = link.path(&format!("slots{free}"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut file = fs::File::options().read(true).write(true).open(&pipe).unwrap();
        // A slot is for a job beyond the first.
        file.write_all(&vec![b'+'; free]).unwrap();
        (JobSlots::at(&pipe).unwrap(), file)
    });
    for (jobs, slots, most) in
        [(1, None, 1), (3, None, 3), (4, Some(&slots[0].0), 1), (4, Some(&slots[1].0), 2), (0, None, 1)]
    {
        let count = Count::default();
        let options = RunOptions { jobs, slots, ..link.options(&cancel) };
        let report = run(&graph, &wanted, &options, &count);
        assert!(report.is_success());
        assert_eq!(count.most.get(), most, "-j{jobs}");
        assert_eq!(count.finished.borrow().len(), 6);
    }
    let mut byte = [0];
    (&slots[1].1).read_exact(&mut byte).expect("the slot was given back");
    assert_eq!(&byte, b"+");
}

/// Notes what has no result.
#[derive(Default)]
struct Lost {
    failed: RefCell<Vec<ActionId>>,
    abandoned: RefCell<Vec<ActionId>>,
}

impl Hooks for Lost {
    fn failed(&self, action: ActionId, _: &Failure) {
        self.failed.borrow_mut().push(action);
    }

    fn abandoned(&self, action: ActionId) {
        self.abandoned.borrow_mut().push(action);
    }
}

#[test]
fn what_a_failure_keeps_from_starting_is_abandoned() {
    let link = Link::new(22);
    let compiler = link.compiler("case \"$*\" in *' a.o '*) exit 3;; *) exec clang-22 \"$@\";; esac");
    let (graph, wanted) = link.graph(&compiler, &["a.o", "b.o"]);
    let cancel = Cancel::new().unwrap();
    for (policy, abandoned) in [(Policy::StopAtFirstFailure, &wanted[1..]), (Policy::KeepGoing, &[])] {
        let lost = Lost::default();
        let report = run(&graph, &wanted, &RunOptions { jobs: 1, policy, ..link.options(&cancel) }, &lost);
        assert_eq!(*lost.failed.borrow(), wanted[..1]);
        assert_eq!(*lost.abandoned.borrow(), abandoned);
        assert_eq!(report.counts().not_started, abandoned.len());
    }
}

#[derive(Default, Clone)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One good and one bad module, with what a progress writes.
fn told(make: impl Fn(Shared) -> Box<dyn Progress>) -> String {
    let link = Link::new(22);
    let body = "case \"$*\" in *' a.o '*) echo 'error: why' >&2; exit 3;; *) printf 'warning: w' >&2; exec clang-22 \"$@\";; esac";
    let (graph, wanted) = link.graph(&link.compiler(body), &["a.o", "b.o"]);
    let cancel = Cancel::new().unwrap();
    let out = Shared::default();
    let progress = make(out.clone());
    let options = RunOptions {
        jobs: 1,
        policy: Policy::KeepGoing,
        progress: progress.as_ref(),
        ..link.options(&cancel)
    };
    run(&graph, &wanted, &options, &NoHooks);
    let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    text.replace(link.place.path().to_str().unwrap(), "PLACE")
}

#[test]
fn json_events() {
    let text = told(|out| Box::new(JsonProgress::new(out)));
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (memory, events): (Vec<_>, Vec<_>) = all.into_iter().partition(|event| event["event"] == "memory");
    assert!(memory.iter().all(|event| event["in_use"].is_u64()) && !memory.is_empty(), "{memory:?}");
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["plan", "start", "fail", "start", "finish", "summary"]);
    assert!(events.iter().all(|event| event["version"] == 1));
    assert_eq!((&events[0]["actions"], &events[0]["jobs"]), (&Value::from(2), &Value::from(1)));
    assert_eq!((&events[2]["label"], &events[2]["class"]), (&"a.o".into(), &"distlto::failed".into()));
    assert_eq!(events[2]["stderr"], "error: why\n");
    assert_eq!(events[4]["warnings"], "warning: w\n");
    assert_eq!((&events[5]["done"], &events[5]["failed"]), (&Value::from(1), &Value::from(1)));
}

#[test]
fn plain_lines_are_whole_and_few() {
    let text = told(|out| {
        let recorded = Recorded::new(Instant::now()).shared();
        Box::new(TextProgress::log(recorded, Style::default(), out))
    });
    let lines: Vec<_> = text.lines().collect();
    let expected = [
        "error: why",
        "error: a.o: the command failed with exit code 3: error: why",
        "  help: repeat the command to see the failure; no output was replaced",
        "  repeat: cd PLACE && PLACE/compiler -c -O2 -fPIC a.o -fthinlto-index=a.o.thinlto.bc -o out/a.o",
        "warning: w",
    ];
    assert_eq!(lines[..5], expected, "{text}");
    assert!(lines[5].starts_with("distlto: 1 done, 1 failed in ") && lines.len() == 6, "{text}");
}
