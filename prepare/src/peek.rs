//! What an archive says without being unpacked: whether it has to be, for a link, so that one that need not be is left as
//! it is, and which other files it is made of.
//!
//! Reads member headers and first bytes only; writes nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::archive::{Content, Contents, last_component};
use crate::error::PrepareError;
use crate::input::Input;
use crate::io_error::IoError;
use crate::kind::{self, Kind};

/// Whether a link needs the members of the archive at `path` as files: it holds bitcode (with `fat_lto`, a FatLTO member
/// counts), or members of one name, which a linker's trace does not tell apart.
pub fn needs_unpacking(path: &Path, fat_lto: bool) -> Result<bool, PrepareError> {
    let contents = Contents::open(path, None)?;
    let mut names = HashSet::new();
    for member in &contents.members {
        let kind = kind_of(&contents.bytes(member)?, fat_lto);
        let bitcode = matches!(kind, Kind::Bitcode { .. }) || (fat_lto && matches!(kind, Kind::FatLto(_)));
        if bitcode || !names.insert(last_component(&member.name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bitcode shows in the first bytes; only FatLTO takes a look at the sections.
fn kind_of(bytes: &[u8], fat_lto: bool) -> Kind {
    if fat_lto { kind::classify(bytes) } else { kind::classify(&bytes[..bytes.len().min(20)]) }
}

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
