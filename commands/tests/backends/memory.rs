//! Real compilations within a budget of memory, and some that are killed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use distlto_executor::cancel::Cancel;
use distlto_executor::run::{NoHooks, RunOptions, run};
use distlto_executor::schedule::Policy;
use distlto_executor::schedule::history::History;
use distlto_executor::schedule::memory::Limit;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_record::progress::{Progress, ProgressEvent};
use distlto_record::report::{Measured, Outcome};
use distlto_record::run::MemoryUse;

use super::common::{Link, add_opt, cause, is_done};

/// What a run said of memory, and which actions started or started again.
#[derive(Default)]
struct ActionRecords {
    memory: RefCell<Vec<MemoryUse>>,
    running: RefCell<Vec<usize>>,
    most: RefCell<usize>,
    again: RefCell<Vec<(String, String, usize)>>,
}

impl Progress for ActionRecords {
    fn report(&self, event: ProgressEvent<'_>) {
        let mut running = self.running.borrow_mut();
        match event {
            ProgressEvent::Started(step) => {
                running.push(step.id);
                let mut most = self.most.borrow_mut();
                *most = running.len().max(*most);
            }
            ProgressEvent::Finished(step, ..) | ProgressEvent::Failed(step, _) => {
                running.retain(|&id| id != step.id);
            }
            ProgressEvent::Again(step, cause) => {
                running.retain(|&id| id != step.id);
                self.again.borrow_mut().push((step.label.to_owned(), cause.to_owned(), running.len()));
            }
            ProgressEvent::Memory(memory) => self.memory.borrow_mut().push(memory),
            _ => {}
        }
    }
}

/// Modules of different sizes, with costs as a thin link would give them.
fn modules(link: &Link, compiler: &str, count: usize) -> (ActionGraph, Vec<ActionId>) {
    let mut graph = ActionGraph::new();
    let mut ids = Vec::new();
    for at in 0..count {
        let name = format!("m{at}.o");
        let body: String = (0..(at + 1) * 40).map(|n| format!("int f{at}_{n}(int x, int *p) {{ for (int i = 0; i < x; ++i) p[i] = p[i] * {n} + x; return *p; }}\n")).collect();
        link.write("m.c", body);
        link.tool(&["clang-22", "-O2", "-flto=thin", "-c", "m.c", "-o", &name]);
        link.thin_link(22, &[&name]);
        let id = add_opt(&mut graph, compiler, &name);
        graph.set_cost(id, 40 * 20 * (at as u64 + 1));
        ids.push(id);
    }
    (graph, ids)
}

/// The resident memory of all processes below this one that run a compiler from `place`, in bytes.
fn resident(place: &str) -> u64 {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let ours = processes.filter(|process| {
        fs::read(process.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(place))
    });
    let kilobytes = ours.filter_map(|process| {
        let status = fs::read_to_string(process.join("status")).ok()?;
        status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    kilobytes.sum::<u64>() << 10
}

#[test]
fn a_budget_of_two_jobs_is_never_exceeded_by_estimate_nor_by_what_is_resident() {
    let link = Link::new(22);
    let place = link.place.path().to_str().unwrap().to_owned();
    // The directory is in the command line of every compiler, so that they can be found and added up.
    let compiler = link.compiler(&format!("exec clang-22 -I{place} \"$@\""));
    let (graph, wanted) = modules(&link, &compiler, 10);
    let cancel = Cancel::new().unwrap();
    let history = link.path("history");

    let alone = RunOptions { jobs: 1, history: Some(&history), ..link.options(&cancel) };
    let report = run(&graph, &wanted, &alone, &NoHooks);
    assert!(is_done(&report), "{report:?}");
    let peak = |(_, outcome): &(ActionId, Outcome)| match outcome {
        Outcome::Done(measured) => measured.peak_memory.unwrap(),
        other => panic!("{other:?}"),
    };
    let largest = report.outcomes.iter().map(peak).max().unwrap();
    let budget = 2 * largest;

    for (jobs, with_history) in [(8, true), (8, false)] {
        let told = ActionRecords::default();
        let over = AtomicBool::new(false);
        let (report, most_resident) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut most = 0;
                while !over.load(Ordering::Relaxed) {
                    most = most.max(resident(&place));
                    std::thread::sleep(Duration::from_millis(2));
                }
                most
            });
            let options = RunOptions {
                jobs,
                memory: Limit::Bytes(budget),
                history: with_history.then_some(history.as_path()),
                progress: &told,
                ..link.options(&cancel)
            };
            let report = run(&graph, &wanted, &options, &NoHooks);
            over.store(true, Ordering::Relaxed);
            (report, watch.join().unwrap())
        });
        assert!(is_done(&report), "{report:?}");
        let most_estimated = told.memory.borrow().iter().map(|memory| memory.in_use).max().unwrap();
        println!(
            "history: {with_history}; MiB: budget {}, estimated {}, resident {}; jobs at once: {}",
            budget >> 20,
            most_estimated >> 20,
            most_resident >> 20,
            told.most.borrow()
        );
        assert!(told.memory.borrow().iter().all(|memory| memory.budget == Some(budget)));
        assert!(most_estimated <= budget);
        assert!(most_resident > largest / 2, "the compilers were not seen");
        // The same compilation takes a little more or less each time.
        assert!(most_resident <= budget + budget / 10, "{most_resident} of {budget}");
        // Without history the first estimates are above what such small modules take.
        assert!(*told.most.borrow() <= 2 && (!with_history || *told.most.borrow() == 2));
    }
}

