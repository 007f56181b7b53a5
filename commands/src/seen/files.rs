//! Where the files of a link's modules are and what compiles them, for those who look into them: its plan says so, or else what
//! was named.

use camino::Utf8PathBuf;

use super::Seen;

/// The files of a module.
#[derive(Debug, Clone)]
pub struct ModuleFiles {
    /// Its bitcode.
    pub module: Utf8PathBuf,
    /// The archive that holds it, where it may be in no file of its own.
    pub archive: Option<Utf8PathBuf>,
    /// Its index shard.
    pub shard: Utf8PathBuf,
}

/// What there is to know of a link's files without a plan.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those of each module, in the order of [`Seen::modules`].
    pub modules: Vec<ModuleFiles>,
    /// The compiler of the backends, where one is named.
    pub compiler: Option<String>,
}

impl Seen {
    /// Those of a module by its number; paths are relative to where the link ran.
    pub fn files(&self, number: usize) -> Option<ModuleFiles> {
        let Some(plan) = &self.plan else { return self.listing.modules.get(number).cloned() };
        let module = plan.modules.get(number)?;
        Some(ModuleFiles {
            module: module.id.clone(),
            archive: module.archive.clone(),
            shard: module.shard.clone(),
        })
    }

    /// The compiler of the backends.
    pub fn compiler(&self) -> Option<&str> {
        match &self.plan {
            Some(plan) => plan.backend.first().map(String::as_str),
            None => self.listing.compiler.as_deref(),
        }
    }
}
