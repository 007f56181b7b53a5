//! Runs a backend only when what it compiles has changed: the precise key, of the IR that is there after the import step.
//!
//! A backend whose shard or imports are others than before may still get the same functions. Where promoted locals have stable
//! names, the import step is performed for each backend ([`step`], of [`split_units`] too), and if its result and all else
//! that decides the object are those of the object at its place, that object counts. `docs/precise.md` says why that is right.
//! The state records which object was made under which precise key ([`objects`]), and caches find results by it too. Knows
//! nothing of how backends run.

pub mod objects;
mod split_units;
mod step;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use distlto_planner::digests::FileDigests;
use distlto_prepare::blobs::hex;
use distlto_prepare::mutex::lock;

use crate::describe::basis::Basis;
use crate::result::Key;
use crate::schedule::Site;
use crate::verify::Backend;
use objects::{Known, Objects};
use step::{Importer, Room};

pub use step::{Step, Steps, program};

/// What runs know of precise keys.
#[derive(Debug)]
pub struct Precise {
    objects: Option<Mutex<Objects>>,
    importers: Mutex<HashMap<PathBuf, Option<Arc<Importer>>>>,
    room: Room,
    notes: Mutex<BTreeSet<String>>,
}

/// A backend that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Pending<'a> {
    /// What decides it besides the IR.
    pub basis: &'a Basis,
    /// What it reads.
    pub backend: Backend<'a>,
    /// Where the step may write.
    pub scratch: &'a str,
    /// Where it is to run.
    pub site: Site,
}

impl Precise {
    /// `record` is where objects and their precise keys are recorded; `None` where only a cache keeps them.
    pub fn new(record: Option<&Path>) -> Self {
        Self {
            objects: record.map(|record| Mutex::new(Objects::load(record))),
            importers: Mutex::default(),
            room: Room::default(),
            notes: Mutex::default(),
        }
    }

    /// Whether an object of the same module, compiler and flags is at its place, so that a step could spare its backend.
    pub fn has_earlier(&self, basis: &Basis, object: &str, digests: &FileDigests) -> bool {
        self.known(object, digests).is_some_and(|known| known.stem == basis.stem.hex())
    }

    /// Performs the import step of a backend. `None` where that fails, which is noted.
    pub fn import(&self, pending: &Pending<'_>, steps: &Steps<'_>) -> Option<Step> {
        let importer = self.importer(&pending.basis.compiler)?;
        // What runs here has a slot already.
        let _room = (pending.site == Site::Engine).then(|| self.room.enter());
        match importer.run(pending, steps) {
            Ok(step) => Some(step),
            Err(what) => {
                if !steps.cancel.is_cancelled() {
                    self.note(format!("precise keys are not used for {}: {what}", pending.backend.module));
                }
                None
            }
        }
    }

    /// Whether the object that is at its place was made under this key.
    pub fn is_there(&self, object: &str, key: &Key, digests: &FileDigests) -> bool {
        self.known(object, digests).is_some_and(|known| known.key == hex(&key.0))
    }

    /// Records the key under which an object was made that is in its place; `outputs` are as the command names them, the object
    /// first. What cannot be recorded is compiled next time.
    pub fn made(&self, basis: &Basis, key: &Key, outputs: &[&str], digests: &FileDigests) {
        let Some(objects) = &self.objects else { return };
        let made = lock(objects).made(basis.stem.hex(), hex(&key.0), outputs, digests);
        if let Err(error) = made {
            self.note(format!("objects are not recorded for precise keys: {error}"));
        }
    }

    /// What went wrong since this was asked last, each thing in a sentence.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes)).into_iter().collect()
    }

    fn known(&self, object: &str, digests: &FileDigests) -> Option<Known> {
        lock(self.objects.as_ref()?).known(object, digests)
    }

    fn importer(&self, compiler: &Path) -> Option<Arc<Importer>> {
        let mut importers = lock(&self.importers);
        if let Some(known) = importers.get(compiler) {
            return known.clone();
        }
        let found = Importer::beside(compiler).map(Arc::new).map_err(|lack| self.note(lack)).ok();
        importers.insert(compiler.to_owned(), found.clone());
        found
    }

    fn note(&self, what: String) {
        lock(&self.notes).insert(what);
    }
}
