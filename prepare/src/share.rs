//! Files that are wanted in many places with their content of this moment, on disk once where that is safe.
//!
//! Does not depend on the purpose of the places.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::io_error::IoError;
use crate::write;

const WRITABLE: u32 = 0o222;

/// Puts files into places. A file that anybody may still write to is copied, once: an edit by way of a hard link would
/// edit all places, and a build system that makes its outputs read-only would make a source so. The copy cannot be
/// written to, so all further places are hard links to it, as they are to a file that was read-only to begin with.
#[derive(Debug, Default)]
pub struct Sharing {
    /// For each file, the target of further links.
    linked: HashMap<PathBuf, PathBuf>,
}

impl Sharing {
    /// Gives a file this further name.
    pub fn put(&mut self, file: &Path, place: &Path) -> Result<(), IoError> {
        write::remove(place)?;
        if let Some(known) = self.linked.get(file)
            && fs::hard_link(known, place).is_ok()
        {
            return Ok(());
        }
        let from = self.first(file, place)?;
        self.linked.insert(file.to_owned(), from);
        Ok(())
    }

    /// Fills the first place. Returns the target of further links.
    fn first(&self, file: &Path, place: &Path) -> Result<PathBuf, IoError> {
        let real = file.canonicalize().map_err(IoError::on("read", file))?;
        let mode = fs::metadata(&real).map_err(IoError::on("read", file))?.permissions().mode();
        if mode & WRITABLE == 0 && fs::hard_link(&real, place).is_ok() {
            return Ok(real);
        }
        reflink_copy::reflink_or_copy(&real, place).map_err(IoError::on("copy", place))?;
        let readable = Permissions::from_mode(mode & !WRITABLE);
        fs::set_permissions(place, readable).map_err(IoError::on("change the mode of", place))?;
        Ok(place.to_owned())
    }
}
