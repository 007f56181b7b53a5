//! Precise keys: a backend runs only if its IR after the import step has changed, or anything else that decides its
//! object.
//!
//! A backend with another shard or other imports than before may still get the same functions. If promoted locals have
//! stable names, the import step is performed for each backend ([`import_step`], of [`split_units`] too). If a cached object
//! has the same result of that step, and all else that decides it is equal, that object counts. `docs/design/precise.md` says
//! why that is right. Knows nothing of how backends run.

mod import_step;
mod split_units;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use distlto_prepare::mutex::lock;

use crate::describe::basis::Basis;
use crate::schedule::Site;
use crate::verify::Backend;
use import_step::{Importer, StepSlots};

pub use import_step::{ImportStep, ImportSteps, program};

/// State of precise keys that runs share.
#[derive(Debug, Default)]
pub struct Precise {
    importers: Mutex<HashMap<PathBuf, Option<Arc<Importer>>>>,
    slots: StepSlots,
    notes: Mutex<BTreeSet<String>>,
}

/// A backend that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct PendingBackend<'a> {
    /// The parts of its key besides the IR.
    pub basis: &'a Basis,
    /// Its inputs.
    pub backend: Backend<'a>,
    /// Where the step may write.
    pub scratch: &'a str,
    /// Where it is to run.
    pub site: Site,
}

impl Precise {
    /// Performs the import step of a backend. `None` where that fails, which is noted.
    pub fn import(&self, pending: &PendingBackend<'_>, steps: &ImportSteps<'_>) -> Option<ImportStep> {
        let importer = self.importer(&pending.basis.compiler)?;
        // A backend that runs here has a slot already.
        let _slot = (pending.site == Site::Engine).then(|| self.slots.enter());
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

    /// Returns one sentence for each new problem since the last call.
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
