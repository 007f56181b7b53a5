//! The sources of a link's modules, after which promoted locals are called: no two modules may have the same.
//!
//! Does not decide whether a link has stable names.

use std::collections::HashMap;

use distlto_planner::backend_flags::stable_names::{alike, spelled};
use distlto_planner::module::source_name;
use distlto_planner::resolution::Resolutions;
use distlto_prepare::input::Input;
use distlto_prepare::kind::bitcode_of;

use super::modules::ModuleFiles;

/// The sources of modules so far.
#[derive(Default)]
pub struct SourceNames {
    /// The module of each source, as LLVM spells that: its label, and its own spelling.
    by_source: HashMap<String, (String, String)>,
    /// The sources of modules by label, as far as they were read before a question.
    read: HashMap<String, String>,
}

impl SourceNames {
    /// Claims a source for a module. Two modules of one source would define one name twice; the error says which.
    pub fn claim(&mut self, source: &str, label: &str) -> Result<(), String> {
        let module = (label.to_owned(), source.to_owned());
        match self.by_source.insert(spelled(source), module) {
            Some((one, first)) if one != label => Err(alike((&one, &first), (label, source))),
            _ => Ok(()),
        }
    }

    /// Claims the sources of all modules that the linker has loaded: it asks for some only after it has compiled others.
    pub fn claim_all(&mut self, modules: &Resolutions<'_>, files: &mut ModuleFiles) -> Result<(), String> {
        for id in modules.modules().filter_map(|id| std::str::from_utf8(id).ok()) {
            let Some(source) = read(files, id) else { continue };
            let label = files.label(id);
            self.claim(&source, &label)?;
            self.read.insert(label, source);
        }
        Ok(())
    }

    /// The source of a module, which is read once.
    pub fn of(&mut self, files: &mut ModuleFiles, id: &str, label: &str) -> Option<String> {
        self.read.remove(label).or_else(|| read(files, id))
    }

    /// Whether the source of a module is known.
    pub fn has(&self, label: &str) -> bool {
        self.by_source.values().any(|(known, _)| known == label)
    }
}

/// Reads the source of a module. The linker reports a file that cannot be read.
fn read(files: &mut ModuleFiles, id: &str) -> Option<String> {
    let (file, range) = files.container(id).ok()?;
    let input = Input::open(&file).ok()?;
    let bytes = range.map_or(Some(&*input), |range| input.get(range)).unwrap_or_default();
    source_name(bitcode_of(bytes).unwrap_or(bytes)).ok()
}
