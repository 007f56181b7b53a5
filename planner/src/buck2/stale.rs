//! Removes an earlier link's files from an index directory.
//!
//! The rule declares nothing of the directory but `index`, so Buck2 removes that alone before it runs the link again.
//! An import list that the linker does not write anew would be taken for this link's.

use std::fs;
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;
use rayon::prelude::*;

use super::index_directory::{IMPORTS, IndexDirectory, SHARD};

/// Removes an earlier link's `index.full`, and its shards and import lists of these modules.
///
/// Does nothing if the directory holds `index`: Buck2 removes that file before each run, so the directory was made for
/// this link.
pub fn remove_left<'m>(
    directory: &IndexDirectory,
    modules: impl ParallelIterator<Item = &'m str>,
) -> Result<(), IoError> {
    let Ok(mut entries) = fs::read_dir(directory.path()) else { return Ok(()) };
    if entries.next().is_none() || Path::new(&directory.file("index")).exists() {
        return Ok(());
    }
    remove(Path::new(&directory.file("index.full")))?;
    modules.try_for_each_init(String::new, |file, module| {
        for suffix in [SHARD, IMPORTS] {
            let file = directory.module_file(file, module, suffix);
            match remove(Path::new(&*IndexDirectory::written(file))) {
                // A file where this link needs a directory is the linker's to complain about.
                Err(error) if error.source.kind() == std::io::ErrorKind::NotADirectory => {}
                other => other?,
            }
        }
        Ok(())
    })
}
