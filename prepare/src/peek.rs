//! Which other files an archive is made of.
//!
//! Reads member headers and first bytes only; writes nothing.

use std::path::{Path, PathBuf};

use crate::archive::{Content, Contents};
use crate::error::PrepareError;
use crate::input::Input;
use crate::io_error::IoError;
use crate::kind::{self, Kind};

/// The files that a thin archive names, those of nested archives too; none for any other file.
pub fn files_beside(path: &Path) -> Result<Vec<PathBuf>, PrepareError> {
    let thin =
        |head: &[u8]| matches!(kind::classify(&head[..head.len().min(8)]), Kind::Archive { thin: true });
    if !Input::begins_with(path, thin).map_err(IoError::on("read", path))? {
        return Ok(Vec::new());
    }
    let contents = Contents::open(path, None)?;
    let members = contents.members.into_iter().filter_map(|member| match member.content {
        Content::Beside { path, .. } => Some(path),
        Content::Inside { .. } => None,
    });
    Ok(contents.sources.into_iter().skip(1).map(|(path, _)| path).chain(members).collect())
}
