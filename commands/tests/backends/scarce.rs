//! Runs on a system that lets only so many processes run: by a spawner that refuses one more as fork(2) does, and by compilers
//! that say so.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::{Child, Command, Ended, Spawner};
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::run::{NoHooks, RunOptions, run};
use distlto_prepare::exit;
use distlto_prepare::limits::SystemLimit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::common::{Link, is_done};
use super::runs::six;

/// Lets so many processes run at once.
struct Few {
    most: usize,
    refuses_with: Errno,
    running: Arc<AtomicUsize>,
    most_at_once: AtomicUsize,
}

impl Few {
    fn new(most: usize, refuses_with: Errno) -> Self {
        Self { most, refuses_with, running: Arc::default(), most_at_once: 0.into() }
    }
}

impl Spawner for Few {
    fn spawn(&self, command: &Command, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Box<dyn Child>> {
        let running = Running::one_of(&self.running);
        if running.number > self.most {
            return Err(SystemLimit::on_start(self.refuses_with.into()));
        }
        self.most_at_once.fetch_max(running.number, Ordering::SeqCst);
        Ok(Box::new(Counted { child: PLAIN.spawn(command, stdout, stderr)?, _running: running }))
    }
}

struct Running {
    number: usize,
    all: Arc<AtomicUsize>,
}

impl Running {
    fn one_of(all: &Arc<AtomicUsize>) -> Self {
        Self { number: all.fetch_add(1, Ordering::SeqCst) + 1, all: Arc::clone(all) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Counted {
    child: Box<dyn Child>,
    _running: Running,
}

impl Child for Counted {
    fn id(&self) -> Option<Pid> {
        self.child.id()
    }

    fn ended(&self) -> Option<BorrowedFd<'_>> {
        self.child.ended()
    }

    fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        self.child.try_wait()
    }

    fn signal_group(&self, signal: Signal) {
        self.child.signal_group(signal);
    }
}

#[test]
fn fewer_jobs_run_at_once_where_no_more_can_be_started() {
    let link = Link::new(22);
    let (graph, wanted) = six(&link);
    let cancel = Cancel::new().unwrap();
    for (most, refuses_with) in [(3, Errno::AGAIN), (2, Errno::NOMEM), (1, Errno::AGAIN), (1, Errno::MFILE)] {
        let few = Few::new(most, refuses_with);
        let options = RunOptions { jobs: 6, spawner: &few, ..link.options(&cancel) };
        let report = run(&graph, &wanted, &options, &NoHooks);
        assert!(is_done(&report), "{most}, {refuses_with:?}: {report:?}");
        assert!((1..=most).contains(&few.most_at_once.into_inner()), "{most}, {refuses_with:?}");
        assert!(link.temporaries().is_empty(), "{:?}", link.temporaries());
    }
}

#[test]
fn an_error_names_the_limit_where_not_even_one_can_be_started() {
    let link = Link::new(22);
    let (graph, wanted) = six(&link);
    let cancel = Cancel::new().unwrap();
    for (refuses_with, limit) in [(Errno::AGAIN, "RLIMIT_NPROC"), (Errno::MFILE, "RLIMIT_NOFILE")] {
        let few = Few::new(0, refuses_with);
        let options = RunOptions { jobs: 6, spawner: &few, ..link.options(&cancel) };
        let report = run(&graph, &wanted, &options, &NoHooks);
        assert_eq!(report.exit_code(), exit::LIMIT, "{report:?}");
        let (_, failure) = report.failures().next().unwrap();
        assert!(exit::text(&failure.cause).contains(limit), "{}", exit::text(&failure.cause));
    }
}

#[test]
fn a_compiler_that_cannot_start_its_own_processes_runs_again() {
    let link = Link::new(22);
    let once =
        "if mkdir once 2> /dev/null; then echo 'sh: 1: Cannot fork' >&2; exit 2; fi; exec clang-22 \"$@\"";
    let report = link.opt(&link.compiler(once));
    assert!(is_done(&report), "{report:?}");
    let always =
        "echo 'LLVM ERROR: pthread_create failed: Resource temporarily unavailable' >&2; kill -ABRT $$";
    let report = link.opt(&link.compiler(always));
    assert_eq!(report.exit_code(), exit::LIMIT, "{report:?}");
    let other = "echo 'fatal error: nothing that a limit is at fault for' >&2; exit 3";
    let report = link.opt(&link.compiler(other));
    assert_eq!(report.exit_code(), 1, "{report:?}");
}
