//! Two caches as one: the nearer one is asked first. What the farther one had, the job has kept by both.
//!
//! Knows nothing of what they are.

use distlto_prepare::io_error::IoError;

use super::{Hit, ResultCache};
use crate::describe::Described;
use crate::output::Output;
use crate::result::NewResult;

/// A near cache before a far one, as far as there are any.
#[derive(Debug)]
pub struct Layers<Near, Far> {
    /// Asked first.
    pub near: Option<Near>,
    /// Asked where the near one has nothing.
    pub far: Option<Far>,
}

impl<Near: ResultCache, Far: ResultCache> ResultCache for Layers<Near, Far> {
    fn find(&self, action: &Described<'_>, outputs: &[Output<'_>]) -> Result<Option<Hit>, IoError> {
        if let Some(near) = &self.near
            && let Some(found) = near.find(action, outputs)?
        {
            return Ok(Some(found));
        }
        self.far.as_ref().map_or(Ok(None), |far| far.find(action, outputs))
    }

    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>) {
        if let Some(near) = &self.near {
            near.keep(action, result);
        }
        if let Some(far) = &self.far {
            far.keep(action, result);
        }
    }

    fn troubles(&self) -> Vec<String> {
        let near = self.near.iter().flat_map(ResultCache::troubles);
        near.chain(self.far.iter().flat_map(ResultCache::troubles)).collect()
    }
}
