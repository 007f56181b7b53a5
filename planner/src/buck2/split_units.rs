//! Refuses links with split LTO units: no backend would compile the regular LTO part of such a unit.
//!
//! A backend compiles a unit's first module only; the second, with vtables, goes into a regular LTO that a thin link
//! throws away. Modules are read only where the shards say that units are split at all. Independent of plans.

use std::fs;

use distlto_prepare::io_error::IoError;
use rayon::prelude::*;

use super::error::Buck2PlanError;
use super::index_directory::{IndexDirectory, SHARD};
use super::listing::Listing;
use super::modules::LinkedModules;
use crate::{module, shard};

/// Index flags: all units of the link may be split, or some.
const SPLIT: u64 = 0x8 | 0x10;

/// Refuses a link that has loaded a split unit.
pub fn refuse(
    modules: &LinkedModules<'_>,
    listing: &Listing<'_>,
    directory: &IndexDirectory,
) -> Result<(), Buck2PlanError> {
    let loaded: Vec<usize> = (0..modules.slots.len()).filter(|&slot| listing.as_bitcode[slot]).collect();
    let mut file = String::new();
    let flags = loaded.iter().find_map(|&slot| {
        directory.module_file(&mut file, modules.slots[slot].path, SHARD);
        let bytes = fs::read(&*IndexDirectory::written(&file)).ok()?;
        shard::read(&bytes).ok().filter(|shard| !shard.modules.is_empty()).map(|shard| shard.flags)
    });
    if flags.is_none_or(|flags| flags & SPLIT == 0) {
        return Ok(());
    }
    loaded.par_iter().try_for_each(|&slot| {
        let path = modules.slots[slot].path;
        let bytes = fs::read(path).map_err(IoError::on("read", path))?;
        // The backend fails on an unreadable module too, and reports the error.
        match module::read(&bytes) {
            Ok(read) if read.split_unit => Err(Buck2PlanError::SplitUnit { module: path.to_owned() }),
            _ => Ok(()),
        }
    })
}
