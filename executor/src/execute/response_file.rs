//! Commands that are too long for the system: their arguments go to a response file.
//!
//! Every tool of LLVM takes one. The limits are those of `execve(2)`; the planner quotes the words. Does not depend on
//! the kind of command.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use distlto_planner::response;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::TEMPORARY_PREFIX;
use tempfile::NamedTempFile;

/// A command that the system takes; the file, if one was needed, goes when this is dropped.
#[derive(Debug)]
pub struct Fitting<'a> {
    /// The program and its arguments.
    pub words: Cow<'a, [Word]>,
    file: Option<NamedTempFile>,
}

impl Fitting<'_> {
    /// The file, if one was needed.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(NamedTempFile::path)
    }
}

/// The command as it is, or with its arguments in a file where they are too long.
pub fn fit(words: &[Word]) -> Result<Fitting<'_>, IoError> {
    if fits(words) {
        return Ok(Fitting { words: Cow::Borrowed(words), file: None });
    }
    // A response file cannot hold an empty word, so those stay on the command line with all before them.
    let outside = words.iter().rposition(Vec::is_empty).map_or(1, |last| last + 1).min(words.len());
    let (outside, inside) = words.split_at(outside);
    let directory = std::env::temp_dir();
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .suffix(".rsp")
        .tempfile_in(&directory)
        .map_err(IoError::on("write a response file into", &directory))?;
    let content = response::content(inside.iter().map(Vec::as_slice));
    file.write_all(&content).map_err(IoError::on("write", file.path()))?;
    let mut words = outside.to_vec();
    words.push([b"@", file.path().as_os_str().as_encoded_bytes()].concat());
    Ok(Fitting { words: Cow::Owned(words), file: Some(file) })
}

/// Whether the system takes these words and the environment as one command. `execve(2)` counts the strings, their
/// ends and a pointer to each; one string may take 32 pages.
fn fits(words: &[Word]) -> bool {
    const POINTER: usize = size_of::<usize>();
    const ONE: usize = 128 << 10;
    // POSIX asks to leave 2048 bytes to the program itself.
    const SPARE: usize = 4096;
    let words_size: usize = words.iter().map(|word| word.len() + 1 + POINTER).sum();
    // A quarter of the smallest limit in use (macOS: 1 MiB) needs no look at the environment.
    if words_size < 32 << 10 {
        return true;
    }
    let environment: usize =
        std::env::vars_os().map(|(name, value)| name.len() + value.len() + 2 + POINTER).sum();
    words.iter().all(|word| word.len() < ONE) && words_size + environment + SPARE < limit()
}

fn limit() -> usize {
    // SAFETY: sysconf(3) takes a number and touches no memory of ours.
    let limit = unsafe { libc::sysconf(libc::_SC_ARG_MAX) };
    // Every Linux and macOS allows at least 128 KiB.
    usize::try_from(limit).unwrap_or(128 << 10)
}
