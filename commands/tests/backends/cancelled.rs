//! Cancelled and killed runs: no process of a job's group is left, no temporary either, and it does not take long.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use distlto_executor::cancel::Cancel;
use distlto_executor::run::{NoHooks, RunOptions, run};
use distlto_prepare::leftovers::sweep;
use distlto_record::report::Outcome;

use super::common::Link;

/// Waits until a file has this many lines.
fn lines(path: &Path, count: usize) -> Vec<String> {
    let start = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{} has {text:?}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; a zombie does not.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|text| text.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

#[track_caller]
fn all_end(pids: &[String]) {
    let start = Instant::now();
    while pids.iter().any(|pid| runs(pid)) {
        assert!(start.elapsed() < Duration::from_secs(30), "some of {pids:?} still run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A compiler that hangs, with a child that hangs. Both write their process ids into `pids`.
fn hanging(link: &Link, first: &str) -> String {
    let pids = link.path("pids");
    let pids = pids.to_str().unwrap();
    link.compiler(&format!(
        ": > \"${{out:-/dev/null}}\"; {first}; sleep 1000 & echo $! >> {pids}; echo $$ >> {pids}; wait; sleep 1000"
    ))
}

#[track_caller]
fn cancelled(first: &str, grace: Duration, presses: u32, at_most: Duration) {
    let link = Link::new(22);
    let compiler = hanging(&link, first);
    let (graph, wanted) = link.graph(&compiler, &["a.o", "b.o"]);
    let cancel = Cancel::new().unwrap();
    let options = RunOptions { grace, ..link.options(&cancel) };
    let pids = link.path("pids");
    let (report, pids, took) = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let pids = lines(&pids, 4);
            let start = Instant::now();
            (0..presses).for_each(|_| cancel.cancel(Some(2)));
            (pids, start)
        });
        let report = run(&graph, &wanted, &options, &NoHooks);
        let (pids, start) = waiter.join().unwrap();
        (report, pids, start.elapsed())
    });
    all_end(&pids);
    assert!(took < at_most, "took {took:?}");
    assert_eq!(report.exit_code(), 130);
    assert_eq!(report.failures().count(), 0, "an interrupted action is no failure");
    assert!(report.outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Failed(_))));
    assert!(!link.path("out/a.o").exists());
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_hanging_compiler_ends_when_asked() {
    cancelled(":", Duration::from_secs(60), 1, Duration::from_secs(5));
}

#[test]
fn a_compiler_that_ignores_sigterm_is_killed_after_the_grace_period() {
    cancelled("trap '' TERM", Duration::from_millis(200), 1, Duration::from_secs(5));
}

#[test]
fn a_second_signal_kills_at_once() {
    cancelled("trap '' TERM", Duration::from_secs(60), 2, Duration::from_secs(5));
}

/// Starts `distlto-opt` with a hanging compiler, which `exec`s when there is to be one process.
fn start_opt(link: &Link, compiler: &str) -> std::process::Child {
    Command::new(env!("CARGO_BIN_EXE_distlto-opt"))
        .args(["--out", "out/a.o", "--input", "a.o", "--index", "a.o.thinlto.bc", "--", compiler])
        .current_dir(link.place.path())
        .spawn()
        .unwrap()
}

#[test]
fn a_signal_to_the_program_ends_its_compiler_and_names_the_exit_code() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let link = Link::new(22);
        let mut child = start_opt(&link, &hanging(&link, ":"));
        let pids = lines(&link.path("pids"), 2);
        link.tool(&["kill", &format!("-{signal}"), &child.id().to_string()]);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        all_end(&pids);
        assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_compiler_dies_with_a_program_that_is_killed() {
    let link = Link::new(22);
    let pids = link.path("pids");
    let compiler = link.compiler(&format!("echo $$ >> {}; exec sleep 1000", pids.display()));
    let mut child = start_opt(&link, &compiler);
    let pids = lines(&pids, 1);
    assert!(runs(&pids[0]));
    child.kill().unwrap();
    child.wait().unwrap();
    all_end(&pids);
    // What a killed run leaves is swept by the next one.
    assert_eq!(link.temporaries().len(), 1);
    assert_eq!(sweep(&link.path("out")).unwrap(), 1);
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_run_that_is_cancelled_beforehand_starts_nothing() {
    let link = Link::new(22);
    let (graph, wanted) = link.graph(&hanging(&link, ":"), &["a.o", "b.o"]);
    let cancel = Cancel::new().unwrap();
    cancel.cancel(Some(15));
    let report = run(&graph, &wanted, &link.options(&cancel), &NoHooks);
    assert_eq!((report.counts().not_started, report.exit_code()), (2, 143));
    assert!(!link.path("pids").exists() && !link.path("out").exists());
}

#[test]
fn a_driver_that_is_asked_for_flags_ends_too() {
    let link = Link::new(22);
    link.write("flags", "-O2");
    let compiler = hanging(&link, ":");
    let mut child = Command::new(env!("CARGO_BIN_EXE_distlto-opt"))
        .args(["--out", "o.o", "--input", "a.o", "--index", "a.o.thinlto.bc", "--args", "flags", "--"])
        .arg(&compiler)
        .current_dir(link.place.path())
        .spawn()
        .unwrap();
    let pids = lines(&link.path("pids"), 2);
    link.tool(&["kill", &child.id().to_string()]);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    all_end(&pids);
}
