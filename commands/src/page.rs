//! `distlto report`: one HTML file with the results of inspect and diff for a link, its run and its modules.
//!
//! Finds the link, and writes the page. `distlto_record::page` makes it.

use std::path::PathBuf;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use distlto_planner::state::VARIABLE;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{to_standard_output, write_atomically};
use distlto_prepare::{exit, regular};
use distlto_record::diff::{Difference, Side};
use distlto_record::inspect::Inspection;
use distlto_record::page::{Subject, TimeTrace};
use distlto_record::run::RunRecord;
use miette::{Diagnostic, Report};
use thiserror::Error;

use crate::diff::last_two;
use crate::inspect::answers;
use crate::link_description::LinkDescription;
use crate::stats;

/// lld's suffix, after the output's name, for the file that it writes for `--time-trace`.
const TRACE: &str = ".time-trace";

/// Write a page on a link: its answers, its run in lanes, its modules, what other workers would bring
///
/// One HTML file that needs no network. The link is named as for distlto inspect. Where it has more than one run, the last is
/// compared with the one before. What lld has written for --time-trace beside the output is in the lanes if it is of that run.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct ReportArgs {
    /// The link, as for distlto inspect
    #[arg(value_name = "THING")]
    pub thing: Utf8PathBuf,
    /// Where the page is written
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    /// Compare with this link or record of a run instead of the run before
    #[arg(long, value_name = "OLD")]
    pub compare: Option<Utf8PathBuf>,
    /// Also show this file of clang's -ftime-trace or lld's --time-trace; repeatable
    #[arg(long, value_name = "FILE")]
    pub time_trace: Vec<Utf8PathBuf>,
    /// The directory of distlto link --state
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
}

/// Why there is no page, besides errors of the link's own files.
#[derive(Debug, Error, Diagnostic)]
enum PageError {
    /// A trace has no place in the run.
    #[error("{path} is of another time than the last run of {thing}")]
    #[diagnostic(
        code(distlto::usage),
        help("name a trace that was written in that run, or name the record of the run in which it was")
    )]
    OtherTime {
        /// The trace.
        path: Utf8PathBuf,
        /// The thing that the user named.
        thing: Utf8PathBuf,
    },
}

/// Writes the page.
pub fn run(args: &ReportArgs) -> Result<u8, Report> {
    let folder = args.state.as_deref();
    let mut seen = LinkDescription::find(&args.thing, folder)?;
    let inspection = Inspection::of(&seen.output, &seen.modules, &seen.runs);
    let answers = answers(&seen, &inspection);
    let knows_imports = seen.modules.iter().any(|module| module.imports.is_some());
    let traces = args.traces(&seen)?;
    let history = stats::history(&seen.runs);
    let (old, new) = match &args.compare {
        Some(old) => (Some(LinkDescription::find(old, folder)?.side()), seen.side()),
        None if seen.runs.len() > 1 => {
            let (old, new) = last_two(seen)?;
            (Some(old), new)
        }
        None => (None, Side { run: seen.runs.pop(), ..Side::default() }),
    };
    let difference = old.as_ref().map(|old| Difference::of(old, &new).to_string());
    let page = Subject {
        inspection: &inspection,
        answers: &answers,
        knows_imports,
        run: new.run.as_ref(),
        earlier: old.as_ref().and_then(|old| old.run.as_ref()),
        difference: difference.as_deref(),
        history: &history,
        traces: &traces,
    }
    .to_html();
    write_atomically(&args.output, page.as_bytes())?;
    let said = format!("{} is written: {} KB\n", args.output.display(), page.len().div_ceil(1000));
    to_standard_output(said.as_bytes())?;
    Ok(0)
}

impl ReportArgs {
    /// The traces that were named, and lld's own beside the output.
    fn traces(&self, seen: &LinkDescription) -> Result<Vec<TimeTrace>, Report> {
        let Some(run) = seen.runs.last() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for path in &self.time_trace {
            let bytes = regular::read(path.as_std_path()).map_err(IoError::on("read", path))?;
            let trace = TimeTrace::read(path.as_str(), &bytes)?;
            if !trace.is_within(run) {
                let (path, thing) = (path.clone(), self.thing.clone());
                return Err(PageError::OtherTime { path, thing }.into());
            }
            found.push(trace);
        }
        if let Some(path) = beside(run) {
            let bytes = regular::read_if_there(path.as_std_path())?;
            let trace = bytes.map(|bytes| TimeTrace::read(path.as_str(), &bytes)).transpose()?;
            found.extend(trace.filter(|trace| self.time_trace.is_empty() && trace.is_within(run)));
        }
        Ok(found)
    }
}

/// Returns the path of lld's trace if the line names none.
fn beside(run: &RunRecord) -> Option<Utf8PathBuf> {
    Some(Utf8Path::new(&run.directory).join(format!("{}{TRACE}", run.output.as_ref()?)))
}
