//! Runs a backend only when what it compiles has changed: the precise key, of the IR that is there after the import step.
//!
//! A backend whose shard or imports are others than before may still get the same functions. Where an object of the same
//! module, compiler and flags is there, the import step alone is performed ([`step`], of [`split_units`] too), and if its
//! result and all else that decides the object are the same, that object counts. `docs/precise.md` says why that is right. Which
//! object was made under which precise key is recorded in the state ([`objects`]), and caches find results by it too. [`pays`]
//! says when it is tried. Knows nothing of how backends run.

pub mod objects;
mod pays;
mod split_units;
mod step;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use distlto_planner::digests::{Digest, FileDigests};
use distlto_prepare::blobs::hex;
use distlto_prepare::mutex::lock;

use crate::describe::basis::Basis;
use crate::result::Key;
use crate::schedule::Site;
use crate::verify::Backend;
use objects::{Known, Made, Objects};
use pays::Pays;
use step::{Importer, Room};

pub use step::Steps;

/// The most backends that are few.
const FEW: usize = 3;

/// How a run's backends and its slots compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// As many are idle as there are backends: there is one for a step beside its backend, if it saves nothing now.
    pub beside: bool,
    /// There are few backends and a slot for each: a step that spares none delays its own, while the others run, that of the
    /// edited module among them.
    pub few: bool,
}

impl Slots {
    /// Of so many backends, and so many slots, which the run may have to share.
    pub fn new(backends: usize, slots: usize, are_shared: bool) -> Self {
        Self { beside: 2 * backends <= slots && !are_shared, few: backends <= slots.min(FEW) }
    }
}

/// When import steps are performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Never.
    Off,
    /// Where an object of the same module and flags is there, and it pays.
    #[default]
    Auto,
    /// Before every backend that runs, so that its result is found by its precise key from the first time on.
    Eager,
}

impl Mode {
    /// What is to be loaded for a link before its first import step is known: the program that performs those of this
    /// compiler, where they spare backends as a rule. `record` is as for [`Precise::new`].
    pub fn program(self, compiler: &Path, record: &Path) -> Option<PathBuf> {
        let is_expected = || {
            let (tried, saved) = Objects::load(record).outcomes();
            pays::is_known_to_save(tried, saved)
        };
        (self != Self::Off && is_expected()).then(|| step::program(compiler)).flatten()
    }
}

/// What runs know of precise keys.
#[derive(Debug)]
pub struct Precise {
    mode: Mode,
    objects: Option<Mutex<Objects>>,
    importers: Mutex<HashMap<PathBuf, Option<Arc<Importer>>>>,
    pays: Mutex<Pays>,
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
    /// Where its object belongs, as the command names it.
    pub object: &'a str,
    /// Where the step may write.
    pub scratch: &'a str,
    /// Where it is to run.
    pub site: Site,
    /// How long it takes, by estimate.
    pub estimate: Duration,
}

/// What an import step gave.
#[derive(Debug)]
pub struct Imported {
    /// The IR that is compiled.
    pub merged: Digest,
    /// What it cost.
    pub took: Duration,
    /// What is known of the object at its place.
    known: Option<Known>,
}

impl Imported {
    /// The precise key of the object at its place, if that is known.
    fn key(&self) -> Option<&String> {
        self.known.as_ref()?.key.as_ref()
    }
}

impl Precise {
    /// `None` where nothing is to be tried. `record` is where objects and their precise keys are recorded.
    pub fn new(mode: Mode, record: Option<&Path>) -> Option<Self> {
        (mode != Mode::Off).then(|| {
            let objects = record.map(Objects::load);
            let (tried, saved) = objects.as_ref().map_or((0, 0), Objects::outcomes);
            Self {
                mode,
                objects: objects.map(Mutex::new),
                importers: Mutex::default(),
                pays: Mutex::new(Pays::after(tried, saved)),
                room: Room::default(),
                notes: Mutex::default(),
            }
        })
    }

    /// A run begins whose backends take so long, by estimate.
    pub fn begin(&self, backends: Duration) {
        lock(&self.pays).begin(backends);
    }

    /// A backend of the run that takes so long does not run, as a cache has its result.
    pub fn is_kept(&self, estimate: Duration) {
        lock(&self.pays).is_kept(estimate);
    }

    /// Whether a backend that takes so long is of interest.
    pub fn wants(&self, estimate: Duration) -> bool {
        self.mode == Mode::Eager || pays::could_gain(estimate)
    }

    /// Whether a step's key can be compared with that of the object which is at its place.
    pub fn has_key(&self, object: &str, digests: &FileDigests) -> bool {
        let known = self.objects().and_then(|objects| objects.known(object, digests));
        known.is_some_and(|known| known.key.is_some())
    }

