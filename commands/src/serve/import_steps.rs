//! Import steps after an edit: a module that imports the same as before has the object that it had.
//!
//! A module is tried if nothing but the contents of its imports has changed since the last link, as far as the linker's shard
//! says. Does not decide when a step is performed.

use std::path::PathBuf;
use std::sync::OnceLock;

use distlto_executor::import_step::{ImportSteps, object_in};
use distlto_planner::backend_flags::{BackendFiles, BackendFlags};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::words::Word;

use super::answering::Answering;
use super::describe::Described;
use super::module::{LinkModule, triple};
use super::module_record::RecordedObject;

/// The import steps of one link.
#[derive(Debug, Default)]
pub struct LinkImports {
    pub steps: ImportSteps,
    /// The compiler and its flags, once a step needs them; `None` if they cannot be told.
    compiler: OnceLock<Option<(String, BackendFlags)>>,
}

/// A step that may be performed.
pub struct PendingStep {
    /// The command of the backend.
    pub words: Vec<Word>,
    /// The folder for its files.
    pub folder: PathBuf,
    /// The object of the last link.
    pub earlier: RecordedObject,
}

impl LinkImports {
    /// The compiler and its flags; `ask` is called once.
    pub fn compiler(
        &self,
        ask: impl FnOnce() -> Option<(String, BackendFlags)>,
    ) -> Option<&(String, BackendFlags)> {
        self.compiler.get_or_init(ask).as_ref()
    }
}

/// The object of the last link, if a module may still have it.
pub fn candidate<'a>(answering: &Answering<'a>, module: &LinkModule) -> Option<&'a RecordedObject> {
    let earlier = answering.earlier.last(&module.label)?;
    let is_plain = earlier.files.len() == 1 && earlier.warnings.is_empty() && !earlier.depends_on_directory();
    let differs_in_imports = earlier
        .parts
        .as_ref()
        .zip(module.parts.as_ref())
        .is_some_and(|(one, other)| one.has_same_rest(other));
    let is_candidate = is_plain
        && differs_in_imports
        && !earlier.key.is_empty()
        && !earlier.imported.is_empty()
        && earlier.decisions == module.decisions;
    Some(earlier).filter(|_| is_candidate && answering.imports.steps.pay())
}

impl PendingStep {
    /// The step of a module whose files are described, and whose shard is in its place.
    pub fn of(
        answering: &Answering<'_>,
        described: &Described,
        (compiler, flags): &(String, BackendFlags),
        earlier: &RecordedObject,
    ) -> Self {
        let names = ModulePlaces::of(answering.session.directory, &described.label);
        let folder = answering.here(&format!("{}.import", names.object));
        let object = object_in(&folder);
        let files = BackendFiles { module: &described.file, shard: &names.shard, object: &object, dwo: None };
        let mut words = flags.shared_words(compiler);
        words.extend(files.args(&triple(&answering.here(&described.file))));
        let words = words.into_iter().map(String::into_bytes).collect();
        Self { words, folder, earlier: earlier.clone() }
    }
}
