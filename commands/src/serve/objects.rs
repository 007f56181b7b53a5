//! Finds objects in the store by the keys of modules: the compiler, its flags, and the linker's own key.
//!
//! A result in the store is verified when it is read. The next link compiles a module again if the store could not
//! keep its object. Does not depend on links.

use std::fs::File;
use std::path::Path;

use camino::Utf8Path;
use distlto_executor::cache::store::Cache;
use distlto_executor::output::Role;
use distlto_executor::result::{ActionResult, Key, NewOutput, NewResult, OutputFile};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_prepare::blobs::from_hex;
use distlto_prepare::io_error::IoError;
use distlto_record::report::{Measured, microseconds};

use super::module_record::{Provenance, RecordedObject};

/// The objects that a link may find.
pub struct Objects<'a> {
    pub store: Option<&'a Cache>,
    /// Where the linker runs.
    pub directory: &'a Path,
}

/// A module to look up.
pub struct Sought<'a> {
    pub label: &'a str,
    /// The name of its object, and of its split debug information.
    pub object: &'a str,
    pub dwo: Option<&'a Utf8Path>,
    /// The labels of the modules that it imports from, sorted.
    pub imports: Vec<String>,
}

/// An object that the store has.
pub struct Found {
    pub object: RecordedObject,
    pub file: File,
    result: ActionResult,
}

impl Objects<'_> {
    /// Returns the object of a key if the further inputs of its compiler are unchanged. Then its split debug
    /// information is in place.
    pub fn find(
        &self,
        key: &str,
        module: Sought<'_>,
        digests: &FileDigests,
    ) -> Result<Option<Found>, IoError> {
        let Some(store) = self.store else { return Ok(None) };
        let Some((at, result, provenance)) = self.look_up(store, key) else { return Ok(None) };
        let names: Vec<&Utf8Path> = [Utf8Path::new(module.object)].into_iter().chain(module.dwo).collect();
        if result.outputs.len() != names.len() {
            return Ok(None);
        }
        let digest = |output: &OutputFile| Digest { hash: output.digest, size: output.size }.to_string();
        let object = RecordedObject {
            key: key.to_owned(),
            provenance,
            label: module.label.to_owned(),
            files: names.iter().map(ToString::to_string).zip(result.outputs.iter().map(digest)).collect(),
            warnings: String::from_utf8_lossy(&result.stderr).into_owned(),
            imports: module.imports,
            asked: String::new(),
            identity: String::new(),
            took_us: microseconds(result.measured.wall),
        };
        if object.changed_read(digests).is_some() {
            return Ok(None);
        }
        let Some(file) = store.open_output(&result.outputs[0]) else {
            store.forget(&at);
            return Ok(None);
        };
        for (name, output) in names.iter().zip(&result.outputs).skip(1) {
            let place = self.directory.join(name);
            if !digests.hold(&[(name.to_string(), digest(output))]) && !store.materialise(output, &place)? {
                store.forget(&at);
                return Ok(None);
            }
            digests.forget(name);
        }
        store.count(true);
        Ok(Some(Found { object, file, result }))
    }

    /// Opens the object of the previous link: its record has all that the store's entry would have.
    pub fn open(&self, earlier: &RecordedObject) -> Option<File> {
        let store = self.store?;
        if earlier.files.len() != 1 || earlier.provenance.depends_on_directory() {
            return None;
        }
        let file = store.open_output(&earlier.output()?)?;
        store.used(&Key(from_hex(&earlier.key)?));
        Some(file)
    }

    /// Whether the store has a result under a key, be it damaged.
    pub fn has(&self, key: &str) -> bool {
        self.store.is_some_and(|store| self.look_up(store, key).is_some())
    }

    /// Keeps the object of a module in the store for other links. Its files have to exist.
    pub fn keep(&self, object: &RecordedObject, measured: Measured) {
        let (Some(store), Some(key)) = (self.store, self.key_of(object)) else { return };
        let files: Vec<_> = object.files.iter().map(|(name, _)| self.directory.join(name)).collect();
        let roles = [Role::Object].into_iter().chain(std::iter::repeat(Role::DwoIfAny));
        let outputs = object.files.iter().zip(&files).zip(roles);
        let outputs: Vec<_> =
            outputs.map(|(((name, _), file), role)| NewOutput { role, name, file }).collect();
        store.put(&key, &result(object, &outputs, &note(object), measured));
    }

    /// Keeps the bytes of an object that the linker has compiled.
    pub fn keep_bytes(&self, object: &RecordedObject, bytes: &[u8], measured: Measured) {
        // The key is empty if not all inputs are known.
        let (Some(store), Some(key), Some(output)) = (self.store, self.key_of(object), object.output())
        else {
            return;
        };
        store.put_object(&key, output, bytes, &result(object, &[], &note(object), measured));
    }

    /// Keeps an object that was found under another key.
    pub fn keep_again(&self, found: &Found) {
        if let (Some(store), Some(key)) = (self.store, self.key_of(&found.object)) {
            store.put_again(&key, &found.result);
        }
    }

    fn look_up(&self, store: &Cache, key: &str) -> Option<(Key, ActionResult, Provenance)> {
        let key = Key(from_hex(key)?);
        let keys = [key, self.key_here(key)];
        let (key, result) = keys.into_iter().find_map(|key| Some((key, store.get(&key)?)))?;
        let note = serde_json::from_str(&result.note).ok()?;
        Some((key, result, note))
    }

    /// Returns the key for the store. It includes the directory if the compiler read further files, or may have.
    fn key_of(&self, object: &RecordedObject) -> Option<Key> {
        let key = from_hex(&object.key)?;
        Some(if object.provenance.depends_on_directory() { self.key_here(Key(key)) } else { Key(key) })
    }

    fn key_here(&self, key: Key) -> Key {
        // The empty path is the working directory.
        let here = Path::new(".").join(self.directory);
        key.in_directory(&std::path::absolute(here).unwrap_or_default())
    }
}

fn result<'r>(
    object: &'r RecordedObject,
    outputs: &'r [NewOutput<'r>],
    note: &'r str,
    measured: Measured,
) -> NewResult<'r> {
    NewResult {
        module: &object.label,
        outputs,
        stderr: object.warnings.as_bytes(),
        measured,
        by_engine: false,
        is_unobserved: object.provenance.is_unseen,
        note,
    }
}

/// The store's note of an object, besides its files and warnings.
fn note(object: &RecordedObject) -> String {
    serde_json::to_string(&object.provenance).expect("text and numbers have a JSON form")
}
