//! Runs a backend only when what it compiles has changed: the precise key, of the IR that is there after the import step.
//!
//! A backend whose shard or imports are others than before may still get the same functions. Where promoted locals have stable
//! names, the import step is performed for each backend ([`step`], of [`split_units`] too), and if its result and all else
//! that decides the object are those of an object in a cache, that object counts. `docs/precise.md` says why that is right.
//! Knows nothing of how backends run.

mod split_units;
mod step;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use distlto_prepare::mutex::lock;

use crate::describe::basis::Basis;
use crate::schedule::Site;
use crate::verify::Backend;
use step::{Importer, Room};

pub use step::{Step, Steps, program};

/// What runs know of precise keys.
#[derive(Debug, Default)]
pub struct Precise {
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

    /// What went wrong since this was asked last, each thing in a sentence.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes)).into_iter().collect()
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
