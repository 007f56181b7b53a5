//! What a distributor tells while it runs inside of a link: little, since the linker's own output is around it.
//!
//! On a terminal a bar while it lasts and one line at the end. Elsewhere failures and warnings, and the line only when
//! the run failed or took longer than a person does not notice: tests of a configure script link small programs, and
//! some take any output for a warning. A log gets every event.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use distlto_planner::words::shell_quote;

use crate::progress::{JsonProgress, Memory, Phase, Plan, Progress, Step, human};
use crate::report::{Counts, Failure, Measured, Outcome, Report};
use crate::run_args::RunArgs;

/// A run that is no longer than this is not worth a line in a build's output.
const WORTH_A_LINE: Duration = Duration::from_secs(1);

/// The progress of a distributor.
pub struct Telling {
    inner: Box<dyn Progress>,
    log: Option<JsonProgress<File>>,
    verbose: bool,
    quiet: bool,
}

impl Telling {
    /// As the options say, and into a log.
    pub fn new(args: &RunArgs, log: Option<JsonProgress<File>>) -> Self {
        Self { inner: args.progress(), log, verbose: args.verbose, quiet: args.quiet || args.json }
    }

    /// The line at the end. `jobs` is how many ran at once at most.
    pub fn tell_summary(&self, program: &str, report: &Report, jobs: usize) {
        let small = self.quiet || report.wall < WORTH_A_LINE && !io::stderr().is_terminal();
        if self.verbose || !report.is_success() || !small {
            say(&summary(program, report, jobs));
        }
    }

    /// After a failure, how its command can be repeated when the linker has removed the files.
    pub fn tell_repeating(&self, saved: Option<&Path>, with_linker: bool) {
        match saved {
            Some(saved) => {
                let script = saved.join("replay.sh");
                say(&format!("  the jobs are saved: run {}", shell_quote(&script.to_string_lossy())));
            }
            None if with_linker => {
                say(
                    "  lld removes the files of these jobs: to repeat one, link with the option --save-job=DIR of \
                     distlto-distribute",
                );
            }
            None => {}
        }
    }
}

impl Progress for Telling {
    fn plan(&self, plan: Plan) {
        self.inner.plan(plan);
        self.log.iter().for_each(|log| log.plan(plan));
    }

    fn start(&self, step: Step<'_>) {
        self.inner.start(step);
        self.log.iter().for_each(|log| log.start(step));
    }

    fn finish(&self, step: Step<'_>, measured: Measured, warnings: &str) {
        self.inner.finish(step, measured, warnings);
        self.log.iter().for_each(|log| log.finish(step, measured, warnings));
    }

    fn fail(&self, step: Step<'_>, failure: &Failure) {
        self.inner.fail(step, failure);
        self.log.iter().for_each(|log| log.fail(step, failure));
    }

    fn summary(&self, counts: Counts, wall: Duration) {
        if !self.verbose {
            // Ends a bar; the counts are told by `tell_summary`.
            self.inner.summary(Counts { done: counts.done, ..Counts::default() }, wall);
        }
        self.log.iter().for_each(|log| log.summary(counts, wall));
    }

    fn again(&self, step: Step<'_>, cause: &str) {
        self.inner.again(step, cause);
        self.log.iter().for_each(|log| log.again(step, cause));
    }

    fn phase(&self, phase: Phase) {
        self.inner.phase(phase);
        self.log.iter().for_each(|log| log.phase(phase));
    }

    fn memory(&self, memory: Memory) {
        self.inner.memory(memory);
        self.log.iter().for_each(|log| log.memory(memory));
    }
}

/// Something that the linker did not tell the compilers.
pub fn warn(dropped: &str) {
    say(&format!("distlto-distribute: warning: {dropped}"));
}

/// A standard error that is gone is no reason to fail a link.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// `distlto-distribute: app: 168 backends in 3.9 s, 7.4 s of processor time, 1.9 of 2 jobs busy`.
fn summary(program: &str, report: &Report, jobs: usize) -> String {
    let (counts, total) = (report.counts(), report.outcomes.len());
    let wall = human(report.wall);
    let beginning = format!("distlto-distribute: {program}:");
    if !report.is_success() {
        let left = counts.not_started + counts.skipped;
        let failed = if report.cancelled.is_some() { "failed or interrupted" } else { "failed" };
        return format!(
            "{beginning} {} of {total} backends {failed}, {left} not started, in {wall}",
            counts.failed
        );
    }
    let measured = report.outcomes.iter().filter_map(|(_, outcome)| match outcome {
        Outcome::Done(measured) => Some(*measured),
        _ => None,
    });
    let (mut busy, mut cpu) = (Duration::ZERO, Duration::ZERO);
    for measured in measured {
        busy += measured.wall;
        cpu += measured.cpu.unwrap_or_default();
    }
    let at_once = busy.as_secs_f64() / report.wall.as_secs_f64().max(1e-3);
    let jobs = jobs.clamp(1, total.max(1));
    let cpu = human(cpu);
    format!(
        "{beginning} {total} backends in {wall}, {cpu} of processor time, {at_once:.1} of {jobs} jobs busy"
    )
}
