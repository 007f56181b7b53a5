//! The objects of the last link that a linker opens by itself: a list of them for the linker, and the check of those that
//! it has opened.
//!
//! An object counts if the linker, its options, its key and the module's shard are those of the last link. Its content is
//! compared with its digest before the linker reads it. Does not answer questions.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;

use distlto_executor::cache::store::Cache;
use distlto_executor::trace::{Trace, memory};
use distlto_planner::digests::Digest;
use rayon::prelude::*;

use super::key_parts::{Identity, short};
use super::link::Link;
use super::module_record::{PreviousModules, RecordedObject};
use super::protocol::{KeptObject, Question, shard_hash};

/// The name of an object for its linker: the linker's own key and the hash of the module's shard.
pub fn name(question: &Question<'_>, shard: &[u8]) -> String {
    format!("{} {:016x}", String::from_utf8_lossy(question.key), shard_hash(shard))
}

/// A list of the last link's objects for a linker; `None` if there are none.
pub fn list(earlier: &PreviousModules, identity: &Identity, store: &Cache) -> io::Result<Option<File>> {
    let identity = short(&identity.digest);
    let all = earlier.all().iter().enumerate().filter(|(_, object)| object.identity == identity);
    let mut objects: Vec<KeptObject> = all.filter_map(|(place, object)| kept(place, object)).collect();
    if objects.is_empty() {
        return Ok(None);
    }
    objects.sort_unstable();
    let folder = store.outputs();
    let folder = folder.as_os_str().as_bytes();
    let size = u32::try_from(folder.len()).map_err(io::Error::other)?;
    let mut bytes = [&size.to_le_bytes(), folder].concat();
    objects.iter().for_each(|object| bytes.extend(object.to_bytes()));
    let mut file = memory(0)?;
    file.write_all(&bytes)?;
    file.rewind()?;
    Ok(Some(file))
}

fn kept(place: usize, object: &RecordedObject) -> Option<KeptObject> {
    let is_plain =
        object.files.len() == 1 && object.warnings.is_empty() && !object.provenance.depends_on_directory();
    let (key, shard) = object.asked.split_once(' ').filter(|_| is_plain && !object.key.is_empty())?;
    Some(KeptObject {
        key: key.as_bytes().try_into().ok()?,
        shard: u64::from_str_radix(shard, 16).ok()?.to_be_bytes(),
        digest: Digest::parse(&object.files[0].1)?.hash,
        place: u32::try_from(place).ok()?.to_le_bytes(),
    })
}

/// The objects that a linker has opened, each with its module.
pub fn opened<'a>(link: &'a Link<'_>, trace: &Trace) -> Vec<(String, &'a RecordedObject)> {
    let object = |(place, module): &(u32, Vec<u8>)| {
        let object = link.earlier.all().get(usize::try_from(*place).ok()?)?;
        Some((String::from_utf8_lossy(module).into_owned(), object))
    };
    trace.kept.iter().filter_map(object).collect()
}

/// Whether all these objects have the content that they had. The store drops the others.
pub fn are_whole(link: &Link<'_>, opened: &[(String, &RecordedObject)]) -> bool {
    let damaged = |(_, object): &&(String, &RecordedObject)| link.objects().open(object).is_none();
    opened.par_iter().filter(damaged).count() == 0
}
