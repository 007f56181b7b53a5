//! `distlto kbuild-archive`: the archive of a kernel's objects in which each module is replaced by its native object.
//!
//! Native members keep name and order. A missing object, or a file that is no object, is reported before the archiver
//! runs, and an earlier archive stays then. Does not depend on how objects are made.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::runner::{Runner, ToolError};
use distlto_planner::words::{Word, lossy, word_of};
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::write::{move_into_place, remove};
use miette::{Diagnostic, Report};
use thiserror::Error;

use crate::tool::{ToolRunner, exit_code};
use distlto_prepare::message::show;

/// Make an archive of objects, with native ones in the places of modules
///
/// Upstream's rule asks grep for each object of a kernel. Which objects are modules, the index of the thin link says.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct KbuildArchiveArgs {
    /// Write this archive
    #[arg(long, value_name = "ARCHIVE")]
    pub out: PathBuf,
    /// The objects in their order, one a line
    #[arg(long, value_name = "FILE")]
    pub order: PathBuf,
    /// The modules among them: the list of --thinlto-index-only
    #[arg(long, value_name = "FILE")]
    pub index: PathBuf,
    /// What a module's native object ends in, where the module ends in .o
    #[arg(long, value_name = "SUFFIX", default_value = ".thinlto-native.o")]
    pub suffix: String,
    /// The archiver and its arguments before the archive [example: llvm-ar cDPrS --thin]
    #[arg(last = true, required = true, value_name = "AR")]
    pub command: Vec<OsString>,
}

/// No object where one should be.
#[derive(Debug, Error, Diagnostic)]
#[error("{}: {what}, where the native object of {module} should be", object.display())]
#[diagnostic(code(distlto::bad_input), help("remove it and build again: the backend of {module} makes it"))]
pub struct NoObject {
    /// The object.
    object: PathBuf,
    /// A description of the file there.
    what: String,
    /// The module.
    module: String,
}

/// Makes the archive; returns the archiver's exit code.
pub fn run(args: &KbuildArchiveArgs, cancel: &Cancel) -> Result<u8, Report> {
    let read = |path: &Path| fs::read_to_string(path).map_err(IoError::on("read", path));
    let (order, index) = (read(&args.order)?, read(&args.index)?);
    let modules: HashSet<&str> = index.lines().collect();
    let temporary = args.out.with_added_extension("tmp");
    let mut command: Vec<Word> = args.command.iter().cloned().map(word_of).collect();
    command.push(word_of(temporary.clone().into_os_string()));
    for object in order.lines() {
        let member = if modules.contains(object) { native(object, &args.suffix)? } else { object.to_owned() };
        command.push(member.into_bytes());
    }
    remove(&temporary)?;
    let runner = ToolRunner { spawner: &PLAIN, cancel, directory: None };
    let program = || lossy(&command[0]);
    let ended = runner.run(&command).map_err(|source| ToolError::Start { program: program(), source })?;
    show(&ended.stdout);
    show(&ended.stderr);
    if !ended.status.success() {
        remove(&temporary)?;
        return Ok(if cancel.is_cancelled() { cancel.exit_code() } else { exit_code(ended.status) });
    }
    Ok(move_into_place(&temporary, &args.out).map(|()| 0)?)
}

/// A module's native object, which has to be there.
fn native(module: &str, suffix: &str) -> Result<String, NoObject> {
    let object = format!("{}{suffix}", module.strip_suffix(".o").unwrap_or(module));
    let what = match classify_file(Path::new(&object)) {
        Ok(Kind::Native(_)) => return Ok(object),
        Ok(kind) => kind.to_string(),
        Err(error) => error.to_string(),
    };
    Err(NoObject { object: object.into(), what, module: module.to_owned() })
}
