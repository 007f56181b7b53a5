//! The input files on a linker's command line, and whether they are bitcode.
//!
//! Does not decide which links are served (see `request`).

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use distlto_planner::link_line::Argument;
use distlto_planner::module::{self, SummaryKind};
use distlto_planner::response;
use distlto_planner::words::path_of;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::warning::warn;
use rayon::prelude::*;

use super::process::Process;
use crate::link::file_state::Start;

/// Why a linker that may ask does not.
pub const NO_THIN_LTO: &str = "no input is ThinLTO bitcode (compile with -flto=thin)";
/// The same, where all bitcode is of this kind.
pub const FULL_LTO: &str = "its bitcode is of full LTO (compile with -flto=thin)";

/// Whether one of these files is a bitcode object. A linker takes a member of an archive only if it needs it.
pub fn has_bitcode(mut files: impl Iterator<Item = PathBuf>) -> bool {
    // The linker reports a file that cannot be read.
    files.any(|file| {
        file.is_file() && classify_file(&file).is_ok_and(|kind| matches!(kind, Kind::Bitcode { .. }))
    })
}

/// Whether one of these files is a native object, so that a program is made of them.
pub fn has_native(mut files: impl Iterator<Item = PathBuf>) -> bool {
    files.any(|file| file.is_file() && classify_file(&file).is_ok_and(|kind| matches!(kind, Kind::Native(_))))
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
pub fn of_process(process: &Process) -> Vec<PathBuf> {
    // The linker reports a response file that cannot be read.
    let words = response::expand_in(&process.directory, process.words[1..].to_vec()).unwrap_or_default();
    let words = words.iter().filter(|word| !word.starts_with(b"-"));
    words.map(|word| process.directory.join(path_of(word))).collect()
}

/// Returns the existing input files of a linker that runs in `root`, with their metadata.
pub fn of_line(root: &Path, arguments: &[Argument]) -> Vec<(PathBuf, Metadata)> {
    let inputs = arguments.iter().filter_map(|argument| match argument {
        Argument::Input(word) => Some(root.join(path_of(word))),
        _ => None,
    });
    let inputs: Vec<PathBuf> = inputs.collect();
    let look = |path: PathBuf| fs::metadata(&path).ok().map(|found| (path, found));
    inputs.into_par_iter().with_min_len(64).filter_map(look).collect()
}

/// Warns of objects without content, which lld takes for linker scripts that say nothing.
pub fn warn_of_empty(inputs: &[(PathBuf, Metadata)]) {
    let is_object = |path: &Path| path.extension().is_some_and(|extension| extension == "o");
    for (path, _) in
        inputs.iter().filter(|(path, found)| is_object(path) && found.is_file() && found.len() == 0)
    {
        warn(format_args!("{} is empty: compile it again", path.display()));
    }
}

/// The start of a link of these inputs.
pub fn start(inputs: &[(PathBuf, Metadata)]) -> Start {
    let changed = |found: &Metadata| found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Start::with(inputs.iter().map(|(path, found)| (path.as_path(), found.len(), changed(found))))
}
