//! One module of a link, from its linker's question to its object.

use std::path::Path;

use camino::Utf8PathBuf;
use distlto_executor::undeclared::Undeclared;
use distlto_planner::module;
use distlto_planner::shard::Cost;
use distlto_prepare::input::Input;

use super::key_parts::KeyParts;
use super::module_record::RecordedObject;
use super::settings::ModuleFlags;

/// One module of a link.
#[derive(Debug, Default)]
pub struct LinkModule {
    /// The linker's name of the module.
    pub id: String,
    /// The label, which is unique in the link.
    pub label: String,
    /// The archive that holds it, and where in that its header is.
    pub archive: Option<(String, usize)>,
    /// The key of its object.
    pub key: String,
    /// The linker's key with the hash of the shard, and the short digest of the link's settings.
    pub asked: String,
    pub identity: String,
    /// The digest of its compiler's inputs.
    pub content: String,
    /// The digest of the linker's shard that they follow from.
    pub shard: String,
    /// The digest of that shard without hashes of modules, if the linker shows its modules after their imports.
    pub decisions: String,
    /// The file that its compiler reads; none where it was not compiled.
    pub file: Option<String>,
    /// The labels of the modules that it imports from, sorted.
    pub imports: Vec<String>,
    /// The cost of compiling it.
    pub cost: Cost,
    /// The parts of its key.
    pub parts: Option<KeyParts>,
    /// The flags that are its own.
    pub flags: ModuleFlags,
    /// Further files that its compiler is known to read, which are declared as inputs.
    pub known_reads: Vec<Utf8PathBuf>,
    /// Undeclared inputs of its compiler.
    pub undeclared: Undeclared,
    /// The standard error output of its compiler.
    pub warnings: String,
    /// Its object, once it is there.
    pub object: Option<RecordedObject>,
    /// Whether it was compiled for this link, rather than found.
    pub ran: bool,
    /// Its source, if locals are named after it.
    pub source: Option<String>,
    /// The linker's question, as long as it waits.
    pub ticket: Option<u32>,
}

impl LinkModule {
    /// Describes a module that has a kept object.
    pub fn kept(
        id: &str,
        label: String,
        archive: Option<(String, usize)>,
        key: String,
        object: RecordedObject,
    ) -> Self {
        let (imports, cost, parts) = (object.imports.clone(), object.cost(), object.parts.clone());
        let content = object.content.clone();
        Self {
            id: id.to_owned(),
            label,
            archive,
            key,
            content,
            imports,
            cost,
            parts,
            object: Some(object),
            ..Self::default()
        }
    }
}

/// Returns the module's own target triple; empty if it cannot be read, which the job itself reports.
pub fn triple(path: &Path) -> String {
    let bytes = Input::open(path).ok();
    bytes.and_then(|bytes| Some(module::read(&bytes).ok()?.triple)).unwrap_or_default()
}
