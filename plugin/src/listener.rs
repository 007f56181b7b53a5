//! Listens to a run for the linker: warnings are gathered, and on request lines go to standard error and events to a file.
//!
//! Failures are not printed here: the linker is told of them when the run has ended. Knows nothing of callbacks.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use distlto_prepare::io_error::IoError;
use distlto_record::progress::{JsonProgress, PlainProgress, Plan, Progress, ProgressStep};
use distlto_record::report::{Counts, Failure, Measured};
use serde_json::json;

use crate::options::PluginOptions;

/// Calls that have a log, so that its events can be told from those of another call.
static CALLS: AtomicUsize = AtomicUsize::new(1);

/// The progress of one call.
pub struct Listener {
    lines: Option<PlainProgress<io::Stderr>>,
    events: Option<JsonProgress<File>>,
    /// What compilers of good modules have printed and which were tried again, with the module.
    pub warnings: RefCell<Vec<String>>,
}

impl Listener {
    /// Opens the log. Several calls may append to one file: each event is one write.
    pub fn new(options: &PluginOptions) -> Result<Self, IoError> {
        let open = |path| {
            let opened = File::options().append(true).create(true).open(path);
            let call = CALLS.fetch_add(1, Ordering::Relaxed);
            let run = json!({ "program": "DTLTO plugin", "process": std::process::id(), "call": call });
            opened.map(|file| JsonProgress::log(file, run)).map_err(IoError::on("open the log", path))
        };
        Ok(Self {
            lines: options.verbose.then(|| PlainProgress::new(io::stderr(), true)),
            events: options.log.as_ref().map(open).transpose()?,
            warnings: RefCell::default(),
        })
    }

    fn each(&self) -> impl Iterator<Item = &dyn Progress> {
        let lines = self.lines.as_ref().map(|lines| lines as &dyn Progress);
        lines.into_iter().chain(self.events.as_ref().map(|events| events as &dyn Progress))
    }
}

impl Progress for Listener {
    fn plan(&self, plan: Plan) {
        self.each().for_each(|one| one.plan(plan));
    }

    fn start(&self, step: ProgressStep<'_>) {
        self.each().for_each(|one| one.start(step));
    }

    fn finish(&self, step: ProgressStep<'_>, measured: Measured, warnings: &str) {
        if !warnings.trim().is_empty() {
            self.warnings.borrow_mut().push(format!("distlto: {}: {}", step.label, warnings.trim_end()));
        }
        if let Some(lines) = &self.lines {
            lines.finish(step, measured, "");
        }
        if let Some(events) = &self.events {
            events.finish(step, measured, warnings);
        }
    }

    fn fail(&self, step: ProgressStep<'_>, failure: &Failure) {
        if let Some(events) = &self.events {
            events.fail(step, failure);
        }
    }

    fn again(&self, step: ProgressStep<'_>, cause: &str) {
        let text = format!("distlto: {cause}; it was tried again with no other job running");
        self.warnings.borrow_mut().push(text);
        if let Some(events) = &self.events {
            events.again(step, cause);
        }
    }

    fn retried(&self, text: &str) {
        self.warnings.borrow_mut().push(format!("distlto: {text}"));
        if let Some(events) = &self.events {
            events.retried(text);
        }
    }

    fn summary(&self, counts: Counts, wall: Duration) {
        self.each().for_each(|one| one.summary(counts, wall));
    }
}
