//! Whether an archive concerns LTO at all, so that one that does not is left as it is.
//!
//! Reads member headers and first bytes only; writes nothing.

use std::path::Path;

use crate::archive::Contents;
use crate::error::Error;
use crate::kind::{self, Kind};

/// Whether the archive at `path` has a bitcode member; with `fat_lto`, a FatLTO member counts too.
pub fn holds_bitcode(path: &Path, fat_lto: bool) -> Result<bool, Error> {
    let contents = Contents::open(path, None)?;
    for member in &contents.members {
        let kind = kind_of(&contents.bytes(member)?, fat_lto);
        if matches!(kind, Kind::Bitcode { .. }) || (fat_lto && matches!(kind, Kind::FatLto(_))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Bitcode shows in the first bytes; only FatLTO takes a look at the sections.
fn kind_of(bytes: &[u8], fat_lto: bool) -> Kind {
    if fat_lto { kind::classify(bytes) } else { kind::classify(&bytes[..bytes.len().min(20)]) }
}
