//! Progress on a terminal: one bar with what runs, the time since the start and an estimate of the time left.

use std::cell::RefCell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::plain::summary_text;
use super::{Plan, Progress, Step, again_text, failure_text, human, one_line, verb};
use crate::report::{Counts, Failure, Measured};

/// A bar on standard error. It moves by cost, so that the estimate knows large modules from small ones.
#[derive(Debug)]
pub struct TerminalProgress {
    bar: ProgressBar,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    total: usize,
    ended: usize,
    running: Vec<(usize, String)>,
}

impl TerminalProgress {
    /// A bar that appears with the first plan.
    pub fn new() -> Self {
        Self { bar: ProgressBar::hidden(), state: RefCell::default() }
    }

    fn update(&self, step: Step<'_>, ended: bool) {
        let mut state = self.state.borrow_mut();
        if ended {
            state.running.retain(|(id, _)| *id != step.id);
            state.ended += 1;
            self.bar.inc(step.cost);
        } else {
            let name = step.label.rsplit('/').next().unwrap_or(step.label);
            state.running.push((step.id, format!("{} {}", verb(step.kind), one_line(name))));
        }
        let names: Vec<_> = state.running.iter().map(|(_, name)| name.as_str()).collect();
        self.bar.set_prefix(format!("{}/{}", state.ended, state.total));
        self.bar.set_message(names.join(", "));
    }

    fn print(&self, text: &str) {
        if !text.is_empty() {
            self.bar.suspend(|| eprint!("{text}"));
        }
    }
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for TerminalProgress {
    fn plan(&self, plan: Plan) {
        *self.state.borrow_mut() = State { total: plan.actions, ..State::default() };
        self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        self.bar.set_length(plan.cost);
        self.bar.reset();
        let template = "{prefix} [{bar:24}] {elapsed} (about {eta} left) {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    fn start(&self, step: Step<'_>) {
        self.update(step, false);
    }

    fn finish(&self, step: Step<'_>, _: Measured, warnings: &str) {
        self.update(step, true);
        self.print(warnings);
    }

    fn again(&self, step: Step<'_>, cause: &str) {
        self.state.borrow_mut().running.retain(|(id, _)| *id != step.id);
        self.print(&again_text(cause));
    }

    fn fail(&self, step: Step<'_>, failure: &Failure) {
        self.update(step, true);
        self.print(&failure_text(failure));
    }

    fn summary(&self, counts: Counts, wall: Duration) {
        self.bar.finish_and_clear();
        if counts.failed + counts.skipped + counts.not_started > 0 {
            eprintln!("{} in {}", summary_text(counts), human(wall));
        }
    }
}
