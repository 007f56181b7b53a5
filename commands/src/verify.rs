//! `distlto verify`: whether distlto's result of a link equals lld's in process; if not, why.
//!
//! Links into a scratch directory in both ways and compares. Does not examine the behaviour of programs.

pub mod args;
mod cause;
mod contents;
mod objects;
mod verdict;
mod ways;

use std::fs;
use std::path::{Path, PathBuf};

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::link_command::{self, GivenCommand, LinkCommand, Resolved};
use distlto_planner::link_options::writes_itself;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::shown;
use distlto_prepare::write::to_standard_output;
use miette::{Diagnostic, Report};
use thiserror::Error;

use crate::link::error::LinkError;
use crate::scratch::scratch;
use crate::tool::ToolRunner;

use args::VerifyArgs;
use verdict::Verdict;
use ways::Ways;

/// Why nothing could be compared.
#[derive(Debug, Error, Diagnostic)]
pub enum VerifyError {
    /// Nothing that lld links.
    #[error("the command is no link by lld, so there is nothing to compare")]
    #[diagnostic(
        code(distlto::usage),
        help("name a link command: a compiler driver with -fuse-ld=lld, or ld.lld")
    )]
    NoLink,
    /// The directory holds something.
    #[error("{} is not empty", path.display())]
    #[diagnostic(code(distlto::usage), help("name another directory with --keep, or remove what is there"))]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
}

/// Links, compares and prints.
pub fn run(args: &VerifyArgs, cancel: &Cancel) -> Result<u8, Report> {
    let runner = ToolRunner { spawner: &PLAIN, cancel, directory: None };
    let words: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    let link = resolve(&words, &runner)?;
    let scratch = Scratch::new(args.keep.as_deref())?;
    let ways = Ways::new(args, &link, scratch.path(), &runner)?;
    let verdict = Verdict::of(&ways)?;
    if cancel.is_cancelled() {
        return Err(LinkError::Interrupted { exit_code: cancel.exit_code() }.into());
    }
    let text = shown(&verdict, args.json);
    to_standard_output(text.as_bytes())?;
    Ok(verdict.exit_code())
}

fn resolve(words: &[Word], runner: &ToolRunner<'_>) -> Result<LinkCommand, Report> {
    let found = link_command::resolve(&GivenCommand::new(words), runner).map_err(LinkError::from)?;
    match found {
        Resolved::Link(link) if !writes_itself(link.line.arguments()) => Ok(link),
        _ => Err(VerifyError::NoLink.into()),
    }
}

/// Where the links go: a directory that goes with them, or the one that the user named.
enum Scratch {
    Temporary(tempfile::TempDir),
    Kept(PathBuf),
}

impl Scratch {
    fn new(keep: Option<&Path>) -> Result<Self, Report> {
        let Some(path) = keep else {
            return Ok(Self::Temporary(scratch("verify")?));
        };
        fs::create_dir_all(path).map_err(IoError::on("create directory", path))?;
        let mut entries = fs::read_dir(path).map_err(IoError::on("list", path))?;
        if entries.next().is_some() {
            return Err(VerifyError::NotEmpty { path: path.to_owned() }.into());
        }
        Ok(Self::Kept(path.to_owned()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary(made) => made.path(),
            Self::Kept(path) => path,
        }
    }
}
