//! Mends shards with module paths that are not ASCII: LLVM garbles such paths, and no backend would find the module.
//!
//! A shard names its module and the modules of its import list, sorted by their bytes (`writeIndexFile` walks a sorted
//! map). The import list is correct, so its paths replace the garbled ones. Independent of plans.

use std::fs;
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::write_atomically;

use super::error::Buck2PlanError;
use super::listing::lines;
use crate::bitcode::ModuleHash;
use crate::words::path_of;
use crate::{module, shard};

/// Mends a shard, which has `module` and the lines of `imports`; where all of these are ASCII it is right already.
pub fn mend(shard: &str, module: &str, imports: &[u8]) -> Result<(), Buck2PlanError> {
    // An import list that is not UTF-8 is refused by its reader.
    if (module.is_ascii() && imports.is_ascii()) || std::str::from_utf8(imports).is_err() {
        return Ok(());
    }
    let bytes = match fs::read(shard) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(IoError::on("read", shard)(error).into()),
    };
    let found = shard::read(&bytes).map_err(|source| garbled(shard, source.to_string()))?;
    if found.modules.is_empty() {
        // The linker writes a stub shard for a module that it did not load.
        return Ok(());
    }
    let mut paths: Vec<&[u8]> = lines(imports).chain([module.as_bytes()]).collect();
    paths.sort_unstable();
    paths.dedup();
    let fits = |(found, path): (&shard::ShardModule, &&[u8])| {
        if path.is_ascii() { found.path == *path } else { found.path.len() == path.len() }
    };
    if found.modules.len() != paths.len() || !found.modules.iter().zip(&paths).all(fits) {
        return Err(garbled(shard, "it names other modules than its import list".to_owned()));
    }
    // Where a path is garbled, the hash behind it is too.
    let named: Vec<_> =
        paths.iter().map(|&path| (path, if path.is_ascii() { None } else { hash_of(path) })).collect();
    let mended = shard::rename_all(&bytes, &named).map_err(|source| garbled(shard, source.to_string()))?;
    Ok(write_atomically(Path::new(shard), &mended)?)
}

/// Reads the hash of a module that the thin link has just read. `None` if that fails or the module has no hash; a
/// backend then reports the error.
fn hash_of(path: &[u8]) -> Option<ModuleHash> {
    module::read(&fs::read(path_of(path)).ok()?).ok()?.hash
}

fn garbled(shard: &str, because: String) -> Buck2PlanError {
    Buck2PlanError::Garbled { file: shard.into(), because }
}
