//! A compiler's identity besides its own file: its libraries and the environment, and the compiler behind a wrapper.
//!
//! Files are identified by path and, if small, by content, else by size, times and inode. The reads of a wrapper
//! script are unknown.

use std::path::{Path, PathBuf};

use distlto_planner::driver;
use distlto_planner::keep::fingerprint;
use distlto_planner::runner::Runner;
use distlto_planner::search_path::program_file;
use distlto_planner::words::path_of;

use distlto_executor::program_files;
use distlto_executor::variables::{self, Reader};

/// Returns a line for each file or variable that a compiler's behaviour depends on.
pub fn of(compiler: &str, installed: Option<&Path>, runner: &dyn Runner) -> Vec<String> {
    let program = located(compiler);
    let behind = program.as_deref().and_then(|program| behind(program, installed));
    let run = behind.as_ref().and_then(|_| run_by(compiler, runner));
    let programs = program.into_iter().chain(behind.clone()).chain(run.clone());
    let programs = programs.filter(|program| !program_files::is_script(program));
    let libraries = programs.flat_map(|program| {
        // A program that is not for this system's loader has no known libraries.
        program_files::libraries(&program).unwrap_or_default()
    });
    let files = libraries.chain(behind.clone()).chain(run);
    let mut lines: Vec<String> = files.map(|path| file_line(&path)).collect();
    lines.sort_unstable();
    lines.dedup();
    match behind {
        Some(_) => lines.push(format!("environment {}", variables::environment())),
        None => lines.extend(
            // The loader's variables show in the libraries.
            variables::read_by(&[Reader::Driver, Reader::Compiler])
                .filter_map(|(name, value)| Some(format!("variable {name}={:?}", value?))),
        ),
    }
    lines
}

/// The file of a program that a command names.
pub fn located(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    let found = program_file(path)?;
    found.canonicalize().ok()
}

/// The compiler behind a program that is a wrapper around one: a script, or one of another directory than the driver
/// says it is installed in.
pub fn behind(program: &Path, installed: Option<&Path>) -> Option<PathBuf> {
    let installed = installed.and_then(|directory| directory.canonicalize().ok());
    let elsewhere = installed.as_deref().is_some_and(|directory| program.parent() != Some(directory));
    let compiler = installed.and_then(|directory| directory.join("clang").canonicalize().ok());
    match elsewhere || program_files::is_script(program) {
        true => Some(compiler.unwrap_or_else(|| program.to_owned())),
        false => None,
    }
}

/// The program that a wrapper runs in the end, as far as it says so.
fn run_by(wrapper: &str, runner: &dyn Runner) -> Option<PathBuf> {
    let question = [wrapper, "-###", "-c", "-x", "ir", "/dev/null", "-o", "/dev/null"];
    let answer = runner.run(&question.map(|word| word.as_bytes().to_vec())).ok()?;
    path_of(driver::parse(&answer.stderr).jobs.last()?.first()?).canonicalize().ok()
}

/// Returns a line for a file: its path, and its content or size, times and inode.
pub fn file_line(path: &Path) -> String {
    format!("file {} {}", path.display(), fingerprint(path))
}
