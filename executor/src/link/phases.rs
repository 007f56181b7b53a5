//! When the parts of a link ran that are no backends: told to the progress, for people and for traces.
//!
//! The thin link runs in the midst of planning, which knows no time, so it is seen by the runner that planning is handed.
//! Knows nothing of what the parts do.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::words::Word;

use crate::progress::{Phase, Progress};

/// Runs the tools of planning as another runner does.
pub struct Timed<'a> {
    runner: &'a dyn Runner,
    started: Instant,
    thin_link: Mutex<Option<(Instant, Instant)>>,
}

impl<'a> Timed<'a> {
    /// Planning begins.
    pub fn new(runner: &'a dyn Runner) -> Self {
        Self { runner, started: Instant::now(), thin_link: Mutex::new(None) }
    }

    /// Planning has ended: tells what came before the thin link, the thin link, and what came after.
    pub fn tell(&self, progress: &dyn Progress) {
        let Some((start, end)) = *self.thin_link.lock().unwrap_or_else(PoisonError::into_inner) else {
            return;
        };
        for (name, start, end) in
            [("prepare", self.started, start), ("thin link", start, end), ("plan", end, Instant::now())]
        {
            progress.phase(Phase { name, start, end: Some(end) });
        }
    }
}

impl Runner for Timed<'_> {
    fn run(&self, command: &[Word]) -> io::Result<ToolOutput> {
        let start = Instant::now();
        let output = self.runner.run(command);
        if command.iter().any(|word| word.starts_with(b"--thinlto-index-only")) {
            *self.thin_link.lock().unwrap_or_else(PoisonError::into_inner) = Some((start, Instant::now()));
        }
        output
    }
}

/// Runs a part of the link that lasts, and tells when it did.
pub fn during<T>(name: &'static str, progress: &dyn Progress, part: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    progress.phase(Phase { name, start, end: None });
    let result = part();
    progress.phase(Phase { name, start, end: Some(Instant::now()) });
    result
}
