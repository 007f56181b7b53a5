//! Links with the objects of a graph after its backends have run.
//!
//! The linker performs its thin link again. Each shard is compared with the one that the object was made from. So a
//! stale graph is an error, and never another program. Needs the graph and the objects, and no state.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, BackendWork};
use distlto_planner::shard;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_record::progress::text::counted;

use super::describe::{Unfit, completed};
use super::modules::ModuleFiles;
use super::protocol::{Answer, PACKET};
use super::settings::CompileSettings;
use super::socket::{Connection, Message, read};
use super::thin_link::ThinLink;
use crate::completion::Completion;
use crate::link::error::LinkError;

/// The objects of a graph, to answer a linker with.
pub struct GraphObjects {
    graph: Utf8PathBuf,
    /// By the modules' labels.
    modules: HashMap<String, Made>,
    is_asked: AtomicBool,
}

/// The object of a module.
struct Made {
    object: PathBuf,
    /// The digest of the shard it was compiled with.
    shard: String,
    /// How many modules it imports from.
    imports: usize,
}

impl GraphObjects {
    /// Reads the graph at `path`. A backend without a shard digest gives no answer.
    pub fn of(path: &Utf8Path, graph: &ActionGraph) -> Self {
        let made = |backend: &BackendWork| {
            let object = graph.path(backend.object).as_std_path().to_owned();
            let shard = backend.decided.shard.clone()?;
            Some(Made { object, shard, imports: backend.imports.len() })
        };
        let modules = graph.actions().filter_map(|(_, action)| {
            let made = made(action.backend()?)?;
            Some((action.label.clone(), made))
        });
        Self { graph: path.to_owned(), modules: modules.collect(), is_asked: AtomicBool::new(false) }
    }

    /// Whether no linker asked although the graph has modules.
    pub fn is_left_out(&self) -> bool {
        !self.modules.is_empty() && !self.is_asked.load(Ordering::Relaxed)
    }

    /// Answers a linker until it is gone; after an error it waits. `root` is where it runs.
    pub fn serve(
        &self,
        linker: &Connection,
        root: &Path,
        settings: &CompileSettings,
    ) -> Result<(), LinkError> {
        let mut files = ModuleFiles::new(root, "").with_slices(settings);
        let (resolutions, mut resolved, mut completion) = (OnceCell::new(), None, None);
        let mut bytes = vec![0; PACKET];
        loop {
            let (question, shard) = match linker.message(&mut bytes, None)? {
                Message::Resolution(file) => {
                    resolved = file;
                    continue;
                }
                Message::Question(question, shard) => (question, shard),
                Message::HasAll(ticket) | Message::Succeeded(ticket) => {
                    linker.answer(ticket, Answer::Compile)?;
                    continue;
                }
                // Objects of the linker itself are not kept.
                Message::Compiled(..) | Message::Nothing => continue,
                Message::Gone => return Ok(()),
            };
            // Before the first question.
            if let Some(file) = resolved.take() {
                let text = read(Some(file)).map_err(IoError::on("read", "what the linker resolved"))?;
                completion = Some(settings.completion(resolutions.get_or_init(|| text)));
            }
            self.is_asked.store(true, Ordering::Relaxed);
            let id = String::from_utf8_lossy(question.module);
            let shard = read(shard).map_err(IoError::on("read the index shard of", &*id))?;
            match self.answer(&mut files, completion.as_mut(), &id, &shard)? {
                Some(object) => {
                    let object = root.join(object);
                    let file = File::open(&object).map_err(IoError::on("read", &object))?;
                    linker.give(question.ticket, &file)?;
                }
                None => linker.answer(question.ticket, Answer::Compile)?,
            }
        }
    }

    /// The objects of a linker's modules, which runs in `root`.
    pub fn objects(
        &self,
        thin_link: ThinLink,
        root: &Path,
        settings: &CompileSettings,
    ) -> Result<Vec<PathBuf>, LinkError> {
        self.is_asked.store(true, Ordering::Relaxed);
        let mut files = ModuleFiles::new(root, "").with_slices(settings);
        let mut completion = thin_link.resolutions.as_deref().map(|text| settings.completion(text));
        let object = |(id, shard): (String, Vec<u8>)| match self.answer(
            &mut files,
            completion.as_mut(),
            &id,
            &shard,
        )? {
            Some(object) => Ok(root.join(object)),
            None => {
                let why = "the graph has no backend of it".to_owned();
                Err(LinkError::StaleGraph { graph: self.graph.clone(), module: id, why })
            }
        };
        thin_link.shards.into_iter().map(object).collect()
    }

    /// The object of a module; `None` for one that only the linker can compile.
    fn answer(
        &self,
        files: &mut ModuleFiles,
        completion: Option<&mut Completion<'_>>,
        id: &str,
        bytes: &[u8],
    ) -> Result<Option<&Path>, LinkError> {
        let stale =
            |module: String, why: String| LinkError::StaleGraph { graph: self.graph.clone(), module, why };
        let label = files.label(id);
        let completed = match completed(files, completion, id, bytes) {
            Ok(completed) => completed,
            // The thin link gave it no backend either.
            Err(Unfit::Because(_)) if !self.modules.contains_key(&label) => return Ok(None),
            Err(Unfit::Because(why)) => return Err(stale(label, why)),
            Err(Unfit::Io(error)) => return Err(error.into()),
        };
        let Some(made) = self.modules.get(&label) else {
            return Err(stale(label, "the graph has no backend of it".to_owned()));
        };
        if shard::digest(&completed).is_ok_and(|digest| digest == made.shard) {
            let kind = classify_file(&made.object)?;
            if !matches!(kind, Kind::Native(_)) {
                let object = made.object.clone();
                return Err(LinkError::NoObject { object, module: label, kind: kind.to_string() });
            }
            return Ok(Some(&made.object));
        }
        let imports = shard::read(bytes).map_or(0, |read| read.imported_from(id).count());
        let why = match imports == made.imports {
            true => "the module, one that it imports from, or what the thin link says of them is another"
                .to_owned(),
            false => format!(
                "it imports from {}, and imported from {} before",
                counted(imports, "module"),
                made.imports
            ),
        };
        Err(stale(label, why))
    }
}
