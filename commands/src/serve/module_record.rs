//! The record of a successful link's modules: each with its key, its inputs and its files.
//!
//! The next link uses it to find objects and to explain why a backend runs. The objects themselves are in the store
//! (see `objects`).

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::sync::OnceLock;

use camino::Utf8PathBuf;
use distlto_executor::cache::store::Cache;
use distlto_executor::output::Role;
use distlto_executor::result::OutputFile;
use distlto_planner::backend_flags::stable_names::spelled;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::shard::{self, Cost};
use distlto_planner::state::Place;
use distlto_prepare::frame::Framed;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{JsonLines, line};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::key_parts::{Content, Identity, KeyParts};
use super::protocol::Question;

/// The record's first line.
const HEADER: &str = "distlto modules 2\n";

/// What an object was made from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The digest of the compiler's inputs; empty if not all are known. The linker's key covers more.
    #[serde(default)]
    pub content: String,
    /// The digest of the linker's shard that `content` and `parts` follow from; empty if it is not known.
    #[serde(default)]
    pub shard: String,
    /// The digest of the module after its imports, and that of the shard without hashes of modules; empty where the linker
    /// has not shown the module.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imported: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decisions: String,
    /// Further files that its compiler read, each with its content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<(String, String)>,
    /// Further files that its compiler looked for in vain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Utf8PathBuf>,
    /// Whether the reads of its compiler were not observed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unseen: bool,
    /// The module's source, if locals were to be named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The cost of compiling it, in IR instructions: own ones, then imported ones. It follows from the key.
    pub instructions: (u64, u64),
    /// The key's parts, to explain a miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<KeyParts>,
}

/// The object of one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedObject {
    /// The object's key; empty if not all inputs are known.
    pub key: String,
    /// The linker's key with the hash of the shard ([`kept`](super::kept)), and the short digest of the link's settings. Both
    /// are empty if a compiler made the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asked: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity: String,
    /// What it was made from.
    pub provenance: Provenance,
    /// The module's label.
    pub label: String,
    /// The object, then split debug information, each with its content.
    pub files: Vec<(String, String)>,
    /// The standard error output of its compiler.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// The labels of the modules that it imports from, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// How long its backend ran, in microseconds.
    #[serde(default)]
    pub took_us: u64,
}

/// The modules of the previous link, read on first use.
#[derive(Debug)]
pub struct PreviousModules {
    state: String,
    read: OnceLock<Modules>,
    /// The contents of modules, collected on first use.
    contents: OnceLock<HashSet<String>>,
}

#[derive(Debug)]
struct Modules {
    all: Vec<RecordedObject>,
    /// Their places.
    by_label: HashMap<String, usize>,
    by_content: HashMap<String, usize>,
}

impl PreviousModules {
    /// Those of a record.
    pub fn of(state: &str) -> Self {
        Self { state: state.to_owned(), read: OnceLock::new(), contents: OnceLock::new() }
    }

    fn modules(&self) -> &Modules {
        self.read.get_or_init(|| {
            let all: Vec<RecordedObject> = in_order(&self.state);
            let places = |of: fn(&RecordedObject) -> &String| {
                all.iter().enumerate().map(|(at, module)| (of(module).clone(), at)).collect()
            };
            let (by_label, by_content) =
                (places(|module| &module.label), places(|module| &module.provenance.content));
            Modules { by_label, by_content, all }
        })
    }

    /// Returns the labels of two modules with one source, if there are any.
    pub fn alike(&self) -> Option<[&str; 2]> {
        let mut sources = HashMap::new();
        self.modules().all.iter().find_map(|module| {
            let other = sources.insert(spelled(module.provenance.source.as_ref()?), &module.label)?;
            Some([other.as_str(), &module.label])
        })
    }

    /// Whether an object was compiled from a module of this content ([`KeyParts::module`]), under any label.
    pub fn has_module(&self, content: &str) -> bool {
        let module = |object: &RecordedObject| Some(object.provenance.parts.as_ref()?.module().to_owned());
        let contents = || self.modules().all.iter().filter_map(module);
        self.contents.get_or_init(|| contents().collect()).contains(content)
    }

    /// All modules, in link order.
    pub fn all(&self) -> &[RecordedObject] {
        &self.modules().all
    }

