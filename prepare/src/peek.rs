//! Whether an archive has to be unpacked for a link, so that one that need not be is left as it is.
//!
//! Reads member headers and first bytes only; writes nothing.

use std::collections::HashSet;
use std::path::Path;

use crate::archive::{Contents, last_component};
use crate::error::Error;
use crate::kind::{self, Kind};

/// Whether a link needs the members of the archive at `path` as files: it holds bitcode (with `fat_lto`, a FatLTO member
/// counts), or members of one name, which a linker's trace does not tell apart.
pub fn needs_unpacking(path: &Path, fat_lto: bool) -> Result<bool, Error> {
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
