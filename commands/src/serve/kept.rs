//! Native objects that earlier links left in the state directory, found again by what they were compiled from.
//!
//! An object is found by its key alone: what compiles how, and the linker's own key (see `link`). The record is a line of JSON for each object, appended as backends end, so that a
//! killed link keeps what was finished; the last line of a key counts. An object counts as long as it has the content
//! with which it was recorded.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;

use camino::Utf8PathBuf;
use distlto_executor::describe::framed::Framed;
use distlto_executor::undeclared::Undeclared;
use distlto_planner::digests::FileDigests;
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
const HEADER: &str = "distlto kept objects 5\n";

/// One object that is kept.
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

/// The objects of one state directory, which is held.
#[derive(Debug)]
pub struct Kept {
    known: HashMap<String, KeptObject>,
    /// The keys by content.
    by_content: HashMap<String, String>,
    /// Two modules of one source.
    alike: Option<[String; 2]>,
    /// The key of each module's last object, by label.
    last: HashMap<String, String>,
    /// The contents of modules, once they are asked for.
    modules: OnceLock<HashSet<String>>,
}

impl Kept {
    /// Reads the record. A damaged line costs one compilation.
    pub fn load(state: &str) -> Self {
        let (mut known, mut by_content, mut last) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (mut sources, mut alike) = (HashMap::<String, String>::new(), None);
        for object in file(state).read::<KeptObject>() {
            if let Some(source) = &object.source
                && let Some(other) = sources.insert(source.clone(), object.label.clone())
                && other != object.label
            {
                alike = Some([other, object.label.clone()]);
            }
            last.insert(object.label.clone(), object.key.clone());
            by_content.insert(object.content.clone(), object.key.clone());
            known.insert(object.key.clone(), object);
        }
        Self { known, by_content, alike, last, modules: OnceLock::new() }
    }

    /// What is recorded under a key, whatever has become of it.
    pub fn known(&self, key: &str) -> Option<&KeptObject> {
        self.known.get(key)
    }

    /// What people call two modules of one source, if there are any.
    pub fn alike(&self) -> Option<&[String; 2]> {
        self.alike.as_ref()
    }

    /// Whether anything was compiled from a module of this content ([`Parts::module`]), whatever it was called.
    pub fn has_module(&self, content: &str) -> bool {
        let contents =
            || self.known.values().filter_map(|object| Some(object.parts.as_ref()?.module().to_owned()));
        self.modules.get_or_init(|| contents().collect()).contains(content)
    }

    /// What is recorded last of a module, whatever has become of it.
    pub fn last(&self, label: &str) -> Option<&KeptObject> {
        self.known.get(self.last.get(label)?)
    }

    /// The object of a key, if it is as it was recorded, and so is what its compiler read besides.
    pub fn find(&self, key: &str, digests: &FileDigests) -> Option<&KeptObject> {
        let object = self.known.get(key)?;
        let holds = digests.hold(&object.files) && object.changed_read(digests).is_none();
        (!object.files.is_empty() && holds).then_some(object)
    }

    /// What is recorded of what was compiled from this, whatever has become of it.
    pub fn of_content(&self, content: &str) -> Option<&KeptObject> {
        self.known.get(self.by_content.get(content)?)
    }

    /// The object of what was compiled from this, if it is as it was recorded.
    pub fn find_content(&self, content: &str, digests: &FileDigests) -> Option<&KeptObject> {
        self.find(&self.of_content(content)?.key, digests)
    }
}

/// The key of an object: the compiler and its flags, the module's own `flags`, and the linker's key for the module.
///
/// That has the modules by content, in no order. A backend imports from them in the order of their names, which shows in the
/// object, and the place of an archive's member is a part of its name.
pub fn key(
    identity: &Identity,
    question: &Question<'_>,
    shard: &[u8],
    flags: &[String],
    dwo: Option<&Utf8PathBuf>,
) -> String {
    let mut framed = Framed::new("distlto served object 1");
    framed.content("compilation", &identity.digest);
    framed.add("key", question.key);
    flags.iter().for_each(|flag| framed.add("flag", flag));
    // What is wrong with a shard is for its backend to say.
    let mut modules = shard::modules(shard).unwrap_or_default();
    modules.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    for module in modules {
        let role = if module.path == question.module { "own" } else { "import" };
        framed.add(role, module.hash.unwrap_or_default().map(u32::to_le_bytes).concat());
    }
    // The name of split debug information stands in the object.
    framed.add("dwo", dwo.map_or("", |dwo| dwo.as_str()));
    framed.finish().hex()
}

/// For recording objects as they are made, with [`JsonLines::append`]. Fails where they cannot be.
pub fn appender(state: &str) -> Result<JsonLines, IoError> {
    let mut file = file(state);
    file.open()?;
    Ok(file)
}

/// Keeps the record of these objects alone, those of the link that has ended well.
pub fn settle(state: &str, objects: &[KeptObject]) -> Result<(), IoError> {
    let lines: Vec<String> = objects.par_iter().with_min_len(64).map(line).collect();
    file(state).replace(&lines)
}

/// The objects of the last link that ended well, in link order.
pub fn in_order(state: &str) -> Vec<KeptObject> {
    file(state).read()
}

fn file(state: &str) -> JsonLines {
    JsonLines::new(&Place::KeptObjects.path(state), HEADER)
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
        let Undeclared { read, absent, is_more } = &module.undeclared;
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

    /// The same object under another key, as that of another module, with its files in place.
    pub fn of_other(
        self,
        key: &str,
        label: &str,
        files: impl Iterator<Item = Utf8PathBuf>,
        digests: &FileDigests,
    ) -> Result<Self, IoError> {
        let files: Vec<_> = files.collect();
        let files = digests.written(files.iter().map(|file| file.as_path()))?;
        Ok(Self { key: key.to_owned(), label: label.to_owned(), files, ..self })
    }

    /// What compiling it takes.
    pub fn cost(&self) -> Cost {
        let (own_instructions, imported_instructions) = self.instructions;
        Cost { own_instructions, imported_instructions }
    }

    /// The native object.
    pub fn path(&self) -> &Path {
        // `find` and `of` give objects that have files.
        Path::new(&self.files[0].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_key_as_long_as_they_are_what_they_were() {
        let place = tempfile::tempdir().expect("a directory");
        let state = place.path().to_str().expect("UTF-8");
        let path = format!("{state}/a.o");
        std::fs::write(&path, "object").expect("written");
        let digests = FileDigests::new(Path::new(""));
        let module = LinkModule { key: "key".to_owned(), label: "a".to_owned(), ..LinkModule::default() };
        let object = KeptObject::of(&module, [path.clone().into()].into_iter(), &digests).expect("there");
        appender(state).expect("opens").append(&object).expect("written");
        assert_eq!(Kept::load(state).find("key", &digests), Some(&object));
        assert_eq!(Kept::load(state).find("other", &digests), None);
        settle(state, std::slice::from_ref(&object)).expect("written");
        assert_eq!(Kept::load(state).known.len(), 1);
        std::fs::write(&path, "another").expect("written");
        assert_eq!(Kept::load(state).find("key", &FileDigests::new(Path::new(""))), None);
    }
}
