//! Progress as lines, for logs and pipes: failures and warnings always, each action only if verbose.

use std::cell::{Cell, RefCell};
use std::io::Write;

use super::{
    Progress, ProgressEvent, ProgressStep, Style, again_text, failure_text, put, retried_text,
    text::{human, printable},
    verb,
};
use crate::report::{Counts, Measured, Origin};

/// Writes lines.
#[derive(Debug)]
pub struct PlainProgress<W> {
    out: RefCell<W>,
    verbose: bool,
    commands: bool,
    total: Cell<usize>,
    ended: Cell<usize>,
}

impl<W: Write> PlainProgress<W> {
    /// Lines go to `out`.
    pub fn new(out: W, style: Style) -> Self {
        let (verbose, commands) = (style.verbose && !style.quiet, style.commands && !style.quiet);
        Self { out: RefCell::new(out), verbose, commands, total: Cell::new(0), ended: Cell::new(0) }
    }

    fn put(&self, text: &str) {
        put(&mut *self.out.borrow_mut(), text);
    }

    fn finished(&self, step: ProgressStep<'_>, measured: Measured, warnings: &str) {
        self.ended.set(self.ended.get() + 1);
        let mut text = warnings.to_owned();
        if self.verbose {
            let (ended, total) = (self.ended.get(), self.total.get());
            let line = format!("[{ended}/{total}] {} {}", verb(step.kind), printable(step.label));
            let took = match measured.origin {
                Origin::Ran => human(measured.wall),
                Origin::Cache => "from the cache".to_owned(),
                Origin::UpToDate => "up to date".to_owned(),
                Origin::SameImports => "kept: what it imports is the same".to_owned(),
            };
            text.push_str(&format!("{line} ({took})\n"));
        }
        self.put(&text);
    }
}

impl<W: Write> Progress for PlainProgress<W> {
    fn report(&self, event: ProgressEvent<'_>) {
        match event {
            ProgressEvent::Planned(plan) => {
                self.total.set(plan.actions);
                self.ended.set(0);
            }
            ProgressEvent::Grown(plan) => self.total.set(plan.actions),
            ProgressEvent::Started(step) if self.commands => self.put(&format!("+ {}\n", step.command)),
            ProgressEvent::Finished(step, measured, warnings) => self.finished(step, measured, warnings),
            ProgressEvent::Failed(_, failure) => {
                self.ended.set(self.ended.get() + 1);
                self.put(&failure_text(failure));
            }
            ProgressEvent::Again(_, cause) => self.put(&again_text(cause)),
            ProgressEvent::Printed(lines) => self.put(lines),
            ProgressEvent::Retried(text) => self.put(&retried_text(text)),
            ProgressEvent::Ended(counts, wall) if self.verbose || counts.unfinished() > 0 => {
                self.put(&format!("distlto: {} in {}\n", summary_text(counts), human(wall)));
            }
            _ => {}
        }
    }
}

/// `3 done, 1 failed, 2 not started`.
pub(super) fn summary_text(counts: Counts) -> String {
    let parts = [
        (counts.done, "done"),
        (counts.failed, "failed"),
        (counts.interrupted, "interrupted"),
        (counts.skipped, "skipped"),
        (counts.not_started, "not started"),
    ];
    let told = parts.iter().filter(|(count, word)| *count > 0 || *word == "done");
    told.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use distlto_planner::graph::ActionKind;

    use super::*;
    use crate::progress::Plan;

    #[test]
    fn a_line_has_the_total_of_its_moment() {
        let mut out = Vec::new();
        let style = Style { verbose: true, ..Style::default() };
        let progress = PlainProgress::new(&mut out, style);
        let plan = Plan { actions: 1, cost: 1, jobs: 1 };
        let finish = |id| {
            let step = ProgressStep { id, kind: ActionKind::Opt, label: "m", cost: 1, lane: 0, command: "" };
            progress.report(ProgressEvent::Finished(step, Measured::default(), ""));
        };
        progress.report(ProgressEvent::Planned(plan));
        finish(0);
        progress.report(ProgressEvent::Grown(Plan { actions: 7, ..plan }));
        finish(1);
        assert_eq!(String::from_utf8_lossy(&out), "[1/1] opt m (0 ms)\n[2/7] opt m (0 ms)\n");
    }
}
