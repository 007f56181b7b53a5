//! What an earlier link has left in an index directory.
//!
//! The rule declares nothing of the directory but `index`, so Buck2 removes that alone before it runs the link again.
//! An import list that the linker does not write anew would be taken for this link's.

use std::fs;
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::remove;
use rayon::prelude::*;

use super::index_directory::{IMPORTS, IndexDirectory, SHARD};

/// Removes what an earlier link has left of these modules.
///
/// A directory that holds `index` is left as it is: Buck2 removes that before each run, so whoever has put it there has
/// made the directory for this one.
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
