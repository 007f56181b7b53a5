//! Results of actions, kept for other runs.
//!
//! Knows keys and files. How keys come from commands and inputs is decided in `describe`.

mod results;
pub mod store;

use distlto_prepare::io_error::IoError;

use crate::describe::Described;
use crate::output::Output;
use crate::result::NewResult;

/// A result that a cache had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// What the command printed on standard error.
    pub stderr: Vec<u8>,
    /// Whether it came from another machine, and a nearer cache may keep it.
    pub is_far: bool,
    /// Whether nobody observed what its command read.
    pub is_unseen: bool,
}

/// What a job asks before its command runs and tells after.
///
/// A cache is no reason for a job to fail: what is wrong with the cache itself is a miss, and is for the owner of the
/// cache to tell.
pub trait ResultCache: Sync {
    /// The result of an action, if its outputs have these roles; they are then in these files. What is in the files
    /// otherwise is of no meaning.
    fn find(&self, action: &Described<'_>, outputs: &[Output<'_>]) -> Result<Option<Hit>, IoError>;

    /// Keeps a verified result.
    fn keep(&self, action: &Described<'_>, result: &NewResult<'_>);

    /// What went wrong with the cache since this was asked last, each thing in a sentence.
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
