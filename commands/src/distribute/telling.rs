//! Messages of a distributor besides the progress of its run.
//!
//! They are few, since the linker's own output surrounds them.

use std::path::Path;

use distlto_planner::words::shell_quote;

use distlto_prepare::message::say;
use distlto_record::progress::text::{human, printable};
use distlto_record::report::Report;

/// A run that did not succeed, in one line.
pub fn tell_failure(program: &str, report: &Report) {
    let (counts, total) = (report.counts(), report.outcomes.len());
    let left = counts.not_started + counts.skipped;
    let ended = match (counts.failed, counts.interrupted) {
        (failed, 0) => format!("{failed} of {total} backends failed"),
        (0, interrupted) => format!("{interrupted} of {total} backends interrupted"),
        (failed, interrupted) => format!("{failed} of {total} backends failed, {interrupted} interrupted"),
    };
    let (program, wall) = (printable(program), human(report.wall));
    say(format_args!("distlto-distribute: {program}: {ended}, {left} not started, in {wall}"));
}

/// After a failure, how its command can be repeated when the linker has removed the files.
pub fn tell_repeating(saved: Option<&Path>, hints: bool) {
    match saved {
        Some(saved) => {
            let script = saved.join("replay.sh");
            say(format_args!("  the jobs are saved: run {}", shell_quote(&script.to_string_lossy())));
        }
        None if hints => {
            say(
                "  lld removes the files of these jobs: to repeat one, link with the option --save-job=DIR of \
                     distlto-distribute",
            );
        }
        None => {}
    }
}
