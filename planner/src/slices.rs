//! Slices: the backends of a link in parts that each hold all that they read. For build systems with actions that
//! declare inputs before the thin link has run.
//!
//! A slice is a directory with an action graph of backends and every file that these read. In it, modules are named by
//! their rank among the slice's modules, which keeps LLVM's order of imports, and shards are in canonical form. So a
//! slice does not name the place of the link. Assigns files to slices; writes nothing. `docs/design/slices.md` has the
//! layout.

mod error;
mod request;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;

use crate::graph::error::GraphError;
use crate::graph::{Action, ActionGraph, BackendWork, FileId, Work};
use crate::keep;
use crate::shard;

pub use error::SliceError;
pub use request::{SliceRequest, WantedObject, WantedTree};

/// The graph's file name in a slice.
pub const GRAPH: &str = "graph.json";
/// The file name of the object in a slice for one module; `object.dwo` is its other output.
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

/// The content of a file of a slice.
#[derive(Debug)]
pub enum SliceContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The content of a file of the link.
    File(Utf8PathBuf),
}

/// Reads a file of the link.
pub type ReadFile<'a> = dyn Fn(&Utf8Path) -> Result<Vec<u8>, IoError> + 'a;

/// Cuts a link's graph into the requested slices, one each, even without backends. The returned graph has the objects
/// at the places where the slices' backends put them.
pub fn cut(
    graph: &ActionGraph,
    request: &SliceRequest,
    read: &ReadFile<'_>,
) -> Result<(Vec<Slice>, ActionGraph), SliceError> {
    let by_file: HashMap<&str, usize> =
        request.objects.iter().enumerate().map(|(at, object)| (object.file.as_str(), at)).collect();
    let mut of_objects: Vec<Option<Backend<'_>>> = vec![None; request.objects.len()];
    let mut of_trees: Vec<Vec<(String, Backend<'_>)>> = vec![Vec::new(); request.trees.len()];
    let mut moved: HashMap<FileId, Utf8PathBuf> = HashMap::new();
    for backend in backends(graph) {
        let own = match by_file.get(backend.action.label.as_str()) {
            Some(&at) => {
                of_objects[at] = Some(backend);
                request.objects[at].native.clone()
            }
            None => {
                let label = request.label(&backend.action.label);
                let Some(at) = request.tree_of(label) else {
                    return Err(SliceError::Unplaced { id: backend.action.label.clone().into() });
                };
                let name = escape_path(label.as_bytes());
                of_trees[at].push((label.to_owned(), backend));
                request.trees[at].native.join(format!("{name}.o"))
            }
        };
        moved.insert(backend.files.object, own);
    }
    let mut slices = Vec::with_capacity(request.objects.len() + request.trees.len());
    for (wanted, backend) in request.objects.iter().zip(of_objects) {
        let mut cutting = Cutting::new(graph, read);
        if let Some(backend) = backend {
            cutting.add(&wanted.label, backend, OBJECT, DWO)?;
        }
        slices.push(cutting.finish(&wanted.slice)?);
    }
    for (wanted, backends) in request.trees.iter().zip(of_trees) {
        let mut cutting = Cutting::new(graph, read);
        for (label, backend) in backends {
            let name = escape_path(label.as_bytes());
            cutting.add(&label, backend, &format!("{name}.o"), &format!("{name}.dwo"))?;
        }
        slices.push(cutting.finish(&wanted.slice)?);
    }
    Ok((slices, with_objects_at(graph, &moved)?))
}

/// One backend of a graph.
#[derive(Clone, Copy)]
struct Backend<'a> {
    action: &'a Action,
    files: &'a BackendWork,
}

fn backends(graph: &ActionGraph) -> impl Iterator<Item = Backend<'_>> {
    graph.actions().filter_map(|(_, action)| Some(Backend { action, files: action.backend()? }))
}

/// Which of several trees a name belongs to: by the name alone, so that one that comes or goes moves no other.
fn bucket(name: &str, count: usize) -> Option<usize> {
    // The same in every release and on every machine.
    let digest = blake3::hash(name.as_bytes());
    let (first, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
    let count = u64::try_from(count).ok().filter(|&count| count > 0)?;
    usize::try_from(u64::from_le_bytes(*first) % count).ok()
}

/// Returns a line for each backend with its size and imports, for a person who asks why a backend ran. Modules that
/// the link did not compile have no line.
pub fn explain(graph: &ActionGraph, request: &SliceRequest) -> String {
    let announced: HashMap<&str, &str> =
        request.objects.iter().map(|object| (object.file.as_str(), object.label.as_str())).collect();
    let name = |label: &str| {
        let plain = request.label(label).to_owned();
        announced.get(label).map_or(plain, |&label| label.to_owned())
    };
    let labels: HashMap<FileId, &str> =
        backends(graph).map(|backend| (backend.files.module, backend.action.label.as_str())).collect();
    let mut text = String::new();
    for Backend { action, files } in backends(graph) {
        let imported = files.decided.imported;
        let own = action.cost.saturating_sub(imported);
        // A module has two names where one that imports from it has members of archives beside it.
        let label = |file: &FileId| {
            labels.get(file).map_or_else(|| graph.path(*file).to_string(), |label| name(label))
        };
        let imports: Vec<String> = files.imports.iter().map(label).collect();
        let from = if imports.is_empty() { String::new() } else { format!(" from {}", imports.join(", ")) };
        text += &format!("{}: {own} instructions, {imported} imported{from}\n", name(&action.label));
    }
    text
}

/// One slice in the making.
struct Cutting<'a> {
    graph: &'a ActionGraph,
    read: &'a ReadFile<'a>,
    parts: Vec<SliceBackend<'a>>,
}

