//! Slices: the backends of a link plan in parts that each hold all that they read, for build systems whose actions
//! declare inputs before the thin link has run.
//!
//! A slice is a directory with an action graph of backends and every file that these read. In it modules are called by
//! their rank among the slice's modules, which keeps LLVM's order of imports, and shards are in canonical form: so a slice
//! holds no name of where the link was made. Says what belongs where; writes nothing. `docs/slices.md` has the layout.

mod error;
mod request;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;

use crate::graph::{Action, ActionGraph, BackendWork, Work};
use crate::keep;
use crate::link_plan::{LinkPlan, ObjectPlan};
use crate::shard;
use crate::state::Place;

pub use error::SliceError;
pub use request::{SliceRequest, WantedObject, WantedTree};

/// What the graph of a slice is called in it.
pub const GRAPH: &str = "graph.json";
/// What the object of a slice for one module is called, and what else it writes.
pub const OBJECT: &str = "object.o";
const DWO: &str = "object.dwo";

/// One slice.
#[derive(Debug, Default)]
pub struct Slice {
    /// Where it goes.
    pub directory: Utf8PathBuf,
    /// Its backends; paths are relative to the directory.
    pub graph: ActionGraph,
    /// The files that they read, by name.
    pub files: BTreeMap<String, SliceContent>,
}

/// What a file of a slice holds.
#[derive(Debug)]
pub enum SliceContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What a file of the link holds.
    File(Utf8PathBuf),
}

/// Reads a file of the link.
pub type ReadFile<'a> = dyn Fn(&Utf8Path) -> Result<Vec<u8>, IoError> + 'a;

/// Cuts a plan into the slices that were asked for, one each, be it without backends. The plan's objects are then where the
/// backends of the slices put them.
pub fn cut(
    plan: &mut LinkPlan,
    state: &str,
    request: &SliceRequest,
    read: &ReadFile<'_>,
) -> Result<Vec<Slice>, SliceError> {
    let by_file: HashMap<&str, usize> =
        request.objects.iter().enumerate().map(|(at, object)| (object.file.as_str(), at)).collect();
    let mut of_objects: Vec<Option<&ObjectPlan>> = vec![None; request.objects.len()];
    let mut of_trees: Vec<Vec<(String, &ObjectPlan)>> = vec![Vec::new(); request.trees.len()];
    let mut moved: HashMap<Utf8PathBuf, Utf8PathBuf> = HashMap::new();
    let members = format!("{}/", Place::Members.of(state));
    for module in &plan.modules {
        let own = match by_file.get(module.id.as_str()) {
            Some(&at) => {
                of_objects[at] = Some(module);
                request.objects[at].native.clone()
            }
            None => {
                let name = module.id.as_str().strip_prefix(&members).unwrap_or(module.id.as_str());
                let label = request.label(name);
                let Some(at) = request.tree_of(label) else {
                    return Err(SliceError::Unplaced { id: module.id.clone() });
                };
                let name = escape_path(label.as_bytes());
                of_trees[at].push((label.to_owned(), module));
                request.trees[at].native.join(format!("{name}.o"))
            }
        };
        moved.insert(module.object.clone(), own);
    }
    let mut slices = Vec::with_capacity(request.objects.len() + request.trees.len());
    for (wanted, module) in request.objects.iter().zip(of_objects) {
        let mut cutting = Cutting::new(&plan.backend, read);
        if let Some(module) = module {
            cutting.add(&wanted.label, module, OBJECT, DWO)?;
        }
        slices.push(cutting.finish(&wanted.slice)?);
    }
    for (wanted, modules) in request.trees.iter().zip(of_trees) {
        let mut cutting = Cutting::new(&plan.backend, read);
        for (label, module) in modules {
            let name = escape_path(label.as_bytes());
            cutting.add(&label, module, &format!("{name}.o"), &format!("{name}.dwo"))?;
        }
        slices.push(cutting.finish(&wanted.slice)?);
    }
    move_objects(plan, &moved);
    Ok(slices)
}

