//! One module of a link, from its linker's question to its object.

use std::path::Path;

use camino::Utf8PathBuf;
use distlto_executor::undeclared::Undeclared;
use distlto_planner::module;
use distlto_planner::shard::Cost;
use distlto_prepare::input::Input;

use super::kept::KeptObject;
use super::parts::Parts;
use super::settings::ModuleFlags;

/// One module of a link.
#[derive(Debug, Default)]
pub struct LinkModule {
    /// What the linker calls it.
    pub id: String,
    /// What people call it, which tells it from every other module of the link.
    pub label: String,
    /// The archive that holds it, and where in that its header is.
    pub archive: Option<(String, usize)>,
    /// What its object is kept under.
    pub key: String,
    /// What it is compiled from, by content.
    pub content: String,
    /// The file that its compiler reads; none where it was not compiled.
    pub file: Option<String>,
    /// The modules that it imports from, as people call them, sorted.
    pub imports: Vec<String>,
    /// What compiling it takes.
    pub cost: Cost,
    /// What it is compiled from.
    pub parts: Option<Parts>,
    /// The flags that are its own.
    pub flags: ModuleFlags,
    /// Further files that its compiler is known to read, which are declared as inputs.
    pub known_reads: Vec<Utf8PathBuf>,
    /// What its compiler read besides.
    pub undeclared: Undeclared,
    /// What its compiler printed on standard error.
    pub warnings: String,
    /// Its object, once it is there.
    pub object: Option<KeptObject>,
    /// Whether it was compiled for this link, rather than found.
    pub ran: bool,
    /// Its source, where locals are called after that.
    pub source: Option<String>,
    /// The linker's question, as long as it waits.
    pub ticket: Option<u32>,
}

impl LinkModule {
    /// One whose object is kept.
    pub fn kept(
        id: &str,
        label: String,
        archive: Option<(String, usize)>,
        key: String,
        object: KeptObject,
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

/// The module's own target triple; none for what cannot be read, of which the job itself says more.
pub fn triple(path: &Path) -> String {
    let bytes = Input::open(path).ok();
    bytes.and_then(|bytes| Some(module::read(&bytes).ok()?.triple)).unwrap_or_default()
}
