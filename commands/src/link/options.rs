//! Options that all ways of linking share.

use std::path::PathBuf;

use distlto_planner::recorded_flags::FlagsSource;
use distlto_planner::state::directory;

use crate::run_args::RunArgs;

/// How to link.
#[derive(Debug, Clone, Default)]
pub struct LinkOptions {
    /// How backends are run and reported.
    pub run: RunArgs,
    /// The clang for the backends, instead of the one that the command names or implies.
    pub compiler: Option<String>,
    /// Arguments for every backend besides those that the link line implies.
    pub backend_args: Vec<String>,
    /// Whether promoted locals are called after their source file.
    pub stable_names: bool,
    /// Whether backends get shards as the linker writes them.
    pub plain_shards: bool,
    /// Where each object's flags are recorded, which then count instead of the link line's.
    pub flags_from: Option<FlagsSource>,
    /// The folder that holds the records of this link and of others; that of the store where absent.
    pub state: Option<String>,
    /// The graph of the backends that have made the objects.
    pub graph: Option<PathBuf>,
    /// Whether cargo builds without settings of ours.
    pub plain: bool,
    /// Whether the user gave the command without `link`, and reads its output.
    pub is_short_form: bool,
    /// Whether to report the backends that would run, and to run none.
    pub dry_run: bool,
    /// Whether whole links are put into shared caches, and taken from them.
    pub share_links: bool,
    /// Whether a link with bitcode fails if its linker links by itself.
    pub require: bool,
}

impl LinkOptions {
    /// Whether there are caches beside the store. The run reports a wrong configuration.
    pub fn asks_caches(&self) -> bool {
        !self.run.remote.slots().is_ok_and(|slots| slots == 0) || self.run.cache.cache_shared
    }

    /// Whether an engine may run backends. The run reports a wrong configuration.
    pub fn has_engine(&self) -> bool {
        self.run.remote.settings().is_ok_and(|settings| settings.engine.execution.is_some())
    }

    /// The directory for the record of a link; none where there is no place for any.
    pub fn record_of(&self, output: &str) -> Option<String> {
        Some(directory(output, &self.run.cache.links(self.state.as_deref())?))
    }
}