/// Which of several trees a name belongs to: by the name alone, so that one that comes or goes moves no other.
fn bucket(name: &str, count: usize) -> Option<usize> {
    // The same in every release and on every machine.
    let digest = blake3::hash(name.as_bytes());
    let (first, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
    let count = u64::try_from(count).ok().filter(|&count| count > 0)?;
    usize::try_from(u64::from_le_bytes(*first) % count).ok()
}

/// What each backend imports, a line each, and what the link did not compile is not told: for a person who asks why a
/// backend ran.
pub fn explain(plan: &LinkPlan, state: &str, request: &SliceRequest) -> String {
    let members = format!("{}/", Place::Members.of(state));
    let announced: HashMap<&str, &str> =
        request.objects.iter().map(|object| (object.file.as_str(), object.label.as_str())).collect();
    let name = |id: &Utf8Path| {
        let plain = request.label(id.as_str().strip_prefix(&members).unwrap_or(id.as_str())).to_owned();
        announced.get(id.as_str()).map_or(plain, |&label| label.to_owned())
    };
    let mut text = String::new();
    for module in &plan.modules {
        let (own, imported) = (module.own_instructions, module.imported_instructions);
        let imports: Vec<String> = module.imports.iter().map(|id| name(id)).collect();
        let from = if imports.is_empty() { String::new() } else { format!(" from {}", imports.join(", ")) };
        text += &format!("{}: {own} instructions, {imported} imported{from}\n", name(&module.id));
    }
    text
}

/// One slice in the making.
struct Cutting<'a> {
    backend: &'a [String],
    read: &'a ReadFile<'a>,
    parts: Vec<Part<'a>>,
}

/// One backend of a slice, before its modules have names.
struct Part<'a> {
    label: String,
    module: &'a ObjectPlan,
    shard: shard::Canonical,
    object: String,
    dwo: String,
}

impl<'a> Cutting<'a> {
    fn new(backend: &'a [String], read: &'a ReadFile<'a>) -> Self {
        Self { backend, read, parts: Vec::new() }
    }

    fn add(
        &mut self,
        label: &str,
        module: &'a ObjectPlan,
        object: &str,
        dwo: &str,
    ) -> Result<(), SliceError> {
        let bytes = (self.read)(&module.shard)?;
        let shard =
            shard::canonical(&bytes).map_err(|source| SliceError::Shard { id: module.id.clone(), source })?;
        self.parts.push(Part {
            label: label.to_owned(),
            module,
            shard,
            object: object.to_owned(),
            dwo: dwo.to_owned(),
        });
        Ok(())
    }

    fn finish(self, directory: &Utf8Path) -> Result<Slice, SliceError> {
        let ids = self.parts.iter().flat_map(|part| {
            let named = part.shard.modules.iter().map(|module| module.path.as_slice());
            named.chain([part.module.id.as_str().as_bytes()])
        });
        let ids: Vec<&[u8]> = ids.collect::<BTreeSet<_>>().into_iter().collect();
        let mut graph = ActionGraph::new();
        let mut files = BTreeMap::new();
        for part in &self.parts {
            let action = self.action(part, &ids, &mut graph, &mut files)?;
            graph.add(action);
        }
        Ok(Slice { directory: directory.to_owned(), graph: graph.checked()?, files })
    }

