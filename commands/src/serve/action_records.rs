//! Describes backends for a link's record: why each has to run, or that its object is kept.
//!
//! Decides nothing.

use std::path::Path;

use distlto_planner::digests::FileDigests;
use distlto_planner::graph::ActionKind;
use distlto_planner::keep::ModulePlaces;
use distlto_record::action::{ActionRecord, ActionStatus, Instructions, OutputRecord};
use distlto_record::why::{Change, ChangeKind};

use super::key_parts::KeyParts;
use super::link::Link;
use super::module::LinkModule;
use super::module_record::RecordedObject;

impl Link<'_> {
    /// Returns the action of a module that has to be compiled for these reasons.
    pub fn action_record(&self, id: usize, module: &LinkModule, why: Vec<Change>) -> ActionRecord {
        ActionRecord { why, ..self.base_record(id, module) }
    }

    /// Returns the action of a module with a kept object.
    pub fn kept_record(&self, id: usize, module: &LinkModule) -> ActionRecord {
        let mut action = ActionRecord { result: ActionStatus::Kept, ..self.base_record(id, module) };
        action.took.spared_us = module.object.as_ref().map(|object| object.took_us).filter(|&took| took > 0);
        action
    }

    fn base_record(&self, id: usize, module: &LinkModule) -> ActionRecord {
        let (label, cost) = (&module.label, module.provenance.cost());
        let places = ModulePlaces::of(self.state(), label);
        let mut action = ActionRecord::new(id, ActionKind::Opt, label, cost.total());
        action.key = Some(module.key.clone());
        action.parts = module.provenance.parts.as_ref().map(KeyParts::named).unwrap_or_default();
        action.module =
            Some(module.file.as_ref().filter(|_| module.archive.is_none()).unwrap_or(label).clone());
        action.shard = Some(places.shard);
        action.instructions =
            Some(Instructions { own: cost.own_instructions, imported: cost.imported_instructions });
        let before = self.earlier.last(label).map_or(&[][..], |object| &object.files);
        let dwo = self.settings.flags.dwo(label);
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

    /// Returns why a module has to be compiled. `contents` are the digests of its imports, in their order.
    pub fn why(&self, module: &LinkModule, contents: &[String]) -> Vec<Change> {
        let Some(parts) = &module.provenance.parts else { return vec![Change::of(ChangeKind::NotKnown)] };
        let by_key = || self.earlier.last(&module.label).filter(|last| last.key == module.key);
        if let Some(object) = self.earlier.of_content(&module.provenance.content).or_else(by_key) {
            return lost(object);
        }
        let Some(last) = self.earlier.last(&module.label) else {
            return vec![Change::of(ChangeKind::FirstTime)];
        };
        let Some(before) = &last.provenance.parts else { return vec![Change::of(ChangeKind::NotKnown)] };
        parts.changes(before, || {
            let imports = module.imports.iter().zip(contents);
            imports.filter_map(|(import, content)| self.why_import(import, content)).collect()
        })
    }

    /// Returns the change of a module that another one imports from, if there is one.
    fn why_import(&self, import: &str, content: &str) -> Option<Change> {
        let before = self
            .earlier
            .last(import)
            .and_then(|object| object.provenance.parts.as_ref())
            .map(KeyParts::module);
        let what = match before {
            Some(before) => (content != before).then_some(ChangeKind::Import),
            // It may have been there under another name, as a member of an archive; else no link has loaded it before.
            None => (!self.earlier.has_module(content)).then_some(ChangeKind::InputAdded),
        };
        what.map(|what| Change::named(what, import))
    }
}

fn digest_in(files: &[(String, String)], path: &str) -> Option<String> {
    files.iter().find(|(known, _)| known == path).map(|(_, digest)| digest.clone())
}

/// Returns why the object of an equal module is a miss: a file that its compiler read has changed, or the store has
/// lost it.
fn lost(object: &RecordedObject) -> Vec<Change> {
    if let Some(path) = object.changed_read(&FileDigests::new(Path::new(""))) {
        return vec![Change::named(ChangeKind::Input, path)];
    }
    vec![Change { what: ChangeKind::OutputMissing, name: object.files.first().map(|(path, _)| path.clone()) }]
}
