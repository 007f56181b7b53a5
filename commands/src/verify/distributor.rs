//! The plainest distributors for lld's DTLTO: one runs lld's jobs as they are and keeps their objects, one hands out objects
//! that were made before.
//!
//! lld starts this program as one of them. Both say nothing of their own, so that what lld makes with them is lld's.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_executor::cancel::{Cancel, cancel_on_signals};
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_planner::dtlto::{self, JobFile};
use distlto_planner::graph::ActionId;
use distlto_planner::runner::Runner;
use distlto_planner::words::Word;
use distlto_prepare::input::Input;
use distlto_prepare::message::say;
use distlto_prepare::threads;
use rayon::prelude::*;

use crate::tool::ToolRunner;

/// The distributor that runs the jobs, and keeps the object of job N in this directory as N.
pub const KEEP: &str = "--distlto-verify-keep=";
/// The distributor that makes the file N of this directory the object of job N.
pub const GIVE: &str = "--distlto-verify-give=";

/// Whether this process is one of those; it has ended its work then.
pub fn serve(arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    let arguments: Vec<OsString> = arguments.skip(1).collect();
    let first = arguments.first()?.as_bytes();
    let keeps = first.starts_with(KEEP.as_bytes());
    let directory = first.strip_prefix(if keeps { KEEP } else { GIVE }.as_bytes())?;
    let job_file = PathBuf::from(arguments.last()?);
    threads::begin();
    let done = distribute(keeps, Path::new(OsStr::from_bytes(directory)), &job_file);
    Some(done.map_or_else(
        |error| {
            say(format_args!("distlto verify: {error}"));
            1
        },
        |()| 0,
    ))
}

fn distribute(keeps: bool, directory: &Path, job_file: &Path) -> io::Result<()> {
    let bytes = Input::open(job_file).map_err(io::Error::other)?;
    let file = dtlto::read(&bytes, &job_file.to_string_lossy()).map_err(io::Error::other)?;
    let cancel = cancel_on_signals()?;
    let jobs: Vec<(usize, ActionId)> = file.jobs.iter().copied().enumerate().collect();
    jobs.into_par_iter().try_for_each(|(number, job)| {
        let (place, object) = (directory.join(number.to_string()), file.object(job));
        if keeps {
            compile(&file, job, &cancel)?;
            return fs::copy(object, place).map(drop);
        }
        fs::copy(&place, object).map(drop)
    })
}

fn compile(file: &JobFile, job: ActionId, cancel: &Cancel) -> io::Result<()> {
    let command: Vec<Word> = file.graph.command(job).iter().map(|word| word.as_bytes().to_vec()).collect();
    let ended = ToolRunner { spawner: &LocalSpawner, cancel, directory: None }.run(&command)?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    Err(io::Error::other(format!("{}: {}\n{said}", file.module(job), ended.status)))
}
