//! A thin link alone, on the line of a build system that compiles backends by its own rules: `distlto kbuild-index`,
//! and `distlto link` where the line says `--thinlto-index-only`.
//!
//! Puts only changed files into place, so such rules compile only the modules that an edit affects. A lock keeps two
//! runs apart. Runs no backend.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::index_only::IndexOnly;
use distlto_planner::link_command::{self, GivenCommand, LinkCommand, Resolved};
use distlto_planner::runner::Runner;
use distlto_planner::scratch::Scratch;
use distlto_planner::state::directory;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;
use distlto_prepare::message::{say, show};
use distlto_prepare::write::to_standard_output;

use crate::configuration::options;
use crate::link::error::{LinkError, tool_failure};
use crate::link::state::LinkState;
use crate::tool::ToolRunner;

/// Run a thin link and put only shards and import lists that changed in place
///
/// The line is the linker's, with --thinlto-index-only=LIST and whatever else a build system says. Shards that are as they
/// were keep their times, so make compiles the backends that an edit needs. The list is always written.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct KbuildIndexArgs {
    /// Say how many shards changed
    #[arg(short, long)]
    pub verbose: bool,
    /// The linker's command line
    #[arg(last = true, required = true, value_name = "LINKER")]
    pub command: Vec<OsString>,
}

/// Runs the command line of `distlto kbuild-index`.
pub fn run(args: &KbuildIndexArgs, cancel: &Cancel) -> Result<u8, LinkError> {
    let command: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    let runner = ToolRunner { spawner: &PLAIN, cancel, directory: None };
    let found = link_command::resolve(&GivenCommand::new(&command), &runner)?;
    let Resolved::Link(link) = found else { return Err(LinkError::NoThinLink) };
    let asked = IndexOnly::of(link.line.arguments()).ok_or(LinkError::NoThinLink)?;
    perform(&asked, &link, &runner, args.verbose).or_else(|error| tool_failure(error, cancel))
}

/// Performs the thin link that a line asks for.
pub fn perform(
    asked: &IndexOnly,
    link: &LinkCommand,
    runner: &dyn Runner,
    verbose: bool,
) -> Result<u8, LinkError> {
    let named = asked.list.as_deref().and_then(Path::to_str).unwrap_or_else(|| link.line.output());
    let directory = options::links(None).map(|folder| directory(&format!("{named}.thin-link"), &folder));
    let held = LinkState::open_or_scratch(directory.as_deref())?;
    let words = link.line.words();
    let scratch = Scratch::new(Path::new(held.directory()), words.len())?;
    let done = asked.run(&link.linker, words, &scratch, runner);
    scratch.close()?;
    held.remove()?;
    let (output, written) = done?;
    to_standard_output(&output.stdout)?;
    show(&output.stderr);
    if verbose {
        say(format_args!("distlto: {named}: {} of {} shards changed", written.changed, written.modules));
    }
    Ok(0)
}
