//! `distlto header-list`: runs a compilation, and lists the project's files that it read, one per line.
//!
//! Build systems such as Buck2 compile again only if a listed file has changed. They take paths below the working
//! directory without `.` and `..`; the compiler writes a rule for make. Does not depend on the kind of source.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::dependency_file::rule_files;
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::words::{Word, lossy, path_of, word_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{remove, to_standard_output, write_atomically};
use miette::Report;

use crate::tool::{ToolRunner, exit_code};
use distlto_prepare::message::show;

/// Compile, and list the files of the project that the compiler read
///
/// The command gets `-MD -MF FILE` at its end. Its exit code is that of this one.
#[derive(Debug, Args)]
#[command(after_help = distlto_prepare::exit::help())]
pub struct HeaderListArgs {
    /// Write the list to this file
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The compiler and its arguments
    #[arg(last = true, required = true, value_name = "COMPILER")]
    pub command: Vec<OsString>,
}

/// Runs the compiler and writes the list. Returns the compiler's exit code.
pub fn run(args: &HeaderListArgs, cancel: &Cancel) -> Result<u8, Report> {
    let mut rule = args.out.clone().into_os_string();
    rule.push(".d");
    let rule = PathBuf::from(rule);
    // The list is the only report of the compiler's inputs: one of an earlier run must not stay.
    remove(&args.out)?;
    let mut command: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    let own = ["-MD", "-MT", "object", "-MF"].map(|word| word.as_bytes().to_vec());
    command.extend(own.into_iter().chain([word_of(rule.clone().into_os_string())]));
    let runner = ToolRunner { spawner: &PLAIN, cancel, directory: None };
    let program = || lossy(&command[0]);
    let ended = runner.run(&command).map_err(|source| ToolError::Start { program: program(), source })?;
    to_standard_output(&ended.stdout)?;
    show(&ended.stderr);
    if !ended.status.success() {
        remove(&rule)?;
        return Ok(if cancel.is_cancelled() { cancel.exit_code() } else { exit_code(ended.status) });
    }
    let read = match fs::read(&rule) {
        Ok(text) => rule_files(&text),
        // Assembly that is not preprocessed reads nothing else.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(IoError::on("read", rule)(error).into()),
    };
    remove(&rule)?;
    let here = env::current_dir().map_err(IoError::on("find", "the working directory"))?;
    write_atomically(&args.out, &list(&read, &here))?;
    Ok(0)
}

fn list(files: &[Word], here: &Path) -> Vec<u8> {
    let mut found: Vec<Word> = files.iter().filter_map(|file| below(&path_of(file), here)).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().flat_map(|file| [file, b"\n".to_vec()].concat()).collect()
}

/// A path below the working directory; `None` where it does not lie there, since no build system knows of it then.
fn below(file: &Path, here: &Path) -> Option<Word> {
    let file = if file.is_absolute() { file.strip_prefix(here).ok()? } else { file };
    let mut clean = PathBuf::new();
    for part in file.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(word_of(clean.into_os_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_is_left_out() {
        let files = ["./a/../b.h", "/project/x y.h", "/usr/include/c.h", "../d.h", "b.h", "/project2/e.h"];
        let files = files.map(|file| file.as_bytes().to_vec());
        assert_eq!(list(&files, Path::new("/project")), b"b.h\nx y.h\n");
    }
}
