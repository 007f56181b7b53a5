//! Progress for people: failures and warnings as they come, and between them how the run stands.
//!
//! On a terminal that is one line, which indicatif draws again and again. A log gets a line now and then, since one action
//! may take minutes. `line` makes both texts from the record, which alone counts.

use std::fmt::Debug;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use distlto_prepare::mutex::lock;
use distlto_prepare::{exit, threads};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::Profile;
use super::event::{Phase, Progress, ProgressEvent, ProgressStep, Style, put, verb};
use super::line;
use super::recorded::SharedRecord;
use super::text::{human, printable, whole_lines};
use crate::report::{Counts, Failure, Measured, Origin};

/// How often the line of a terminal is drawn.
const FRAME: Duration = Duration::from_millis(125);

/// Texts for people about a shared record.
#[derive(Debug)]
pub struct TextProgress {
    recorded: SharedRecord,
    style: Style,
    out: Output,
    /// Tells how the run stands.
    ticker: Mutex<Option<Ticker>>,
}

/// Where the texts go.
enum Output {
    /// Above a line on standard error.
    Terminal(ProgressBar),
    /// To a log.
    Log(SharedOutput),
}

type SharedOutput = Arc<Mutex<dyn Write + Send>>;

impl Debug for Output {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Terminal(_) => "Terminal",
            Self::Log(_) => "Log",
        })
    }
}

impl TextProgress {
    fn new(recorded: SharedRecord, style: Style, out: Output) -> Self {
        Self { recorded, style, out, ticker: Mutex::default() }
    }

    /// A line that appears with the first plan or phase. The terminal's width is asked for at each drawing, so a window may
    /// be resized. No colours, so there is nothing for NO_COLOR to turn off.
    pub fn terminal(recorded: SharedRecord) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let shown = recorded.clone();
        let draw = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            // One column stays free: some terminals break the line when the last one is written to.
            let columns = columns().saturating_sub(1);
            let _ = out.write_str(&line::of_terminal(&lock(&shown), Instant::now(), columns));
        };
        if let Ok(style) = ProgressStyle::with_template("{line}") {
            bar.set_style(style.with_key("line", draw));
        }
        Self::new(recorded, Style::default(), Output::Terminal(bar))
    }

    /// Lines in `out`: failures and warnings always, each action only if that is the style.
    pub fn log(recorded: SharedRecord, style: Style, out: impl Write + Send + 'static) -> Self {
        Self::new(recorded, style, Output::Log(Arc::new(Mutex::new(out))))
    }

    /// Tells a log how the run stands, each time that so long has passed. The lines begin with the program's name, and
    /// with that of the output for one link of several.
    #[must_use]
    pub fn every(self, period: Duration, Profile { program, is_of_build, .. }: Profile) -> Self {
        if let Output::Log(out) = &self.out {
            let (recorded, out) = (self.recorded.clone(), out.clone());
            // The build tool's own line of progress.
            let clear = if is_of_build && io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
            let tell = move || {
                let recorded = lock(&recorded);
                let output = recorded.run.output.as_deref().filter(|_| is_of_build);
                let output = output.map_or_else(String::new, |output| format!("{}: ", printable(output)));
                if let Some(text) = line::of_log(&recorded, Instant::now()) {
                    put(&mut *lock(&out), &format!("{clear}{program}: {output}{text}\n"));
                }
            };
            *lock(&self.ticker) = Some(Ticker::new(period, tell));
        }
        self
    }

    fn show(&self) {
        if let Output::Terminal(bar) = &self.out {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.reset();
            bar.tick();
            let bar = bar.clone();
            // Not indicatif's own, which panics where the system has no thread for it.
            lock(&self.ticker).get_or_insert_with(|| Ticker::new(FRAME, move || bar.tick()));
        }
    }

    fn hide(&self) {
        if let Output::Terminal(bar) = &self.out {
            drop(lock(&self.ticker).take());
            bar.finish_and_clear();
        }
    }

    fn print(&self, text: &str) {
        match &self.out {
            _ if text.is_empty() => {}
            Output::Terminal(bar) => bar.suspend(|| put(&mut io::stderr(), text)),
            Output::Log(out) => put(&mut *lock(out), text),
        }
    }

    fn finished(&self, step: ProgressStep<'_>, measured: Measured, warnings: &str) {
        let mut text = warnings.to_owned();
        if self.style.verbose && !self.style.quiet {
            let (ended, total) = {
                let recorded = lock(&self.recorded);
                (recorded.tally.ended, recorded.plan.map_or(0, |(plan, _)| plan.actions))
            };
            let took = match measured.origin {
                Origin::Ran => human(measured.wall),
                Origin::Cache => "from the cache".to_owned(),
                Origin::UpToDate => "up to date".to_owned(),
                Origin::SameImports => "kept: what it imports is the same".to_owned(),
            };
            let (verb, label) = (verb(step.kind), printable(step.label));
            text.push_str(&format!("[{ended}/{total}] {verb} {label} ({took})\n"));
        }
        self.print(&text);
    }
}

