//! Two caches as one: the nearer one is asked first. What the farther one had, the job has kept by both.
//!
//! Knows nothing of what they are.

use distlto_prepare::write::IoError;

use super::{Hit, ResultCache};
use crate::describe::Described;
use crate::result::NewResult;
use crate::staging::Output;

/// A near cache before a far one.
pub struct Layers<'a> {
    /// Asked first.
    pub near: &'a dyn ResultCache,
    /// Asked where the near one has nothing.
    pub far: &'a dyn ResultCache,
}

impl ResultCache for Layers<'_> {
    fn find(&self, action: &Described<'_>, outputs: &[Output<'_>]) -> Result<Option<Hit>, IoError> {
        if let Some(found) = self.near.find(action, outputs)? {
            return Ok(Some(found));
        }
        self.far.find(action, outputs)
    }

    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>) {
        self.near.keep(action, result);
        self.far.keep(action, result);
    }

    fn troubles(&self) -> Vec<String> {
        self.near.troubles().into_iter().chain(self.far.troubles()).collect()
    }
}