/// One backend of a slice, before its modules have names.
struct SliceBackend<'a> {
    label: String,
    backend: Backend<'a>,
    shard: shard::Canonical,
    object: String,
    dwo: String,
}

impl<'a> Cutting<'a> {
    fn new(graph: &'a ActionGraph, read: &'a ReadFile<'a>) -> Self {
        Self { graph, read, parts: Vec::new() }
    }

    fn add(&mut self, label: &str, backend: Backend<'a>, object: &str, dwo: &str) -> Result<(), SliceError> {
        let bytes = (self.read)(self.graph.path(backend.files.shard))?;
        let shard = shard::canonical(&bytes)
            .map_err(|source| SliceError::Shard { id: backend.action.label.clone().into(), source })?;
        let (label, object, dwo) = (label.to_owned(), object.to_owned(), dwo.to_owned());
        self.parts.push(SliceBackend { label, backend, shard, object, dwo });
        Ok(())
    }

    fn module(&self, part: &SliceBackend<'_>) -> &'a Utf8Path {
        self.graph.path(part.backend.files.module)
    }

    fn finish(self, directory: &Utf8Path) -> Result<Slice, SliceError> {
        let ids = self.parts.iter().flat_map(|part| {
            let named = part.shard.modules.iter().map(|module| module.path.as_slice());
            named.chain([self.module(part).as_str().as_bytes()])
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
        part: &SliceBackend<'_>,
        ids: &[&[u8]],
        graph: &mut ActionGraph,
        files: &mut BTreeMap<String, SliceContent>,
    ) -> Result<Action, SliceError> {
        let Backend { action, files: backend } = part.backend;
        let module = self.module(part);
        let id = || Utf8PathBuf::from(&action.label);
        let name_of = |id: &[u8]| format!("{:07}.bc", ids.partition_point(|&other| other < id));
        let mut names = HashMap::new();
        let mut imports = Vec::new();
        for named in &part.shard.modules {
            let name = name_of(&named.path);
            let path = std::str::from_utf8(&named.path).map_err(|_| SliceError::NotText { id: id() })?;
            files.insert(name.clone(), SliceContent::File(path.into()));
            if path != module {
                imports.push(name.clone());
            }
            names.insert(named.name.as_bytes(), name);
        }
        let own = name_of(module.as_str().as_bytes());
        files.insert(own.clone(), SliceContent::File(module.to_owned()));
        let bytes = shard::rename(&part.shard.bytes, |name| names.get(name).map(|name| name.clone().into()))
            .map_err(|source| SliceError::Shard { id: id(), source })?;
        let shard = own.replace(".bc", ".thinlto.bc");
        files.insert(shard.clone(), SliceContent::Bytes(bytes));
        let path = |file: FileId| self.graph.path(file).to_string();
        let mut words = vec![
            (module.to_string(), own.clone()),
            (path(backend.shard), shard.clone()),
            (path(backend.object), part.object.clone()),
        ];
        let mut extra = Vec::new();
        let read = backend.extra.iter().map(|&file| self.graph.path(file));
        for (at, file) in read.filter(|file| !keep::is_toolchain(file.as_std_path())).enumerate() {
            let name = format!("input-{at}");
            files.insert(name.clone(), SliceContent::File(file.to_owned()));
            words.push((file.to_string(), name.clone()));
            extra.push(graph.file(name));
        }
        words.extend(backend.dwo.map(|dwo| (path(dwo), part.dwo.clone())));
        imports.sort_unstable();
        let shared = action.prefix.map_or(&[][..], |prefix| self.graph.prefix_words(prefix));
        let work = Work::Backend(BackendWork {
            module: graph.file(own),
            shard: graph.file(shard),
            imports: imports.iter().map(|name| graph.file(name)).collect(),
            extra,
            object: graph.file(&part.object),
            dwo: backend.dwo.map(|_| graph.file(&part.dwo)),
            also: Vec::new(),
            decided: backend.decided.clone(),
        });
        Ok(Action {
            work,
            label: part.label.clone(),
            prefix: Some(graph.prefix(reworded(shared, &words))),
            args: reworded(&action.args, &words),
            cost: action.cost,
        })
    }
}

/// Replaces names of files in words: a name that is a word, or the value after an option's equals sign.
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

/// The graph with objects where others make them.
fn with_objects_at(
    graph: &ActionGraph,
    moved: &HashMap<FileId, Utf8PathBuf>,
) -> Result<ActionGraph, GraphError> {
    let mut there = ActionGraph::new();
    for (_, action) in graph.actions() {
        let work = action.work.map(|file| match moved.get(&file) {
            Some(place) => there.file(place),
            None => there.file(graph.path(file)),
        });
        let object = action.backend().map(|backend| backend.object);
        let place =
            object.and_then(|object| Some((graph.path(object).to_string(), moved.get(&object)?.to_string())));
        let prefix = action.prefix.map(|prefix| there.prefix(graph.prefix_words(prefix).to_vec()));
        let args = reworded(&action.args, &Vec::from_iter(place));
        there.add(Action { work, label: action.label.clone(), prefix, args, cost: action.cost });
    }
    there.checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_decides_which_tree_it_belongs_to() {
        let of = |name| bucket(name, 8);
        assert_eq!(of(""), Some(7));
        assert_ne!(of("liba.a/a.o"), of("liba.a/b.o"));
        assert_eq!(bucket("a", 0), None);
    }
}