/// A compiler that is killed as the system does when memory runs out: the first `times` times that it compiles `module`.
fn killed(link: &Link, module: &str, times: usize) -> String {
    link.compiler(&format!(
        "case \"$*\" in *' {module} '*) n=$(cat {0}/n 2>/dev/null || echo 0); echo $((n + 1)) > {0}/n; \
         [ $n -lt {times} ] && kill -KILL $$;; esac; sleep 0.2; exec clang-22 \"$@\"",
        link.place.path().display()
    ))
}

#[test]
fn a_compiler_that_was_killed_runs_again_alone() {
    let link = Link::new(22);
    let compiler = killed(&link, "m2.o", 1);
    let (graph, wanted) = modules(&link, &compiler, 4);
    let cancel = Cancel::new().unwrap();
    let told = ActionRecords::default();
    let options = RunOptions { jobs: 4, progress: &told, ..link.options(&cancel) };
    let report = run(&graph, &wanted, &options, &NoHooks);
    assert!(is_done(&report), "{report:?}");
    let again = told.again.borrow();
    let [(label, cause, _)] = &again[..] else { panic!("{again:?}") };
    assert_eq!(label, "m2.o");
    assert!(cause.contains("SIGKILL"), "{cause}");
    assert_eq!(String::from_utf8(link.read("n")).unwrap(), "2\n");
    assert!(!link.read("out/m2.o").is_empty());
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_compiler_that_is_killed_alone_too_has_failed() {
    for body in
        [None, Some("kill -KILL $$ & wait; exit 137"), Some("echo 'LLVM ERROR: out of memory' >&2; exit 1")]
    {
        let link = Link::new(22);
        let compiler = match body {
            None => killed(&link, "a.o", 9),
            Some(body) => {
                link.compiler(&format!("case \"$*\" in *' a.o '*) {body};; esac; exec clang-22 \"$@\""))
            }
        };
        let (graph, wanted) = link.graph(&compiler, &["a.o", "b.o"]);
        let cancel = Cancel::new().unwrap();
        let told = ActionRecords::default();
        let options = RunOptions { policy: Policy::KeepGoing, progress: &told, ..link.options(&cancel) };
        let report = run(&graph, &wanted, &options, &NoHooks);
        let counts = report.counts();
        assert_eq!((counts.done, counts.failed), (1, 1), "{report:?}");
        let text = cause(&report);
        assert!(text.contains("the second time with no other job running"), "{text}");
        assert_eq!(report.exit_code(), 1);
        assert_eq!(told.again.borrow().len(), 1);
    }
}

#[test]
fn what_a_run_measures_is_the_next_runs_estimate() {
    let link = Link::new(22);
    let (graph, wanted) = modules(&link, "clang-22", 3);
    let cancel = Cancel::new().unwrap();
    let history = link.path("state/history");
    let options = RunOptions { history: Some(&history), ..link.options(&cancel) };
    let report = run(&graph, &wanted, &options, &NoHooks);
    assert!(is_done(&report), "{report:?}");
    let text = String::from_utf8(link.read("state/history")).unwrap();
    assert!(text.starts_with("distlto history 2\n") && text.lines().count() == 4, "{text}");
    let measured: BTreeMap<_, _> = report
        .outcomes
        .iter()
        .map(|(id, outcome)| match outcome {
            Outcome::Done(measured) => (*id, measured.peak_memory.unwrap()),
            other => panic!("{other:?}"),
        })
        .collect();

    let told = ActionRecords::default();
    let options = RunOptions { history: Some(&history), jobs: 1, progress: &told, ..link.options(&cancel) };
    assert!(is_done(&run(&graph, &wanted, &options, &NoHooks)));
    let mut said: Vec<_> =
        told.memory.borrow().iter().map(|memory| memory.in_use).filter(|&bytes| bytes > 0).collect();
    said.sort_unstable();
    let mut expected: Vec<_> = measured.values().copied().collect();
    expected.sort_unstable();
    assert_eq!(said, expected);
    assert!(History::load(Some(&link.path("nothing"))).save().is_ok());

    // A history that cannot be read or written costs estimates only.
    for content in [
        &b""[..],
        b"distlto history 1\n",
        b"\xff\xfe\n[1,2\n",
        b"distlto history 2\n[0,0,0,0,0,null,\"m0.o\"]\n[9",
    ] {
        link.write("state/history", content);
        let report =
            run(&graph, &wanted, &RunOptions { history: Some(&history), ..link.options(&cancel) }, &NoHooks);
        assert!(is_done(&report), "{report:?}");
        assert!(link.read("state/history").starts_with(b"distlto history 2\n"));
    }
}

#[test]
fn many_runs_may_write_one_history() {
    let link = Link::new(22);
    let history = link.path("history");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let history = &history;
            scope.spawn(move || {
                for n in 0..5 {
                    let mut one = History::load(Some(history));
                    let measured = Measured { wall: Duration::from_millis(5), ..Measured::default() };
                    one.add(7, &format!("{thread}.{n}.o"), 1, measured);
                    one.save().unwrap();
                }
            });
        }
    });
    assert_eq!(History::load(Some(&history)).of_kind(7).count(), 40);
}
