//! Describes the inputs of a module's backend: its shard, completed and with paths for a compiler, and its imports.
//!
//! Compiles nothing.

use distlto_planner::shard::{self, Cost, Shard};
use distlto_prepare::io_error::IoError;

use super::modules::ModuleFiles;
use super::settings::ModuleFlags;
use crate::completion::Completion;

/// The inputs of a module's backend.
pub struct Described {
    /// The module's label.
    pub label: String,
    /// The archive that holds it, and where in that its header is.
    pub archive: Option<(String, usize)>,
    /// The file that its compiler reads.
    pub file: String,
    /// The files of the modules that it imports from, in the order of the shard.
    pub imports: Vec<String>,
    /// The labels of these modules, in the same order.
    pub labels: Vec<String>,
    /// The shard.
    pub shard: Vec<u8>,
    /// The cost of compiling it.
    pub cost: Cost,
    /// The module's recorded flags, with --flags-from.
    pub flags: ModuleFlags,
}

/// Why distlto does not compile a module.
pub enum Unfit {
    /// The linker compiles it itself.
    Because(String),
    /// A file could not be read or written.
    Io(IoError),
}

impl From<IoError> for Unfit {
    fn from(error: IoError) -> Self {
        Self::Io(error)
    }
}

/// Describes a module from its linker's shard and symbol resolution.
pub fn describe(
    files: &mut ModuleFiles,
    completion: Option<&mut Completion<'_>>,
    id: &str,
    bytes: &[u8],
) -> Result<Described, Unfit> {
    let unfit = |error: &dyn std::fmt::Display| Unfit::Because(error.to_string());
    let read = shard::read(bytes).map_err(|error| unfit(&error))?;
    let completed = completed(files, completion, id, bytes)?;
    let ids = modules_of(&read, id)?;
    let mut places = files.places(&ids)?;
    let place_of = |path: &[u8]| {
        let at = ids.iter().position(|id| id.as_bytes() == path)?;
        Some(places[at].clone().into_bytes())
    };
    let shard = shard::rename(&completed, place_of).map_err(|error| unfit(&error))?;
    let imports = places.split_off(1);
    let labels = ids[1..].iter().map(|import| files.label(import)).collect();
    Ok(Described {
        label: files.label(id),
        archive: files.archive_of(id).map(|(archive, offset)| (archive.to_owned(), offset)),
        file: places.swap_remove(0),
        imports,
        labels,
        shard,
        cost: read.cost(id).unwrap_or_default(),
        flags: ModuleFlags::default(),
    })
}

/// A shard, completed where the linker has given its symbol resolution.
pub fn completed(
    files: &mut ModuleFiles,
    completion: Option<&mut Completion<'_>>,
    id: &str,
    bytes: &[u8],
) -> Result<Vec<u8>, Unfit> {
    let read = shard::read(bytes).map_err(|error| Unfit::Because(error.to_string()))?;
    modules_of(&read, id)?;
    let Some(known) = completion else { return Ok(bytes.to_vec()) };
    known
        .complete(bytes, id, &mut |id| files.references(id))
        .map_err(|error| Unfit::Because(error.to_string()))
}

/// The modules that a shard names: its own, then those that it imports from.
fn modules_of<'s>(shard: &'s Shard, own: &'s str) -> Result<Vec<&'s str>, Unfit> {
    if !shard.modules.iter().any(|module| module.path == own.as_bytes()) {
        return Err(Unfit::Because("LLVM cannot write its name into a shard".to_owned()));
    }
    let imports = shard.imported_from(own).map(|import| std::str::from_utf8(&import.path));
    let imports: Result<Vec<&str>, _> = imports.collect();
    let imports = imports
        .map_err(|_| Unfit::Because("a module that it imports has a name that is not UTF-8".to_owned()))?;
    Ok([own].into_iter().chain(imports).collect())
}
