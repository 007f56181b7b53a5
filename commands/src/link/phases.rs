//! When the steps of a link were that are not backends: told as the linker is started.
//!
//! Only what a tool does is shown while it lasts; planning itself prints warnings, which a line that is drawn again would
//! get into. Knows the thin link by its option.

use std::io;
use std::sync::Mutex;
use std::time::Instant;

use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::words::Word;
use distlto_prepare::limits::Lack;
use distlto_prepare::mutex::lock;

use distlto_record::progress::Reporter;

/// Runs the tools of planning, and tells of the thin link and of what is before and after it.
pub(super) struct PlanningPhases<'a> {
    reporter: &'a Reporter,
    runner: &'a dyn Runner,
    begun: Instant,
    /// When the thin link ended.
    linked: Mutex<Option<Instant>>,
}

impl<'a> PlanningPhases<'a> {
    /// Planning begins.
    pub(super) fn new(reporter: &'a Reporter, runner: &'a dyn Runner) -> Self {
        Self { reporter, runner, begun: Instant::now(), linked: Mutex::default() }
    }

    /// Planning has ended.
    pub(super) fn planned(&self) {
        if let Some(linked) = *lock(&self.linked) {
            self.reporter.had_phase("plan", linked);
        }
    }
}

impl Runner for PlanningPhases<'_> {
    fn run(&self, command: &[Word]) -> io::Result<ToolOutput> {
        let option = b"thinlto-index-only";
        if !command.iter().any(|word| word.windows(option.len()).any(|part| part == option)) {
            return self.runner.run(command);
        }
        self.reporter.had_phase("prepare", self.begun);
        let result = self.reporter.during("thin link", || link(self.runner, command));
        *lock(&self.linked) = Some(Instant::now());
        result
    }
}

/// Runs the final link, and tells of it.
pub(super) struct FinalLink<'a> {
    reporter: &'a Reporter,
    runner: &'a dyn Runner,
}

impl<'a> FinalLink<'a> {
    /// With this runner.
    pub(super) fn new(reporter: &'a Reporter, runner: &'a dyn Runner) -> Self {
        Self { reporter, runner }
    }
}

impl Runner for FinalLink<'_> {
    fn run(&self, command: &[Word]) -> io::Result<ToolOutput> {
        self.reporter.during("final link", || link(self.runner, command))
    }
}

/// Runs a linker, with a thread less for everything where the system has no more of them. It writes the same.
fn link(runner: &dyn Runner, command: &[Word]) -> io::Result<ToolOutput> {
    match runner.run(command) {
        Err(error) if Lack::of_io(&error).is_some() => {
            let fewer = ["--threads=1", "--thinlto-jobs=1"].map(|word| word.as_bytes().to_vec());
            runner.run(&[command, &fewer].concat())
        }
        result => result,
    }
}
