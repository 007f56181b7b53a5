//! Progress on a terminal: one line that is drawn again and again, and failures above it.
//!
//! `line` makes the text; indicatif draws it. The width is asked for at each drawing, so a window may be resized. No
//! colours, so there is nothing for NO_COLOR to turn off.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use distlto_prepare::message::{say, show};
use distlto_prepare::mutex::lock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::plain::summary_text;
use super::recorded::SharedRecord;
use super::ticker::Ticker;
use super::{Phase, Progress, ProgressEvent, again_text, failure_text, line, retried_text, text::human};

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(125);

/// A line on standard error that shows a shared record.
#[derive(Debug)]
pub struct TerminalProgress {
    bar: ProgressBar,
    /// Draws, while the line is shown.
    ticker: Mutex<Option<Ticker>>,
}

impl TerminalProgress {
    /// A line that appears with the first plan or phase.
    pub fn new(recorded: SharedRecord) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let draw = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            // One column stays free: some terminals break the line when the last one is written to.
            let columns = columns().saturating_sub(1);
            let _ = out.write_str(&line::of_terminal(&lock(&recorded), Instant::now(), columns));
        };
        if let Ok(style) = ProgressStyle::with_template("{line}") {
            bar.set_style(style.with_key("line", draw));
        }
        Self { bar, ticker: Mutex::default() }
    }

    fn show(&self) {
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.reset();
        self.bar.tick();
        let bar = self.bar.clone();
        // Not indicatif's own, which panics where the system has no thread for it.
        lock(&self.ticker).get_or_insert_with(|| Ticker::every(TICK, move || bar.tick()));
    }

    fn hide(&self) {
        drop(lock(&self.ticker).take());
        self.bar.finish_and_clear();
    }

    fn print(&self, text: &str) {
        if !text.is_empty() {
            self.bar.suspend(|| show(text.as_bytes()));
        }
    }
}

/// The width of the terminal that standard error is.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(80, |size| if size.ws_col == 0 { 80 } else { size.ws_col.into() })
}

impl Progress for TerminalProgress {
    fn report(&self, event: ProgressEvent<'_>) {
        match event {
            ProgressEvent::Planned(_) | ProgressEvent::Phase(Phase { end: None, .. }) => self.show(),
            ProgressEvent::Phase(Phase { end: Some(_), .. }) => self.hide(),
            ProgressEvent::Finished(_, _, text) | ProgressEvent::Printed(text) => self.print(text),
            ProgressEvent::Failed(_, failure) => self.print(&failure_text(failure)),
            ProgressEvent::Again(_, cause) => self.print(&again_text(cause)),
            ProgressEvent::Retried(text) => self.print(&retried_text(text)),
            ProgressEvent::Ended(counts, wall) => {
                self.hide();
                if counts.unfinished() > 0 {
                    say(format_args!("{} in {}", summary_text(counts), human(wall)));
                }
            }
            _ => {}
        }
    }
}
