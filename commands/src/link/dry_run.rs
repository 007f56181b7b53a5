//! Reports the backends that a link would run: performs its thin link, and runs no backend.
//!
//! A link by one lld gets a scratch directory in place of its state, which is only read. Its linker ends when it asks
//! for backends. A link in two steps needs its own directory, since commands name files there. The next link finds
//! the files that planning writes below it (members, shards); it would write them first anyway.

use std::path::{Path, PathBuf};
use std::thread;

use distlto_executor::schedule::estimate::Estimates;
use distlto_executor::schedule::history::History;
use distlto_planner::graph::{ActionGraph, ActionId};
use distlto_planner::state::Place;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::to_standard_output;
use distlto_record::action::{ActionRecord, ActionStatus};
use distlto_record::inspect;
use distlto_record::progress::text::human_us;
use distlto_record::progress::{Profile, Reporter, Style};
use distlto_record::run;
use distlto_record::why::{self, Change};
use serde::Serialize;

use super::error::LinkError;
use super::options::LinkOptions;
use crate::dry_run::{Row, lines};
use crate::run_args::RunArgs;

/// The version of the JSON.
const VERSION: u32 = 1;

/// The report of a dry run, as JSON.
#[derive(Serialize)]
struct DryRun<'a> {
    version: u32,
    output: &'a str,
    /// How many backends the link has.
    backends: usize,
    /// Those that would run, the longest first.
    would_run: Vec<WouldRun<'a>>,
    /// The estimated processor time of all of them, in microseconds.
    cpu_us: u64,
    /// The estimated time until the last of them ends, in microseconds.
    wall_us: u64,
    /// How many would run at once.
    jobs: usize,
    /// The linker's own time in the last recorded link, in microseconds; none if that link failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    linker_us: Option<u64>,
}

#[derive(Serialize)]
struct WouldRun<'a> {
    label: String,
    why: &'a [Change],
    cpu_us: u64,
    /// Whether its object is kept if the functions that it imports turn out to be the same.
    may_be_kept: bool,
}

/// A link with backends.
pub(crate) struct DryRunLink<'a> {
    pub(crate) output: &'a str,
    /// Its state directory, and that of the last link.
    pub(crate) state: &'a str,
    pub(crate) earlier: &'a str,
    /// How many backends the link line asks to run at once.
    pub(crate) jobs: Option<usize>,
    /// Whether an import step may spare a backend.
    pub(crate) has_steps: bool,
}

impl DryRunLink<'_> {
    /// Reports on the link. `graph` has an action for each record without a kept object, at its number.
    pub(crate) fn print(
        &self,
        args: &RunArgs,
        graph: &ActionGraph,
        actions: &[ActionRecord],
    ) -> Result<(), IoError> {
        let running: Vec<&ActionRecord> =
            actions.iter().filter(|action| action.result != ActionStatus::Kept).collect();
        let ids: Vec<ActionId> = graph.actions().map(|(id, _)| id).collect();
        let wanted: Vec<ActionId> = running.iter().map(|action| ids[action.id]).collect();
        let history = args.history.clone().unwrap_or_else(|| Place::History.path(self.earlier));
        let history = History::load(Some(&history));
        let estimates = Estimates::new(graph, &wanted, history, None, None);
        let times: Vec<u64> = wanted.iter().map(|&id| estimates.weight(id).time).collect();
        let own = args.jobs.map(usize::from).or(self.jobs);
        let jobs = own.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let mut backends: Vec<WouldRun<'_>> = running
            .iter()
            .zip(&times)
            .map(|(action, &cpu_us)| {
                // A dry run has a scratch directory in the place of the state.
                let label = action.label.replacen(self.state, self.earlier, 1);
                WouldRun {
                    label,
                    why: &action.why,
                    cpu_us,
                    may_be_kept: self.has_steps && why::is_imports_only(&action.why),
                }
            })
            .collect();
        backends.sort_by_key(|backend| std::cmp::Reverse(backend.cpu_us));
        let answer = DryRun {
            version: VERSION,
            output: self.output,
            backends: actions.len(),
            would_run: backends,
            cpu_us: times.iter().sum(),
            wall_us: inspect::longest_first(times, jobs),
            jobs,
            linker_us: linker_time(self.earlier),
        };
        answer.print(args.json)
    }
}

/// Returns the reporter of a link. In a dry run it is quiet, but for notes with `-v` and without JSON.
pub(crate) fn reporter(options: &LinkOptions) -> Result<Reporter, LinkError> {
    if options.dry_run {
        let verbose = options.run.verbose > 0 && !options.run.json;
        let style = Style { quiet: true, verbose, ..Style::default() };
        return Ok(Reporter::new(Profile::COMMAND, style, None, None)?);
    }
    Ok(options.run.reporter(Profile::COMMAND)?)
}

/// Reports that a link would do nothing.
pub(super) fn nothing(output: &str, json: bool) -> Result<(), IoError> {
    if !json {
        return to_standard_output(format!("nothing would run: {output} is up to date\n").as_bytes());
    }
    let (would_run, linker_us) = (Vec::new(), Some(0));
    let answer = DryRun {
        version: VERSION,
        output,
        backends: 0,
        would_run,
        cpu_us: 0,
        wall_us: 0,
        jobs: 0,
        linker_us,
    };
    answer.print(json)
}

impl DryRun<'_> {
    fn print(&self, json: bool) -> Result<(), IoError> {
        let mut text = String::new();
        if json {
            text += &serde_json::to_string(self).expect("strings, numbers and lists serialise");
        } else {
            let why = |why: &[Change]| why.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
            let row = |backend: &WouldRun<'_>| Row {
                weight: backend.cpu_us,
                takes: human_us(backend.cpu_us),
                what: backend.label.clone(),
                why: why(backend.why),
            };
            text += &lines(self.would_run.iter().map(row).collect());
            text += &format!("{} of {} backends would run", self.would_run.len(), self.backends);
            if !self.would_run.is_empty() {
                let (wall, cpu) = (human_us(self.wall_us), human_us(self.cpu_us));
                text += &format!(", for about {wall} with {} at once ({cpu} of processor time)", self.jobs);
            }
            let may_be_kept = self.would_run.iter().filter(|backend| backend.may_be_kept).count();
            if may_be_kept > 0 {
                text += &format!("; {may_be_kept} of them keep their objects if they import the same");
            }
            text += &self
                .linker_us
                .map_or_else(String::new, |us| format!("; the linker took {} last", human_us(us)));
        }
        to_standard_output((text + "\n").as_bytes())
    }
}

/// Returns the time of the linker's own steps in the last recorded link, in microseconds; none if that link failed.
fn linker_time(state: &str) -> Option<u64> {
    let newest: PathBuf = run::list(Path::new(state)).ok()?.pop()?;
    let run = run::read(&newest).ok().filter(|run| run.exit_code == Some(0))?;
    inspect::linker_time(&run)
}
