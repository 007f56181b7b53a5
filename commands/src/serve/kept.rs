//! The modules of a link that has ended well, each with its key and what its object was compiled from: a part of the link's
//! record.
//!
//! The next link says by it why a backend runs. The objects themselves are in the store (see `objects`).

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::sync::OnceLock;

use camino::Utf8PathBuf;
use distlto_executor::cache::store::Cache;
use distlto_executor::describe::framed::Framed;
use distlto_executor::output::Role;
use distlto_executor::result::OutputFile;
use distlto_executor::undeclared::Undeclared;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::shard::{self, Cost};
use distlto_planner::state::Place;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{JsonLines, line};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::module::LinkModule;
use super::parts::{Identity, Parts};
use super::protocol::Question;

/// The record's first line.
const HEADER: &str = "distlto modules 1\n";

/// The object of one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptObject {
    /// What it was compiled from.
    pub key: String,
    /// What it was compiled from, by content: what the compiler reads. The linker's key holds more.
    #[serde(default)]
    pub content: String,
    /// What people call the module.
    pub label: String,
    /// The object, then split debug information, each with its content.
    pub files: Vec<(String, String)>,
    /// Further files that its compiler read, each with its content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<(String, String)>,
    /// Further files that its compiler looked for in vain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Utf8PathBuf>,
    /// Whether nobody observed what its compiler read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unseen: bool,
    /// What its compiler printed on standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub warnings: String,
    /// The modules that it imports from, as people call them, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// The module's source, where locals were to be called after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it takes to compile, which follows from the key, in IR instructions: the module's own, then imported ones.
    pub instructions: (u64, u64),
    /// The key's parts, for who asks what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
}

/// The modules of the link before, which are read when they are asked for.
#[derive(Debug)]
pub struct Earlier {
    state: String,
    read: OnceLock<Modules>,
    /// The contents of modules, once they are asked for.
    contents: OnceLock<HashSet<String>>,
}

#[derive(Debug)]
struct Modules {
    all: Vec<KeptObject>,
    /// Their places.
    by_label: HashMap<String, usize>,
    by_content: HashMap<String, usize>,
}

impl Earlier {
    /// Those of a record.
    pub fn of(state: &str) -> Self {
        Self { state: state.to_owned(), read: OnceLock::new(), contents: OnceLock::new() }
    }

    fn modules(&self) -> &Modules {
        self.read.get_or_init(|| {
            let all: Vec<KeptObject> = in_order(&self.state);
            let places = |of: fn(&KeptObject) -> &String| {
                all.iter().enumerate().map(|(at, module)| (of(module).clone(), at)).collect()
            };
            let (by_label, by_content) = (places(|module| &module.label), places(|module| &module.content));
            Modules { by_label, by_content, all }
        })
    }

    /// What people call two modules of one source, if there are any.
    pub fn alike(&self) -> Option<[&str; 2]> {
        let mut sources = HashMap::new();
        self.modules().all.iter().find_map(|module| {
            let other = sources.insert(module.source.as_ref()?, &module.label)?;
            Some([other.as_str(), &module.label])
        })
    }

    /// Whether anything was compiled from a module of this content ([`Parts::module`]), whatever it was called.
    pub fn has_module(&self, content: &str) -> bool {
        let contents = || {
            self.modules().all.iter().filter_map(|object| Some(object.parts.as_ref()?.module().to_owned()))
        };
        self.contents.get_or_init(|| contents().collect()).contains(content)
    }

    /// The module that people called so.
    pub fn last(&self, label: &str) -> Option<&KeptObject> {
        let Modules { all, by_label, .. } = self.modules();
        by_label.get(label).map(|&at| &all[at])
    }

    /// A module that was compiled from this.
    pub fn of_content(&self, content: &str) -> Option<&KeptObject> {
        let Modules { all, by_content, .. } = self.modules();
        by_content.get(content).map(|&at| &all[at])
    }
}

/// The key of an object: the compiler and its flags, the module's own `flags`, and the linker's key for the module.
///
/// That has the modules by content, in no order. A backend imports from them in the order of their names, which shows in the
/// object, and the place of an archive's member is a part of its name. With the key come the ids of the modules that it imports from.
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
    // What is wrong with a shard is for its backend to say.
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
pub fn keep(state: &str, objects: &[KeptObject]) -> Result<(), IoError> {
    let lines: Vec<String> = objects.par_iter().with_min_len(64).map(line).collect();
    file(state).replace(&lines)
}

/// The objects of the last link that ended well, in link order.
pub fn in_order(state: &str) -> Vec<KeptObject> {
    file(state).read()
}

fn file(state: &str) -> JsonLines {
    JsonLines::new(&Place::Modules.path(state), HEADER)
}

impl KeptObject {
    /// Of a module whose files are in place, the object first.
    pub fn of(
        module: &LinkModule,
        files: impl Iterator<Item = Utf8PathBuf>,
        digests: &FileDigests,
    ) -> Result<Self, IoError> {
        let files: Vec<_> = files.collect();
        let cost = module.cost;
        let Undeclared { read, absent, is_more, is_unseen } = &module.undeclared;
        let read =
            read.iter().map(Utf8PathBuf::as_path).chain(module.known_reads.iter().map(|path| path.as_path()));
        let read = read.map(|path| Ok((path.to_string(), digests.digest(path)?.to_string())));
        // No key finds an object of which it is not known what it depends on.
        let found_by = |key: &String| if *is_more { String::new() } else { key.clone() };
        Ok(Self {
            key: found_by(&module.key),
            content: found_by(&module.content),
            read: read.collect::<Result<_, IoError>>()?,
            absent: absent.iter().cloned().collect(),
            is_unseen: *is_unseen,
            warnings: module.warnings.clone(),
            label: module.label.clone(),
            files: digests.written(files.iter().map(|file| file.as_path()))?,
            imports: module.imports.clone(),
            source: module.source.clone(),
            instructions: (cost.own_instructions, cost.imported_instructions),
            parts: module.parts.clone().filter(|_| !is_more),
        })
    }

    /// The first of the further files that is not what its compiler read.
    pub fn changed_read(&self, digests: &FileDigests) -> Option<&str> {
        let is_other = |file: &&(String, String)| !digests.hold(std::slice::from_ref(*file));
        let other = self.read.iter().find(is_other).map(|(path, _)| path.as_str());
        other.or_else(|| self.absent.iter().find(|path| path.exists()).map(|path| path.as_str()))
    }

    /// Whether it may be another one where the same files lie in another directory.
    pub fn depends_on_directory(&self) -> bool {
        self.is_unseen || !self.read.is_empty() || !self.absent.is_empty()
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

    /// What compiling it takes.
    pub fn cost(&self) -> Cost {
        let (own_instructions, imported_instructions) = self.instructions;
        Cost { own_instructions, imported_instructions }
    }
}
