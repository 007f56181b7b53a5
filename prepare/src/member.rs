//! One member of an archive, known by its name and the offset of its header, as a file.
//!
//! Linkers name modules so: `libx.a(m.o at 118)` is the member m.o with its header at byte 118 of libx.a (`BitcodeFile`
//! in `lld/ELF/InputFiles.cpp`). Knows nothing of how such a name is spelled.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use object::read::archive::{ArchiveFile, ArchiveOffset};
use thiserror::Error;

use crate::error;
use crate::input::Input;
use crate::io_error::IoError;
use crate::kind::{Kind, classify};
use crate::names::printable;
use crate::store::Store;
use crate::write;

/// Why a member could not be taken out of its archive.
#[derive(Debug, Error, Diagnostic)]
pub enum MemberError {
    /// The archive cannot be read, is not one, or its thin member is missing.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Archive(#[from] error::PrepareError),
    /// The file cannot be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// At that place there is no member, or another one.
    #[error("{} has no member {name} at byte {offset}; there is {found}", archive.display())]
    #[diagnostic(code(distlto::bad_input), help("the archive has changed since the thin link: link again"))]
    NotThere {
        /// The archive.
        archive: PathBuf,
        /// The member's name.
        name: String,
        /// The offset of its header.
        offset: u64,
        /// The content there instead.
        found: String,
    },
}

/// Writes a member of `archive` to `path`: the one with its header at `offset` and `name` as the last component of its
/// name. The content is kept in `store`, and taken from there when an equal one is kept.
pub fn place(
    archive: &Path,
    name: &[u8],
    offset: u64,
    store: Option<&Store>,
    path: &Path,
) -> Result<(), MemberError> {
    let input = Input::open(archive)?;
    let not_there = |found: String| MemberError::NotThere {
        archive: archive.to_owned(),
        name: printable(name),
        offset,
        found,
    };
    if !matches!(classify(&input), Kind::Archive { .. }) {
        let found = classify(&input).to_string();
        return Err(error::PrepareError::NotAnArchive { path: archive.to_owned(), found }.into());
    }
    let malformed = |problem: object::Error| error::PrepareError::Malformed {
        path: archive.to_owned(),
        place: "its first members (symbol table, long names)".to_owned(),
        problem: problem.to_string(),
    };
    let file = ArchiveFile::parse(&input[..]).map_err(malformed)?;
    let member =
        file.member(ArchiveOffset(offset)).map_err(|_| not_there("no member's header".to_owned()))?;
    let own = member.name().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if own != name {
        return Err(not_there(format!("`{}`", printable(member.name()))));
    }
    let beside;
    let bytes = if file.is_thin() && member.is_thin() {
        let file = archive.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(member.name()));
        beside = Input::open(&file)?;
        &beside[..]
    } else {
        member.data(&input[..]).map_err(|_| not_there("one that ends beyond the archive".to_owned()))?
    };
    match store {
        Some(store) => store.place(&blake3::hash(bytes), bytes, path)?,
        None => write::write_atomically(path, bytes)?,
    }
    Ok(())
}
