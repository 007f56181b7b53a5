//! What the record is told of the backends of a link by lld: why each has to run, or that its object is kept.
//!
//! Decides nothing. Names modules and shards as they are in every link, since lld's own names are gone when it ends.

use std::collections::HashMap;

use distlto_planner::graph::ActionKind;
use distlto_planner::keep::ModulePlaces;
use distlto_record::action::{ActionRecord, Fate, Instructions, OutputRecord};
use distlto_record::why::{Change, What};

use super::kept::{Kept, KeptObject};
use super::modules::{CompileSettings, LinkModule};
use super::parts::Parts;

/// What is known of a link before its backends run.
pub struct Told<'a> {
    /// The state directory.
    pub directory: &'a str,
    pub kept: &'a Kept,
    pub compilation: &'a CompileSettings,
}

impl Told<'_> {
    /// The actions of a link: those of the modules that are compiled, in the order of `wanted`, then those whose objects are
    /// kept.
    pub fn actions(&self, modules: &[LinkModule], wanted: &[usize]) -> Vec<ActionRecord> {
        let by_path: HashMap<&str, &LinkModule> =
            modules.iter().map(|module| (module.path.as_str(), module)).collect();
        let kept = (0..modules.len()).filter(|&number| modules[number].object.is_some());
        let numbers = wanted.iter().copied().chain(kept);
        let action = |(id, number): (usize, usize)| {
            let module = &modules[number];
            let mut action = self.known(id, module);
            match &module.object {
                None => action.why = self.why(module, &by_path),
                Some(_) => action.result = Fate::Kept,
            }
            action
        };
        numbers.enumerate().map(action).collect()
    }

    fn known(&self, id: usize, module: &LinkModule) -> ActionRecord {
        let label = &module.name.label;
        let places = ModulePlaces::of(self.directory, label);
        let mut action = ActionRecord::new(id, ActionKind::Opt, label, module.cost.total());
        action.key = module.key.as_ref().map(|key| key.hex());
        action.parts = module.parts.as_ref().map(Parts::named).unwrap_or_default();
        action.module = Some(if module.name.is_temporary { label.clone() } else { module.path.clone() });
        action.shard = Some(places.shard);
        action.instructions = Some(Instructions {
            own: module.cost.own_instructions,
            imported: module.cost.imported_instructions,
        });
        let before = self.kept.last(label).map_or(&[][..], |object| &object.files);
        let dwo = self.compilation.flags.dwo(label);
        let paths = [places.object].into_iter().chain(dwo.map(|dwo| dwo.into_string()));
        action.outputs = paths
            .map(|path| {
                let before = digest_in(before, &path);
                let after = module.object.as_ref().and_then(|object| digest_in(&object.files, &path));
                OutputRecord { path, before, after }
            })
            .collect();
        action
    }

    /// Why a module has to be compiled.
    fn why(&self, module: &LinkModule, by_path: &HashMap<&str, &LinkModule>) -> Vec<Change> {
        let (Some(key), Some(parts)) = (&module.key, &module.parts) else {
            return vec![Change::of(What::NotKnown)];
        };
        if let Some(object) = self.kept.known(&key.hex()) {
            return lost(object);
        }
        let Some(last) = self.kept.last(&module.name.label) else {
            return vec![Change::of(What::FirstTime)];
        };
        let Some(before) = &last.parts else { return vec![Change::of(What::NotKnown)] };
        parts.changes(before, || {
            let imports = module.imports.iter().filter_map(|path| by_path.get(path.as_str()));
            imports.filter_map(|import| self.why_import(import)).collect()
        })
    }

    /// What is otherwise about a module that another one imports from.
    fn why_import(&self, import: &LinkModule) -> Option<Change> {
        let now = import.parts.as_ref().map(Parts::module);
        let before = self.kept.last(&import.name.label).and_then(|object| object.parts.as_ref());
        let what = match (now, before.map(Parts::module)) {
            (Some(now), Some(before)) => (now != before).then_some(What::Import),
            // It may have been there under another name, as a member of an archive; else no link has loaded it before.
            (Some(now), None) => (!self.kept.has_module(now)).then_some(What::InputAdded),
            (None, _) => Some(What::Import),
        };
        what.map(|what| Change::named(what, &import.name.label))
    }
}

fn digest_in(files: &[(String, String)], path: &str) -> Option<String> {
    files.iter().find(|(known, _)| known == path).map(|(_, digest)| digest.clone())
}

/// Why an object does not serve although it is that of the key: the first of its files that is not as it was left.
fn lost(object: &KeptObject) -> Vec<Change> {
    let missing = object.files.iter().find(|(path, _)| !std::path::Path::new(path).exists());
    let (what, file) = match missing {
        Some(file) => (What::OutputMissing, Some(file)),
        None => (What::OutputChanged, object.files.first()),
    };
    vec![Change { what, name: file.map(|(path, _)| path.clone()) }]
}
