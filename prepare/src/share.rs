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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// A file with this mode, put into three places, and the number of names of it and of each place.
    fn names(mode: u32) -> (u64, [u64; 3]) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "content").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
        let mut sharing = Sharing::default();
        let places = ["a", "b", "c"].map(|name| folder.path().join(name));
        places.iter().for_each(|place| sharing.put(&file, place).expect("put"));
        let links = |path: &PathBuf| fs::metadata(path).expect("a file").nlink();
        (links(&file), places.each_ref().map(links))
    }

    #[test]
    fn a_file_that_cannot_be_written_to_is_everywhere_itself() {
        assert_eq!(names(0o444), (4, [4; 3]));
    }

    #[test]
    fn what_can_be_written_to_is_copied_once() {
        assert_eq!(names(0o644), (1, [3; 3]));
    }

    #[test]
    fn a_place_keeps_what_the_file_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, place) = (folder.path().join("file"), folder.path().join("place"));
        fs::write(&file, "old").expect("written");
        Sharing::default().put(&file, &place).expect("put");
        fs::write(&file, "new").expect("written");
        assert_eq!(fs::read(&place).expect("read"), b"old");
        Sharing::default().put(&file, &place).expect("put again");
        assert_eq!(fs::read(&place).expect("read"), b"new");
    }
}
