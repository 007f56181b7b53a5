//! The final link: the native objects in the places of the modules, into the program.
//!
//! The linker writes into the state directory and the program is renamed into place, so a link that fails or is killed
//! leaves the earlier program. Knows nothing of how the objects came to be.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use distlto_planner::index::PlannedLink;
use distlto_planner::runner::{Runner, ToolError, ToolOutput};
use distlto_prepare::write::{IoError, TEMPORARY_PREFIX, move_into_place};

use super::{LinkError, show};

/// Links; returns the linker's exit code. `thin_warnings` is what the linker printed in the thin link: what it does not
/// say again is said now.
pub fn run(
    planned: &PlannedLink,
    directory: &str,
    runner: &dyn Runner,
    thin_warnings: &[u8],
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
    let words: Vec<_> = command.iter().map(|word| word.clone().into_bytes()).collect();
    let program = command.first().cloned().unwrap_or_default();
    let finished = runner.run(&words).map_err(|source| ToolError::Start { program, source })?;
    report(&finished, thin_warnings);
    if !finished.status.success() {
        return Ok(finished.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
    }
    let empty = fs::metadata(&staged).map_or(true, |found| found.len() == 0);
    if empty {
        return Err(LinkError::NoProgram { linker: step.command[0].clone(), output: output.to_owned() });
    }
    mend_dependency_file(&step.command, &staged_word, planned.plan.output.as_str())?;
    move_into_place(&staged, output)?;
    Ok(0)
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

/// A dependency file names the output, which the linker knew by its temporary name.
pub(super) fn mend_dependency_file(command: &[String], staged: &str, output: &str) -> Result<(), IoError> {
    let mut words = command.iter();
    while let Some(word) = words.next() {
        let path = match word.strip_prefix("--dependency-file=") {
            Some(path) => PathBuf::from(path),
            None if word == "--dependency-file" => words.next().map(PathBuf::from).unwrap_or_default(),
            None => continue,
        };
        mend(&path, staged, output)?;
    }
    Ok(())
}

fn mend(path: &Path, staged: &str, output: &str) -> Result<(), IoError> {
    let text = fs::read_to_string(path).map_err(IoError::on("read", path))?;
    if let Some(rest) = text.strip_prefix(staged) {
        distlto_prepare::write::write_atomically(path, format!("{output}{rest}").as_bytes())?;
    }
    Ok(())
}
