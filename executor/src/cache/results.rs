//! The store on disk as a [`ResultCache`]: lookups and new entries.
//!
//! Knows nothing of how keys come about, and nothing of schedules.

use std::path::Path;

use distlto_prepare::io_error::IoError;

use super::store::Cache;
use super::{Hit, ResultCache};
use crate::describe::Described;
use crate::output::Output;
use crate::result::{ActionResult, Key, NewResult};

impl Cache {
    /// Places the outputs of a cache entry if they have the wanted roles and are whole. Removes any other entry.
    fn place(&self, key: &Key, outputs: &[Output<'_>]) -> Result<Option<ActionResult>, IoError> {
        let Some(result) = self.get(key) else { return Ok(None) };
        let pairs = || result.outputs.iter().zip(outputs);
        let mut whole =
            result.outputs.len() == outputs.len() && pairs().all(|(kept, wanted)| kept.role == wanted.role);
        for (kept, wanted) in pairs() {
            whole = whole && self.materialise(kept, &wanted.file)?;
        }
        if !whole {
            self.forget(key);
        }
        Ok(whole.then_some(result))
    }
}

fn key_here(action: &Described<'_>) -> Key {
    action.key().in_directory(Path::new(action.directory))
}

impl ResultCache for Cache {
    fn find(&self, action: &Described<'_>, outputs: &[Output<'_>]) -> Result<Option<Hit>, IoError> {
        let seen = self.place(&action.key(), outputs)?;
        let is_unseen = seen.is_none() && self.is_bound();
        let found = if is_unseen { self.place(&key_here(action), outputs)? } else { seen };
        self.count(found.is_some());
        Ok(found.map(|result| Hit { stderr: result.stderr, is_far: false, is_unseen }))
    }

    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>) {
        let is_here = result.is_unseen && self.is_bound();
        let key = if is_here { key_here(action) } else { action.key() };
        self.put(&key, result);
    }

    fn troubles(&self) -> Vec<String> {
        let directory = self.directory().display();
        Self::troubles(self).iter().map(|trouble| format!("cache {directory}: {trouble}")).collect()
    }
}
