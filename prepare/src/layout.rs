//! Versions of the files on disk: each has a directory of its own, so that several versions of distlto can share one
//! directory.
//!
//! Knows names of directories, nothing of their content.

use std::path::{Path, PathBuf};

use crate::error::PrepareError;
use crate::io_error::IoError;
use crate::write;

/// A version of one kind of kept files.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The prefix of the directory's name.
    pub prefix: &'static str,
    /// The version at its end. Changes when files of another version could be misread.
    pub version: u32,
}

impl Layout {
    /// The directory of this version.
    pub fn root(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}{}", self.prefix, self.version))
    }

    /// The same, made if missing, and marked as one that backups leave out (<https://bford.info/cachedir/>).
    pub fn make(&self, directory: &Path) -> Result<PathBuf, IoError> {
        const TAG: &[u8] =
            b"Signature: 8a477f597d28d172789f06886806bc55\n# distlto makes all of this again.\n";
        let root = self.root(directory);
        if !root.is_dir() {
            std::fs::create_dir_all(&root).map_err(IoError::on("create directory", &root))?;
            // Nobody but backups needs it.
            let _ = write::write_atomically(&root.join("CACHEDIR.TAG"), TAG);
        }
        Ok(root)
    }

    /// Returns the same directory, which must exist. An error calls it by the kind given.
    pub fn existing(&self, directory: &Path, what: &'static str) -> Result<PathBuf, PrepareError> {
        let entries = std::fs::read_dir(directory).map_err(IoError::on("list", directory))?;
        let root = self.root(directory);
        if root.is_dir() {
            return Ok(root);
        }
        let version = |name: &str| name.strip_prefix(self.prefix)?.parse::<u32>().ok();
        let versions = entries.filter_map(|entry| version(entry.ok()?.file_name().to_str()?));
        match versions.max() {
            Some(found) if found > self.version => Err(PrepareError::NewerLayout {
                directory: directory.to_owned(),
                what,
                found,
                known: self.version,
            }),
            _ => Err(PrepareError::NotKept { directory: directory.to_owned(), what }),
        }
    }
}