    /// Performs the import step of a backend, if an object of the same module and flags is there and it pays.
    pub fn import(
        &self,
        pending: &Pending<'_>,
        steps: &Steps<'_>,
        digests: &FileDigests,
    ) -> Option<Imported> {
        let known = self.objects().and_then(|objects| objects.known(pending.object, digests));
        let known = known.filter(|known| known.stem == pending.basis.stem.hex());
        let pays = |known: &Known| self.pays(known, pending.estimate, steps.slots);
        if self.mode != Mode::Eager && !known.as_ref().is_some_and(pays) {
            return None;
        }
        let importer = self.importer(&pending.basis.compiler)?;
        // What runs here has a slot already.
        let _room = (pending.site == Site::Engine).then(|| self.room.enter());
        match importer.run(pending, steps) {
            Ok(step) => {
                lock(&self.pays).took(pending.estimate, step.took);
                Some(Imported { merged: step.merged, took: step.took, known })
            }
            Err(what) => {
                if !steps.cancel.is_cancelled() {
                    self.note(format!("precise keys are not used for {}: {what}", pending.backend.module));
                }
                None
            }
        }
    }

    /// Whether the step of a backend that takes so long is expected to pay, of whose object this is known.
    fn pays(&self, known: &Known, estimate: Duration, slots: Slots) -> bool {
        match known {
            Known { wait: 1.., .. } => false,
            Known { key: None, .. } if slots.beside => lock(&self.pays).may_learn(estimate, true),
            Known { misses: 1.., .. } if slots.few => false,
            Known { key: None, .. } => lock(&self.pays).may_learn(estimate, false),
            Known { key: Some(_), .. } => lock(&self.pays).expects_gain(estimate),
        }
    }

    /// Whether the object that is at its place was made under this key.
    pub fn is_there(&self, imported: &Imported, key: &Key) -> bool {
        imported.key().is_some_and(|known| *known == hex(&key.0))
    }

    /// Whether an import step spared its backend, as the object at its place or a cache's result serves.
    pub fn spared(&self, imported: &Imported, is_spared: bool) {
        // One that could be compared with nothing says nothing of those that can.
        if is_spared || imported.key().is_some() {
            lock(&self.pays).tried(imported.took, is_spared);
        }
    }

    /// Records an object that is in its place with the key under which it was made, if that is known. What cannot be recorded
    /// is compiled next time.
    pub fn made(
        &self,
        basis: &Basis,
        imported: Option<(&Imported, &Key)>,
        outputs: &[&str],
        digests: &FileDigests,
    ) {
        let Some(mut objects) = self.objects() else { return };
        let made = Made { stem: basis.stem.hex(), key: imported.map(|(_, key)| hex(&key.0)), outputs };
        let before = imported.and_then(|(imported, _)| imported.known.as_ref());
        if let Err(error) = objects.made(&made, before, digests) {
            drop(objects);
            self.note(format!("objects are not recorded for precise keys: {error}"));
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

    fn objects(&self) -> Option<std::sync::MutexGuard<'_, Objects>> {
        self.objects.as_ref().map(lock)
    }

    fn note(&self, what: String) {
        lock(&self.notes).insert(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// A link in which the object was made under `key`, after its step if the backend before had one.
    fn link(precise: &Precise, object: &str, key: Option<&str>, digests: &FileDigests) {
        let known = precise.objects().and_then(|objects| objects.known(object, digests));
        let made = Made { stem: String::new(), key: key.map(str::to_owned), outputs: &[object] };
        let mut objects = precise.objects().expect("a record");
        objects.made(&made, known.filter(|_| key.is_some()).as_ref(), digests).expect("recorded");
    }

    #[test]
    fn what_has_just_changed_is_not_asked_again_where_that_delays_the_link() {
        let folder = tempfile::tempdir().expect("a directory");
        let object = folder.path().join("object");
        std::fs::write(&object, "code").expect("written");
        let object = object.to_str().expect("UTF-8");
        let digests = FileDigests::new(folder.path());
        let precise = Precise::new(Mode::Auto, Some(&folder.path().join("keys"))).expect("it is on");
        precise.begin(LONG * 100);
        let pays = |backends| {
            let known = precise.objects().and_then(|objects| objects.known(object, &digests));
            precise.pays(&known.expect("an object"), LONG, Slots::new(backends, 2, false))
        };
        link(&precise, object, Some("one"), &digests);
        assert!(pays(2) && pays(100), "it may be the same");
        link(&precise, object, Some("two"), &digests);
        assert!(!pays(2) && pays(100), "it was another");
        link(&precise, object, None, &digests);
        assert!(!pays(2) && pays(100), "what it compiles now is not known");
        link(&precise, object, Some("three"), &digests);
        link(&precise, object, Some("three"), &digests);
        assert!(pays(2) && pays(100), "it was the same");
    }

    #[test]
    fn few_backends_have_a_slot_each() {
        let slots = |backends, slots| Slots::new(backends, slots, false);
        assert_eq!(slots(2, 2), Slots { beside: false, few: true });
        assert_eq!(slots(3, 2), Slots { beside: false, few: false });
        assert_eq!(slots(3, 64), Slots { beside: true, few: true });
        assert_eq!(slots(60, 64), Slots { beside: false, few: false });
        assert!(!Slots::new(3, 64, true).beside, "who asks for more slots may not get them");
    }
}
