//! Counts the links of a command, and those that pass through although they have bitcode.
//!
//! Does not decide which links pass through (see `asking`).

use std::fs;
use std::path::{Path, PathBuf};

use distlto_planner::module::{self, SummaryKind};
use distlto_planner::response;
use distlto_planner::words::path_of;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::message::say;
use distlto_prepare::mutex::lock;
use distlto_prepare::text::printable;
use distlto_record::usage::{LinkUsage, UsageTotals};

use super::Service;
use super::collected::Task;
use super::process::Process;
use crate::link::LinkError;
use crate::stats;

impl Service<'_> {
    /// Counts a link.
    pub fn count(&self, link: LinkUsage) {
        stats::count(&link);
        lock(&self.usage).push(link);
    }

    /// Counts a link whose linker links by itself although there is bitcode. It is an error if links have to be served.
    pub fn pass_through(&self, output: &Path, why: &str) -> Result<(), LinkError> {
        if !matches!(self.task, Task::Link) {
            return Ok(());
        }
        let output = output.display().to_string();
        let failed = self.options.require;
        self.count(LinkUsage {
            passed_through: Some(why.to_owned()),
            failed,
            ..stats::without_record(&output)
        });
        if failed { Err(LinkError::NotServed { output, why: why.to_owned() }) } else { Ok(()) }
    }

    /// Prints a line on the links of a build.
    pub fn print_usage(&self) {
        let links = lock(&self.usage);
        let style = self.options.run.style();
        if !links.is_empty() && !style.quiet && !style.json {
            let totals: UsageTotals = links.iter().sum();
            say(format_args!("distlto: {}", printable(&totals.sentence())));
        }
    }
}

/// Whether one of these files is a bitcode object. A linker takes a member of an archive only if it needs it.
pub fn has_bitcode(mut files: impl Iterator<Item = PathBuf>) -> bool {
    // The linker reports a file that cannot be read.
    files.any(|file| {
        file.is_file() && classify_file(&file).is_ok_and(|kind| matches!(kind, Kind::Bitcode { .. }))
    })
}

/// Whether some of these files are bitcode objects, and none of them is for ThinLTO. Not known if there is an archive.
pub fn lacks_thin_lto(files: Vec<PathBuf>) -> bool {
    let mut is_bitcode = false;
    for file in files.iter().filter(|file| file.is_file()) {
        match classify_file(file) {
            Ok(Kind::Bitcode { .. }) => {}
            Ok(Kind::Archive { .. } | Kind::Universal | Kind::FatLto(_)) => return false,
            _ => continue,
        }
        // The linker reports a file that cannot be read.
        let module = fs::read(file).ok().and_then(|bytes| module::read(&bytes).ok());
        if module.is_none_or(|module| module.summary == SummaryKind::ThinLto) {
            return false;
        }
        is_bitcode = true;
    }
    is_bitcode
}

/// The words of a linker's command line that may be its inputs.
pub fn inputs(process: &Process) -> Vec<PathBuf> {
    // The linker reports a response file that cannot be read.
    let words = response::expand_in(&process.directory, process.words[1..].to_vec()).unwrap_or_default();
    let words = words.iter().filter(|word| !word.starts_with(b"-"));
    words.map(|word| process.directory.join(path_of(word))).collect()
}
