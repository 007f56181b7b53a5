//! Results of actions, kept for other runs.
//!
//! Knows keys and files. How keys come from commands and inputs is decided in `describe`.

pub mod store;

use std::time::Duration;

use distlto_prepare::io_error::IoError;

use crate::describe::Described;
use crate::output::Output;
use crate::result::NewResult;
use crate::schedule::Site;

/// A result that a cache had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Standard error of the command.
    pub stderr: Vec<u8>,
    /// How long the command took that made it, if that is known.
    pub took: Option<Duration>,
    /// Whether it came from another machine, and a nearer cache may keep it.
    pub is_far: bool,
    /// Whether nobody observed the reads of its command.
    pub is_unobserved: bool,
}

/// A cache of results: a lookup before a command runs, an entry after it.
///
/// A cache never makes a job fail: a fault of the cache is a miss, and [`ResultCache::troubles`] reports it.
pub trait ResultCache: Sync {
    /// Looks up the result of an action with outputs of these roles, and puts the outputs into these files. On a miss
    /// the content of the files has no meaning. An action that has a slot of this machine does not wait long.
    fn find(
        &self,
        action: &Described<'_>,
        outputs: &[Output<'_>],
        site: Site,
    ) -> Result<Option<Hit>, IoError>;

    /// Keeps a verified result.
    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>);

    /// Whether other machines use it.
    fn is_far(&self) -> bool {
        false
    }

    /// Returns one sentence for each new fault of the cache since the last call.
    fn troubles(&self) -> Vec<String>;
}

/// The caches of a run, the nearest one first.
pub fn nearest_first<'c>(
    store: Option<&'c impl ResultCache>,
    engine: Option<&'c impl ResultCache>,
) -> Vec<&'c dyn ResultCache> {
    let store = store.map(|store| store as &dyn ResultCache);
    store.into_iter().chain(engine.map(|engine| engine as &dyn ResultCache)).collect()
}