    /// Returns the module with this label.
    pub fn last(&self, label: &str) -> Option<&RecordedObject> {
        let Modules { all, by_label, .. } = self.modules();
        by_label.get(label).map(|&at| &all[at])
    }

    /// Returns a module with this digest of inputs, which is empty if they are not known.
    pub fn of_content(&self, content: &str) -> Option<&RecordedObject> {
        let Modules { all, by_content, .. } = self.modules();
        by_content.get(content).filter(|_| !content.is_empty()).map(|&at| &all[at])
    }
}

/// Returns the key of an object, and the ids of the modules that it imports from. The key covers the compiler and its
/// flags, the module's own `flags`, and the linker's key for the module.
///
/// The linker's key has the modules by content, in no order. A backend imports from them in the order of their names,
/// which shows in the object. The place of an archive's member is a part of its name.
pub fn key(
    identity: &Identity,
    question: &Question<'_>,
    shard: &[u8],
    flags: &[String],
    dwo: Option<&Utf8PathBuf>,
) -> (String, Vec<String>) {
    let mut framed = Framed::new("distlto served object 1");
    framed.content("compilation", &identity.digest);
    framed.add("key", question.key);
    flags.iter().for_each(|flag| framed.add("flag", flag));
    // The backend reports a malformed shard.
    let mut modules = shard::modules(shard).unwrap_or_default();
    modules.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    for module in &modules {
        let role = if module.path == question.module { "own" } else { "import" };
        framed.add(role, module.hash.unwrap_or_default().map(u32::to_le_bytes).concat());
    }
    // The name of split debug information stands in the object.
    framed.add("dwo", dwo.map_or("", |dwo| dwo.as_str()));
    let imports = modules.iter().filter(|module| module.path != question.module);
    let imports = imports.map(|module| String::from_utf8_lossy(&module.path).into_owned()).collect();
    (framed.finish().hex(), imports)
}

/// Keeps the record of a link that has ended well.
pub fn keep(state: &str, objects: &[RecordedObject]) -> Result<(), IoError> {
    let lines: Vec<String> = objects.par_iter().with_min_len(64).map(line).collect();
    file(state).replace(&lines)
}

/// The objects of the last link that ended well, in link order.
pub fn in_order(state: &str) -> Vec<RecordedObject> {
    file(state).read()
}

fn file(state: &str) -> JsonLines {
    JsonLines::new(&Place::Modules.path(state), HEADER)
}

impl Provenance {
    /// Whether the object may differ if the same files lie in another directory.
    pub fn depends_on_directory(&self) -> bool {
        self.is_unseen || !self.read.is_empty() || !self.absent.is_empty()
    }

    /// Returns the cost of compiling the module.
    pub fn cost(&self) -> Cost {
        let (own_instructions, imported_instructions) = self.instructions;
        Cost { own_instructions, imported_instructions }
    }

    /// Records the cost of compiling the module.
    pub fn set_cost(&mut self, cost: Cost) {
        self.instructions = (cost.own_instructions, cost.imported_instructions);
    }

    /// Replaces the inputs by those of another link, for which the object is the same.
    pub fn set_inputs(&mut self, content: &Content, shard: String) {
        self.content.clone_from(&content.digest);
        self.parts = Some(content.parts.clone());
        self.shard = shard;
    }
}

impl RecordedObject {
    /// Returns the first further file that changed since the compiler read it, or appeared since it looked.
    pub fn changed_read(&self, digests: &FileDigests) -> Option<&str> {
        let is_other = |file: &&(String, String)| !digests.hold(std::slice::from_ref(*file));
        let Provenance { read, absent, .. } = &self.provenance;
        let other = read.iter().find(is_other).map(|(path, _)| path.as_str());
        other.or_else(|| absent.iter().find(|path| path.exists()).map(|path| path.as_str()))
    }

    /// The bytes of the object in a store.
    pub fn content_in(&self, store: &Cache) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        store.open_output(&self.output()?)?.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The object as a store has it.
    pub fn output(&self) -> Option<OutputFile> {
        let (name, digest) = self.files.first()?;
        let Digest { hash: digest, size } = Digest::parse(digest)?;
        Some(OutputFile { role: Role::Object, name: name.clone(), digest, size, executable: false })
    }
}
