//! Buck2's planner: runs the thin link of the rule's command and writes the plans that the rule has declared.
//!
//! The command line and the files are those of the prelude's planners (`docs/design/buck2-files.md`). A stock linker's trace takes
//! the place of its missing `--thinlto-full-index`. Does not depend on the content of plans.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use clap::Args;
use distlto_planner::buck2::darwin::{self, DarwinLink, DarwinMeta};
use distlto_planner::buck2::error::Buck2PlanError;
use distlto_planner::buck2::gnu::GnuLink;
use distlto_planner::buck2::index_directory::IndexDirectory;
use distlto_planner::buck2::modules::LinkedModules;
use distlto_planner::buck2::thin_link::RuleThinLink;
use distlto_planner::buck2::{meta, stale};
use distlto_planner::runner::{Runner, ToolOutput};
use distlto_planner::words::{Word, lossy, shell_line, word_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::{say, show};
use distlto_prepare::warning::warn;
use distlto_prepare::write::to_standard_output;
use rayon::prelude::*;
use tempfile::NamedTempFile;

use crate::link::error::LinkError;
use distlto_executor::cancel::Cancel;

/// Where `--help` lists these options.
const HEADING: &str = "As Buck2's planner";

/// Options of Buck2's planner.
#[derive(Debug, Clone, Default, Args)]
pub struct Buck2Args {
    /// Plan for Buck2: read this meta file and write the plans that it names
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires_all = ["index", "link_plan"], conflicts_with_all = ["compiler", "backend_args", "plain_shards", "flags_from"])]
    pub meta: Option<PathBuf>,
    /// Write the plan of the final link to this file
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "meta")]
    pub link_plan: Option<String>,
    /// Write the final link's argument file to this file; without it the meta file is that of a darwin link
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "meta")]
    pub final_link_index: Option<String>,
    /// Have the linker merge modules beforehand (darwin, with a linker that can)
    #[arg(long, help_heading = HEADING, requires = "meta", conflicts_with = "final_link_index")]
    pub enable_premerger: bool,
    /// Print the command of the thin link, and do not run it
    #[arg(long, requires = "meta")]
    #[arg(hide_short_help = true, help_heading = HEADING)]
    pub dump_linker_invocation: bool,
}

/// The request of Buck2's rule.
#[derive(Debug)]
pub struct Buck2Request<'a> {
    meta: &'a Path,
    directory: IndexDirectory,
    link_plan: &'a str,
    final_list: Option<&'a str>,
    premerger: bool,
    dump: bool,
}

impl Buck2Args {
    /// The request, if there is a meta file.
    pub fn request<'a>(&'a self, index: Option<&'a str>) -> Option<Buck2Request<'a>> {
        Some(Buck2Request {
            meta: self.meta.as_deref()?,
            directory: IndexDirectory::new(index?),
            link_plan: self.link_plan.as_deref()?,
            final_list: self.final_link_index.as_deref(),
            premerger: self.enable_premerger,
            dump: self.dump_linker_invocation,
        })
    }
}

/// Runs the thin link and writes all plans; returns the linker's exit code if it fails.
pub fn run(
    request: &Buck2Request<'_>,
    command: &[Word],
    runner: &dyn Runner,
    cancel: &Cancel,
) -> Result<u8, LinkError> {
    if request.dump {
        let words: Vec<String> = command.iter().map(|word| lossy(word)).collect();
        to_standard_output(format!("{}\n", shell_line(words.iter().map(String::as_str))).as_bytes())?;
        return Ok(0);
    }
    let text = fs::read(request.meta).map_err(IoError::on("read", request.meta))?;
    match request.final_list {
        Some(final_list) => gnu(request, final_list, &text, command, runner, cancel),
        None => darwin(request, &text, command, runner, cancel),
    }
}

