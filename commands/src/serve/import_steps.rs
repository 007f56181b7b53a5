//! Import steps after an edit: a module that imports the same as before has the object that it had.
//!
//! A module is tried if nothing but the contents of its imports has changed since the last link, as far as the linker's shard
//! says. Does not decide when a step is performed.

use std::path::PathBuf;

use distlto_executor::import_step::object_in;
use distlto_planner::backend_flags::{BackendFiles, BackendFlags};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::words::Word;

use super::describe::Described;
use super::link::Link;
use super::module::{LinkModule, triple};
use super::module_record::RecordedObject;

/// A step that may be performed.
pub struct PendingStep {
    /// The command of the backend.
    pub words: Vec<Word>,
    /// The folder for its files.
    pub folder: PathBuf,
    /// The object of the last link.
    pub earlier: RecordedObject,
}

/// The compiler for import steps and its flags; `None` if there is none.
pub fn importer<'a>(link: &'a Link<'_>) -> Option<&'a (String, BackendFlags)> {
    link.importer.get_or_init(|| link.build.importer(&link.command)).as_ref()
}

/// The object of the last link, if a module may still have it.
pub fn candidate<'a>(link: &'a Link<'_>, module: &LinkModule) -> Option<&'a RecordedObject> {
    let earlier = link.earlier.last(&module.label)?;
    let (before, now) = (&earlier.provenance, &module.provenance);
    let is_plain = earlier.files.len() == 1 && earlier.warnings.is_empty() && !before.depends_on_directory();
    let parts = before.parts.as_ref().zip(now.parts.as_ref());
    let differs_in_imports = parts.is_some_and(|(one, other)| one.has_same_rest(other));
    let is_candidate = is_plain
        && differs_in_imports
        && !earlier.key.is_empty()
        && !before.imported.is_empty()
        && before.decisions == now.decisions;
    Some(earlier).filter(|_| is_candidate && link.import_steps.pay())
}

impl PendingStep {
    /// The step of a module whose files are described, and whose shard is in its place.
    pub fn of(
        link: &Link<'_>,
        described: &Described,
        (compiler, flags): &(String, BackendFlags),
        earlier: &RecordedObject,
    ) -> Self {
        let names = ModulePlaces::of(link.state(), &described.label);
        let folder = link.here(&format!("{}.import", names.object));
        let object = object_in(&folder);
        let files = BackendFiles { module: &described.file, shard: &names.shard, object: &object, dwo: None };
        let mut words = flags.shared_words(compiler);
        words.extend(files.args(&triple(&link.here(&described.file))));
        let words = words.into_iter().map(String::into_bytes).collect();
        Self { words, folder, earlier: earlier.clone() }
    }
}
