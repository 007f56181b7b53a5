//! The final link: the native objects in the places of the modules, into the program.
//!
//! The linker writes into the state directory and the program is renamed into place, so a link that fails or is killed
//! leaves the earlier program. Knows nothing of how the objects came to be.

use crate::tool::exit_code;
use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use distlto_planner::dependency_file::DependencyFile;
use distlto_planner::index::PlannedLink;
use distlto_planner::link_line::{Argument, last_value};
use distlto_planner::linker::options::endings;
use distlto_planner::runner::{Runner, ToolError, ToolOutput};
use distlto_planner::words::path_of;
use distlto_prepare::io_error::IoError;
use distlto_prepare::message::show;
use distlto_prepare::write::{TEMPORARY_PREFIX, move_into_place, write_atomically};

use super::{LinkError, two_step_reads};

/// Links; returns the linker's exit code. `thin_warnings` is what the linker printed in the thin link: what it does not
/// say again is said now. `tell` is told what it prints in the final one.
pub fn run(
    planned: &PlannedLink,
    directory: &str,
    arguments: &[Argument],
    runner: &dyn Runner,
    thin_warnings: &[u8],
    tell: impl FnOnce(&[u8]),
) -> Result<u8, LinkError> {
    let step = &planned.plan.link;
    let output = planned.plan.output.as_std_path();
    let staging = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .tempdir_in(directory)
        .map_err(IoError::on("create directory", directory))?;
    let name = output.file_name().unwrap_or(output.as_os_str());
    let staged = staging.path().join(name);
    let staged_word = staged.to_str().map(str::to_owned).unwrap_or_default();
    let mut command = step.command.clone();
    // The plan's command ends in `-o OUTPUT`.
    if let Some(last) = command.last_mut() {
        last.clone_from(&staged_word);
    }
    // The last such option counts.
    let dependencies = staging.path().join("dependencies");
    command.push(format!("--dependency-file={}", dependencies.display()));
    let words: Vec<_> = command.iter().map(|word| word.clone().into_bytes()).collect();
    let program = command.first().cloned().unwrap_or_default();
    let finished = runner.run(&words).map_err(|source| ToolError::Start { program, source })?;
    report(&finished, thin_warnings);
    tell(&finished.stderr);
    if !finished.status.success() {
        return Ok(exit_code(finished.status));
    }
    let empty = fs::metadata(&staged).map_or(true, |found| found.len() == 0);
    if empty {
        return Err(LinkError::NoProgram { linker: step.command[0].clone(), output: output.to_owned() });
    }
    if let Some(own) = last_value(arguments, "dependency-file") {
        let text = fs::read(&dependencies).map_err(IoError::on("read", &dependencies))?;
        let read = DependencyFile::parse(&text);
        let read = read.map(|read| two_step_reads::as_one_link(read, &planned.plan, directory).to_bytes());
        write_atomically(Path::new(own), &read.unwrap_or(text))?;
    }
    move_into_place(&dependencies, &two_step_reads::dependencies(directory))?;
    place_beside(&endings(arguments), &staged, output)?;
    move_into_place(&staged, output)?;
    Ok(0)
}

/// Puts what the linker has named after the staged output, with these endings, beside the output.
pub(super) fn place_beside(endings: &[&str], staged: &Path, output: &Path) -> Result<(), IoError> {
    endings.iter().try_for_each(|ending| {
        let at = |path: &Path| path_of(&[path.as_os_str().as_bytes(), ending.as_bytes()].concat());
        move_into_place(&at(staged), &at(output))
    })
}

fn report(finished: &ToolOutput, thin_warnings: &[u8]) {
    // A closed standard output is no reason to fail a link.
    let _ = io::stdout().lock().write_all(&finished.stdout);
    let said: HashSet<&[u8]> = finished.stderr.split(|&byte| byte == b'\n').collect();
    for line in thin_warnings.split_inclusive(|&byte| byte == b'\n') {
        if !said.contains(line.trim_ascii_end()) {
            show(line);
        }
    }
    show(&finished.stderr);
}
