//! What a thin link said, and what it makes of each bitcode input in the final link.
//!
//! Pure. Knows nothing of lines and of where objects lie.

use std::collections::HashSet;

/// What a thin link said about the modules.
#[derive(Debug, Clone, Default)]
pub struct ThinLinkOutcome {
    /// Ids of the modules that have a shard, in link order.
    pub indexed: Vec<String>,
    /// Every file that the linker loaded, as `--trace` spells it, in the order in which it loaded them.
    pub loaded: Vec<String>,
}

/// What becomes of one bitcode input in the final link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleFate {
    /// A backend compiles it to an object.
    Object,
    /// Its code is in the object of regular LTO.
    Merged,
    /// No symbol needs it; it stays where it is, and what a backend's own calls need can still be loaded.
    Unloaded,
}

/// What becomes of every bitcode input.
#[derive(Debug, Default)]
pub struct Fates {
    indexed: HashSet<String>,
    loaded: HashSet<String>,
}

impl Fates {
    /// Reads them off a thin link's outcome.
    pub fn of(outcome: &ThinLinkOutcome) -> Self {
        Self {
            indexed: outcome.indexed.iter().cloned().collect(),
            loaded: outcome.loaded.iter().cloned().collect(),
        }
    }

    /// The fate of a bitcode input; `lazy` if only a symbol can load it.
    pub fn of_module(&self, id: &str, lazy: bool) -> ModuleFate {
        if self.indexed.contains(id) {
            ModuleFate::Object
        } else if lazy && !self.loaded.contains(id) {
            ModuleFate::Unloaded
        } else {
            ModuleFate::Merged
        }
    }

    /// Whether the linker loaded a file.
    pub fn is_loaded(&self, path: &str) -> bool {
        self.loaded.contains(path)
    }
}