fn gnu(
    request: &Buck2Request<'_>,
    final_list: &str,
    text: &[u8],
    command: &[Word],
    runner: &dyn Runner,
    cancel: &Cancel,
) -> Result<u8, LinkError> {
    // A driver takes as long to answer as a large meta file to be read.
    let (meta, link) = rayon::join(|| meta::read(request.meta, text), || RuleThinLink::new(command, runner));
    let (meta, link) = (meta?, link?);
    let modules = LinkedModules::of(&meta);
    all_reach_linker(request, &link, &modules)?;
    stale::remove_left(&request.directory, modules.slots.par_iter().map(|slot| slot.path))?;
    let output = link.run(&request.directory, &[], runner)?;
    if let Some(code) = failure(&output, command, cancel)? {
        return Ok(code);
    }
    let unknown = GnuLink {
        meta: &meta,
        modules: &modules,
        directory: &request.directory,
        link_plan: request.link_plan,
        final_list,
        arguments: &link.arguments,
        brought: &link.brings(meta.flags()),
    }
    .finish()?;
    warn_of_unlisted(request, &unknown);
    Ok(0)
}

fn darwin(
    request: &Buck2Request<'_>,
    text: &[u8],
    command: &[Word],
    runner: &dyn Runner,
    cancel: &Cancel,
) -> Result<u8, LinkError> {
    let (meta, link) = rayon::join(
        || darwin::read(request.meta, text, request.premerger),
        || RuleThinLink::new(command, runner),
    );
    let (meta, link) = (meta?, link?);
    if request.premerger && link.is_stock() {
        return Err(Buck2PlanError::NoPremerger.into());
    }
    let modules = meta.modules();
    all_reach_linker(request, &link, &modules)?;
    stale::remove_left(&request.directory, modules.slots.par_iter().map(|slot| slot.path))?;
    let map = request.premerger.then(|| output_map(&meta)).transpose()?;
    let option: Vec<Word> = map.iter().map(|map| word_of(premerger_option(map.path()))).collect();
    let output = link.run(&request.directory, &option, runner)?;
    if let Some(code) = failure(&output, command, cancel)? {
        return Ok(code);
    }
    let (directory, link_plan) = (&request.directory, request.link_plan);
    let unknown = DarwinLink { meta: &meta, modules: &modules, directory, link_plan }.finish()?;
    warn_of_unlisted(request, &unknown);
    Ok(0)
}

/// Refuses a link in which the driver would keep an object from the linker.
fn all_reach_linker(
    request: &Buck2Request<'_>,
    link: &RuleThinLink<'_>,
    modules: &LinkedModules<'_>,
) -> Result<(), Buck2PlanError> {
    match link.kept_from_linker(modules.slots.iter().map(|slot| slot.path)) {
        Some(file) => {
            Err(Buck2PlanError::NeverLinked { meta: request.meta.to_owned(), file: file.to_owned() })
        }
        None => Ok(()),
    }
}

/// Writes the file from which the linker reads the paths of merged modules.
fn output_map(meta: &DarwinMeta<'_>) -> Result<NamedTempFile, IoError> {
    let parent = std::env::temp_dir();
    let mut file = NamedTempFile::new_in(&parent).map_err(IoError::on("write", &parent))?;
    file.write_all(&meta.output_map()).map_err(IoError::on("write", file.path()))?;
    Ok(file)
}

fn premerger_option(map: &Path) -> OsString {
    let mut option = OsString::from("-Wl,-mllvm,-premerger-output-map=");
    option.push(map);
    option
}

fn warn_of_unlisted(request: &Buck2Request<'_>, unknown: &[String]) {
    const SHOWN: usize = 10;
    let meta = request.meta.display();
    for import in unknown.iter().take(SHOWN) {
        warn(format_args!("a module imports from {import}, which {meta} does not list"));
    }
    if let Some(more @ 1..) = unknown.len().checked_sub(SHOWN) {
        warn(format_args!("so do modules from {more} more files"));
    }
}

/// Prints the linker's output. Returns its exit code if it failed.
fn failure(output: &ToolOutput, command: &[Word], cancel: &Cancel) -> Result<Option<u8>, LinkError> {
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() });
    }
    to_standard_output(&output.stdout)?;
    show(&output.stderr);
    if output.status.success() {
        return Ok(None);
    }
    say(format_args!(
        "distlto: the thin link failed: {} ended with {}; no plan was written",
        lossy(&command[0]),
        output.status
    ));
    let signal = output.status.signal().map(|signal| signal + 128);
    Ok(Some(output.status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