impl Progress for TextProgress {
    fn report(&self, event: ProgressEvent<'_>) {
        let Style { verbose, commands, quiet, .. } = self.style;
        match event {
            ProgressEvent::Planned(_) | ProgressEvent::Phase(Phase { end: None, .. }) => self.show(),
            ProgressEvent::Phase(Phase { end: Some(_), .. }) => self.hide(),
            ProgressEvent::Started(step) if commands && !quiet => {
                self.print(&format!("+ {}\n", step.command))
            }
            ProgressEvent::Finished(step, measured, warnings) => self.finished(step, measured, warnings),
            ProgressEvent::Failed(_, failure) => self.print(&failure_text(failure)),
            ProgressEvent::Again(_, cause) => {
                let cause = printable(cause);
                self.print(&format!("note: {cause}; it is tried again with no other job running\n"));
            }
            ProgressEvent::Printed(lines) => self.print(lines),
            ProgressEvent::Retried(text) => self.print(&format!("distlto: warning: {}\n", printable(text))),
            ProgressEvent::Ended(counts, wall) => {
                self.hide();
                if verbose && !quiet || counts.unfinished() > 0 {
                    self.print(&format!("distlto: {} in {}\n", summary_text(counts), human(wall)));
                }
            }
            _ => {}
        }
    }
}

/// The width of the terminal that standard error is.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.map_or(80, |size| if size.ws_col == 0 { 80 } else { size.ws_col.into() })
}

/// A failure as lines: the compiler's words, the cause, the remedy, the command to repeat it.
fn failure_text(failure: &Failure) -> String {
    let mut text = whole_lines(&failure.stderr).into_owned();
    text.push_str(&exit::text(&failure.cause));
    if !failure.command.is_empty() {
        text.push_str(&format!("  repeat: {}\n", failure.command));
    }
    text
}

/// `3 done, 1 failed, 2 not started`.
fn summary_text(counts: Counts) -> String {
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

/// A thread that does something again and again until this is dropped; none at the system's limit of threads.
#[derive(Debug)]
struct Ticker(Option<(Sender<()>, JoinHandle<()>)>);

impl Ticker {
    fn new(period: Duration, mut tick: impl FnMut() + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
        };
        Self(threads::start("ticker", run).ok().map(|thread| (stop, thread)))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // It does not panic; if it did, its lines are all that is lost.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use distlto_planner::graph::ActionKind;

    use super::*;
    use crate::progress::Plan;
    use crate::progress::recorded::Recorded;

    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl Out {
        fn text(&self) -> String {
            String::from_utf8(lock(&self.0).clone()).expect("text")
        }
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn step(id: usize) -> ProgressStep<'static> {
        ProgressStep { id, kind: ActionKind::Opt, label: "a.o", cost: 1, lane: 0, command: "" }
    }

    #[test]
    fn a_line_has_the_total_of_its_moment() {
        let (out, begun) = (Out::default(), Instant::now());
        let recorded = Recorded::new(begun).shared();
        let style = Style { verbose: true, ..Style::default() };
        let progress = TextProgress::log(recorded.clone(), style, out.clone());
        let report = |event: ProgressEvent<'_>| {
            lock(&recorded).report(event, begun);
            progress.report(event);
        };
        let plan = Plan { actions: 1, cost: 1, jobs: 1 };
        report(ProgressEvent::Planned(plan));
        report(ProgressEvent::Finished(step(0), Measured::default(), ""));
        report(ProgressEvent::Grown(Plan { actions: 7, ..plan }));
        report(ProgressEvent::Finished(step(1), Measured::default(), ""));
        assert_eq!(out.text(), "[1/1] opt a.o (0 ms)\n[2/7] opt a.o (0 ms)\n");
    }

    #[test]
    fn a_long_run_is_told_of_while_it_lasts() {
        let (out, begun) = (Out::default(), Instant::now());
        let recorded = Recorded::new(begun).shared();
        let progress = TextProgress::log(recorded.clone(), Style::default(), out.clone())
            .every(Duration::from_millis(5), Profile::COMMAND);
        thread::sleep(Duration::from_millis(40));
        assert_eq!(out.text(), "", "nothing runs");
        let plan = Plan { actions: 2, cost: 2, jobs: 1 };
        lock(&recorded).report(ProgressEvent::Planned(plan), begun);
        lock(&recorded).report(ProgressEvent::Started(step(0)), begun);
        while out.text().lines().count() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no lines");
            thread::sleep(Duration::from_millis(5));
        }
        drop(progress);
        let lines = out.text();
        thread::sleep(Duration::from_millis(30));
        assert_eq!(out.text(), lines, "it has ended");
        assert!(lines.starts_with("distlto: 0/2 done after 1 s; 1 running, longest a.o ("), "{lines}");
    }
}
