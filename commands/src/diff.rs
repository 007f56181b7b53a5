//! `distlto diff`: compares two links, or two runs of one link.
//!
//! Finds the two, and prints their differences.

use camino::Utf8PathBuf;
use clap::Args;
use distlto_planner::state::VARIABLE;
use distlto_prepare::exit;
use distlto_prepare::json_lines::shown;
use distlto_prepare::write::to_standard_output;
use distlto_record::diff::{Difference, Side};
use miette::Report;

use crate::link_description::{LinkDescription, LinkDescriptionError};

/// Compare two links, or two runs of one
///
/// Modules, imports, what ran and why, objects that differ, times. Each is an output, a state directory, a record of a run (STATE/runs/*.json) or an action graph in JSON. Of an output or a
/// state directory the newest run counts. With one of them its last two runs are compared.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct DiffArgs {
    /// The older link
    #[arg(value_name = "OLD")]
    pub old: Utf8PathBuf,
    /// The newer link [default: the last run of OLD, with the run before it as the older one]
    #[arg(value_name = "NEW")]
    pub new: Option<Utf8PathBuf>,
    /// The directory of distlto link --state
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub state: Option<String>,
    /// Print JSON, times in microseconds
    #[arg(long)]
    pub json: bool,
}

/// Compares and prints.
pub fn run(args: &DiffArgs) -> Result<u8, Report> {
    let folder = args.state.as_deref();
    let old = LinkDescription::find(&args.old, folder)?;
    let (old, new) = match &args.new {
        Some(new) => (old.side(), LinkDescription::find(new, folder)?.side()),
        None => last_two(old)?,
    };
    to_standard_output(shown(&Difference::of(&old, &new), args.json).as_bytes())?;
    Ok(0)
}

/// The last run of a link, and the one before it as the older one.
pub fn last_two(mut seen: LinkDescription) -> Result<(Side, Side), LinkDescriptionError> {
    let found = seen.runs.len();
    let (newest, before) = (seen.runs.pop(), seen.runs.pop());
    let (Some(newest), Some(before)) = (newest, before) else {
        return Err(LinkDescriptionError::NoTwoRuns { path: seen.named, found });
    };
    // The plan is that of the newest run.
    seen.runs.push(newest);
    Ok((Side::of_run(before), seen.side()))
}
