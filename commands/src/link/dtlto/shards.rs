//! The shards of a link by lld, which are gone when it ends: kept in its state for people to look at and for other commands.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::shard;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::link_or_copy;

use super::modules::LinkModule;

/// Keeps the shard that a module is compiled from, with the names that modules have in every link. What it imports is in the
/// plan.
pub fn keep(directory: &str, module: &LinkModule, labels: &HashMap<&str, &str>) -> Result<(), IoError> {
    let place = ModulePlaces::of(directory, &module.name.label).shard;
    let place = Path::new(&place);
    let is_named_so = |path: &String| labels.get(path.as_str()).is_none_or(|label| label == path);
    if is_named_so(&module.path) && module.imports.iter().all(is_named_so) {
        return link_or_copy(module.shard.as_std_path(), place);
    }
    let shard = fs::read(&module.shard).map_err(IoError::on("read", &module.shard))?;
    let label = |path: &[u8]| Some(labels.get(std::str::from_utf8(path).ok()?)?.as_bytes().to_vec());
    // One of an unknown form is kept as it is: it is for people to look at.
    let shard = shard::rename(&shard, label).unwrap_or(shard);
    keep::shard_at(place, &shard).map(drop)
}

/// Whether a module's shard is kept, be it that of another link.
pub fn is_kept(directory: &str, module: &LinkModule) -> bool {
    Path::new(&ModulePlaces::of(directory, &module.name.label).shard).is_file()
}