    fn action(
        &self,
        part: &Part<'_>,
        ids: &[&[u8]],
        graph: &mut ActionGraph,
        files: &mut BTreeMap<String, SliceContent>,
    ) -> Result<Action, SliceError> {
        let plan = part.module;
        let name_of = |id: &[u8]| format!("{:07}.bc", ids.partition_point(|&other| other < id));
        let mut names = HashMap::new();
        let mut imports = Vec::new();
        for module in &part.shard.modules {
            let name = name_of(&module.path);
            let path =
                std::str::from_utf8(&module.path).map_err(|_| SliceError::NotText { id: plan.id.clone() })?;
            files.insert(name.clone(), SliceContent::File(path.into()));
            if path != plan.id {
                imports.push(name.clone());
            }
            names.insert(module.name.as_bytes(), name);
        }
        let own = name_of(plan.id.as_str().as_bytes());
        files.insert(own.clone(), SliceContent::File(plan.id.clone()));
        let bytes = shard::rename(&part.shard.bytes, |name| names.get(name).map(|name| name.clone().into()))
            .map_err(|source| SliceError::Shard { id: plan.id.clone(), source })?;
        let shard = own.replace(".bc", ".thinlto.bc");
        files.insert(shard.clone(), SliceContent::Bytes(bytes));
        let mut words = vec![
            (plan.id.to_string(), own.clone()),
            (plan.shard.to_string(), shard.clone()),
            (plan.object.to_string(), part.object.clone()),
        ];
        let mut extra = Vec::new();
        let read = plan.extra_inputs.iter().filter(|file| !keep::is_toolchain(file.as_std_path()));
        for (at, file) in read.enumerate() {
            let name = format!("input-{at}");
            files.insert(name.clone(), SliceContent::File(file.clone()));
            words.push((file.to_string(), name.clone()));
            extra.push(graph.file(name));
        }
        let dwo = plan.extra_outputs.first();
        words.extend(dwo.map(|dwo| (dwo.to_string(), part.dwo.clone())));
        imports.sort_unstable();
        let work = Work::Backend(BackendWork {
            module: graph.file(own),
            shard: graph.file(shard),
            imports: imports.iter().map(|name| graph.file(name)).collect(),
            extra,
            object: graph.file(&part.object),
            dwo: dwo.map(|_| graph.file(&part.dwo)),
            also: Vec::new(),
        });
        Ok(Action {
            work,
            label: part.label.clone(),
            prefix: Some(graph.prefix(reworded(self.backend, &words))),
            args: reworded(&plan.args, &words),
            cost: plan.own_instructions.saturating_add(plan.imported_instructions),
        })
    }
}

/// Words with other names of files: where a name is a word, or what stands after an equals sign.
pub fn reworded(words: &[String], names: &[(String, String)]) -> Vec<String> {
    let put = |word: &String| {
        let replaced = |(old, new): &(String, String)| {
            let option = word.strip_suffix(old.as_str())?;
            let is_value = option.starts_with('-') && option.ends_with('=');
            (option.is_empty() || is_value).then(|| format!("{option}{new}"))
        };
        names.iter().find_map(replaced).unwrap_or_else(|| word.clone())
    };
    words.iter().map(put).collect()
}

/// Puts the plan's objects where others make them.
fn move_objects(plan: &mut LinkPlan, moved: &HashMap<Utf8PathBuf, Utf8PathBuf>) {
    let of = |path: &str| moved.get(Utf8Path::new(path)).cloned();
    for module in &mut plan.modules {
        if let Some(object) = of(module.object.as_str()) {
            let name = (module.object.to_string(), object.to_string());
            module.args = reworded(&module.args, &[name]);
            module.object = object;
        }
    }
    for word in &mut plan.link.command {
        if let Some(object) = of(word) {
            *word = object.into_string();
        }
    }
    for input in &mut plan.link.inputs {
        if let Some(object) = of(input.as_str()) {
            *input = object;
        }
    }
    plan.link.inputs.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_replaced_where_they_are_whole() {
        let words = ["-x", "ir", "a.o", "-fthinlto-index=s/a.o.thinlto.bc", "-o", "a.o.o", "-fx=y=p", "xa.o"];
        let names = [("a.o", "0.bc"), ("s/a.o.thinlto.bc", "0.thinlto.bc"), ("p", "input-0")]
            .map(|(old, new)| (old.to_owned(), new.to_owned()));
        let found = reworded(&words.map(str::to_owned), &names);
        assert_eq!(found.join(" "), "-x ir 0.bc -fthinlto-index=0.thinlto.bc -o a.o.o -fx=y=input-0 xa.o");
    }

    #[test]
    fn a_name_alone_decides_which_tree_it_belongs_to() {
        let of = |name| bucket(name, 8);
        assert_eq!(of(""), Some(7));
        assert_ne!(of("liba.a/a.o"), of("liba.a/b.o"));
        assert_eq!(bucket("a", 0), None);
    }
}
