//! One module of a link, from its linker's question to its object.

use std::path::Path;

use camino::Utf8PathBuf;
use distlto_executor::undeclared::Undeclared;
use distlto_planner::digests::FileDigests;
use distlto_planner::module;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;

use super::module_record::{Provenance, RecordedObject};
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
    /// What its object is made from, as far as the linker's question says.
    pub provenance: Provenance,
    /// The file that its compiler reads; none where it was not compiled.
    pub file: Option<String>,
    /// The labels of the modules that it imports from, sorted.
    pub imports: Vec<String>,
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
        Self {
            id: id.to_owned(),
            label,
            archive,
            key,
            imports: object.imports.clone(),
            provenance: object.provenance.clone(),
            object: Some(object),
            ..Self::default()
        }
    }

    /// The record of its object with these files, the object first, each with its digest. The object ran for `took_us`
    /// microseconds.
    pub fn recorded(
        &self,
        files: Vec<(String, String)>,
        took_us: u64,
        digests: &FileDigests,
    ) -> Result<RecordedObject, IoError> {
        let Undeclared { read, absent, is_more, is_unobserved } = &self.undeclared;
        let read =
            read.iter().map(Utf8PathBuf::as_path).chain(self.known_reads.iter().map(|path| path.as_path()));
        let read = read.map(|path| Ok((path.to_string(), digests.digest(path)?.to_string())));
        let mut provenance = Provenance {
            read: read.collect::<Result<_, IoError>>()?,
            absent: absent.iter().cloned().collect(),
            is_unseen: *is_unobserved,
            ..self.provenance.clone()
        };
        let mut key = self.key.clone();
        if *is_more {
            // No key finds an object with unknown inputs.
            key.clear();
            provenance.content.clear();
            provenance.parts = None;
        }
        Ok(RecordedObject {
            key,
            provenance,
            warnings: self.warnings.clone(),
            label: self.label.clone(),
            files,
            asked: self.asked.clone(),
            identity: self.identity.clone(),
            imports: self.imports.clone(),
            took_us,
        })
    }
}

/// Returns the module's own target triple; empty if it cannot be read, which the job itself reports.
pub fn triple(path: &Path) -> String {
    let bytes = Input::open(path).ok();
    bytes.and_then(|bytes| Some(module::read(&bytes).ok()?.triple)).unwrap_or_default()
}
