//! The shards and import lists of a first compilation, kept one by one while backends run.
//!
//! A thin link writes where it is fast, in memory mostly; keeping takes longer than the rest of planning together. A
//! module without an object is compiled whatever its shard holds, so keeping it can wait until its compilation is
//! about to start. Each file appears whole, under a lock of its own. Knows nothing of who compiles, and in what order.

use std::collections::HashMap;
use std::sync::Mutex;

use camino::Utf8Path;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;
use rayon::prelude::*;

use crate::keep::{self, ModulePlaces};
use crate::link_plan::LinkPlan;
use crate::scratch::Scratch;
use crate::thin_link::IndexedModule;

/// What planning has left to be kept.
#[derive(Debug)]
#[must_use = "the link is not planned before all is kept"]
pub struct Pending {
    state: String,
    /// By the shard's place; `None` once it is there.
    waiting: HashMap<String, Mutex<Option<IndexedModule>>>,
    scratch: Mutex<Option<Scratch>>,
}

impl Pending {
    /// Keeps at once the modules that have an object, so that their shards can be compared with what those were
    /// compiled from. The others wait.
    pub(crate) fn after_comparison(state: &str, modules: Vec<IndexedModule>) -> Result<Self, IoError> {
        let known = |module: &IndexedModule| {
            Utf8Path::new(&ModulePlaces::of(state, &module.id).object).symlink_metadata().is_ok()
        };
        let (compared, waiting): (Vec<_>, Vec<_>) = modules.into_par_iter().partition(known);
        compared.par_iter().try_for_each(|module| keep::shard(state, module))?;
        let waiting = waiting
            .into_iter()
            .map(|module| (ModulePlaces::of(state, &module.id).shard, Mutex::new(Some(module))))
            .collect();
        Ok(Self { state: state.to_owned(), waiting, scratch: Mutex::new(None) })
    }

    /// Has the thin link's directory removed at the end.
    pub(crate) fn with(self, scratch: Scratch) -> Self {
        Self { scratch: Mutex::new(Some(scratch)), ..self }
    }

    /// Whether this shard was not to be had when planning ended: its module has to be compiled.
    pub fn is_first(&self, shard: &Utf8Path) -> bool {
        self.waiting.contains_key(shard.as_str())
    }

    /// Keeps the shard at this place and its import list, unless they are there already. From any thread; when it
    /// returns they are there, whoever wrote them.
    pub fn keep(&self, shard: &Utf8Path) -> Result<(), IoError> {
        let Some(slot) = self.waiting.get(shard.as_str()) else { return Ok(()) };
        // Each file is renamed into place, so a thread that panicked left none half-written.
        let mut slot = lock(slot);
        if let Some(module) = slot.as_ref() {
            keep::shard(&self.state, module)?;
            *slot = None;
        }
        Ok(())
    }

    /// Keeps what still waits, then the plan, and removes what the thin link left.
    pub fn finish(&self, plan: &LinkPlan) -> Result<(), IoError> {
        self.waiting.par_iter().try_for_each(|(shard, _)| self.keep(Utf8Path::new(shard)))?;
        keep::plan(&self.state, plan)?;
        self.give_up()
    }

    /// Removes what the thin link left, for a link that ends here.
    pub fn give_up(&self) -> Result<(), IoError> {
        lock(&self.scratch).take().map_or(Ok(()), Scratch::close)
    }
}
