//! Completes the shards of a job file from lld's symbol resolution, so that the objects equal those of lld in process.
//!
//! With `--save-temps=resolution` (COFF: `/lldsavetemps:resolution`), lld writes the resolution beside the output before the backends start, and does not remove
//! it. Modules have the same names in it as in the job file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use distlto_planner::bitcode::BitcodeError;
use distlto_planner::dtlto::JobFile;
use distlto_planner::references;
use distlto_planner::resolution::Resolutions;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Format, Native, bitcode_of};

use distlto_prepare::write::{remove, write_atomically};
use miette::Diagnostic;
use thiserror::Error;

use crate::completion::{Completion, Reader};

/// Why shards were not completed.
#[derive(Debug, Error, Diagnostic)]
pub enum CompleteError {
    /// lld has not written its symbol resolution.
    #[error("{} is not there, by which shards are completed", path.display())]
    #[diagnostic(
        code(distlto::usage),
        help(
            "add -Wl,--save-temps=resolution to the link line, or /lldsavetemps:resolution for Windows, or leave out \
                 --complete-shards"
        )
    )]
    NotResolved {
        /// The file.
        path: PathBuf,
    },
    /// The linker's output has no name.
    #[error("the job file does not name the output, so the linker's resolution file is not known")]
    #[diagnostic(code(distlto::bad_input), help("leave out --complete-shards"))]
    NoOutput,
    /// A file is not an index shard.
    #[error("{}: {source}", path.display())]
    #[diagnostic(forward(source))]
    Shard {
        /// The file.
        path: PathBuf,
        /// The error in it.
        source: BitcodeError,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
}

/// Completes the shards of all jobs, and removes lld's file.
pub fn shards(file: &JobFile) -> Result<(), CompleteError> {
    let output = file.linker_output.as_ref().ok_or(CompleteError::NoOutput)?;
    let path = PathBuf::from(format!("{output}.resolution.txt"));
    let resolutions = fs::read(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => CompleteError::NotResolved { path: path.clone() },
        _ => IoError::on("read", &path)(error).into(),
    })?;
    let read = &mut |id: &str| {
        let input = Input::open(Path::new(id)).ok()?;
        references::read(bitcode_of(&input).unwrap_or(&input)).ok().flatten()
    };
    let target = file.common_args.iter().find_map(|word| word.strip_prefix("--target="));
    let is_coff = target.and_then(Native::of_triple).is_some_and(|native| native.format == Format::Coff);
    let resolutions = if is_coff { of_modules(&resolutions, read) } else { resolutions };
    let mut completion = Completion::of(&resolutions, "");
    for &job in &file.jobs {
        let shard = Path::new(file.shard(job));
        let bytes = fs::read(shard).map_err(IoError::on("read", shard))?;
        let completed = completion.complete(&bytes, file.module(job), read);
        let completed =
            completed.map_err(|source| CompleteError::Shard { path: shard.to_owned(), source })?;
        write_atomically(shard, &completed)?;
    }
    Ok(remove(&path)?)
}

/// The resolution of a link for Windows, with the names that modules have for symbols: the linker's own depend on the calling
/// convention, and a symbol from a DLL has the prefix `__imp_`. Here a definition is local to the link if its compiler says so,
/// whichever prevails.
fn of_modules(resolutions: &[u8], read: Reader<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    for module in Resolutions::read(resolutions, "").modules() {
        text.extend([module, b"\n"].concat());
        let references = str::from_utf8(module).ok().and_then(&mut *read).unwrap_or_default();
        for name in references.names() {
            text.extend([b"-r=", module, b",", name, b",p\n"].concat());
        }
    }
    text
}
