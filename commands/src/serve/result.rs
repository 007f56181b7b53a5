//! Writes the results of a served link to its state directory: its graph, the record of its objects, and its reads.
//! From the reads the next link sees that there is nothing to do.
//!
//! The graph is a record of the link. Nothing here decides which backends run.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::digests::FileDigests;
use distlto_planner::graph::build::{BackendParts, LinkParts};
use distlto_planner::graph::{ActionGraph, json};
use distlto_planner::keep::{self, ModulePlaces};
use distlto_planner::state::Place;
use distlto_planner::words::lossy;
use distlto_prepare::write::write_if_changed;
use distlto_record::progress::{Progress, ProgressEvent};

use super::module::LinkModule;
use super::module_record::{self, RecordedObject};
use super::settings::CompileSettings;
use crate::link::file_state::Start;
use crate::link::reads::{Outputs, Reads};
use crate::link::{LinkError, Session, unchanged};

/// A successful link.
pub struct Finished<'a> {
    pub session: &'a Session<'a>,
    pub compilation: &'a CompileSettings,
    pub digests: &'a FileDigests,
    pub modules: &'a [LinkModule],
    /// The files that the linker has read, if that was observed.
    pub inputs: BTreeSet<Utf8PathBuf>,
}

impl Finished<'_> {
    /// Keeps the record for the next link; returns the link's graph.
    pub fn keep(&self, observed: Option<(Reads, Outputs, Start)>) -> Result<ActionGraph, LinkError> {
        let session = self.session;
        let objects: Vec<RecordedObject> =
            self.modules.iter().filter_map(|module| module.object.clone()).collect();
        module_record::keep(session.directory, &objects)?;
        let graph = self.parts().to_graph()?.into_record();
        write_if_changed(&Place::LinkGraph.path(session.directory), &json::to_bytes(&graph))?;
        if let Some((reads, outputs, start)) = observed {
            let doubt =
                unchanged::record(session.directory, session.key, &reads, &outputs, &start, self.digests)?;
            if let Some(doubt) = doubt {
                session.reporter.report(ProgressEvent::Noted(&format!(
                    "the next link is made whatever has changed: {doubt}"
                )));
            }
        }
        let imports = self.modules.iter().map(|module| module.imports.len()).sum();
        let ran = self.modules.iter().filter(|module| module.ran).count();
        session.summarise(self.modules.len(), imports, ran);
        Ok(graph)
    }

    fn parts(&self) -> LinkParts {
        let link = self.session.link;
        let linker = link.linker.iter().chain(link.line.words()).map(|word| lossy(word));
        let command = ["distlto", "link", "--"].map(str::to_owned).into_iter().chain(linker);
        LinkParts {
            output: link.line.output().into(),
            thin_link: None,
            written: Vec::new(),
            command: command.collect(),
            inputs: self.inputs.iter().cloned().collect(),
            backends: self.modules.iter().map(|module| self.backend(module)).collect(),
        }
    }

    /// Describes a backend. A member of an archive appears as a file of its own, named by its label.
    fn backend(&self, module: &LinkModule) -> BackendParts {
        let (directory, flags) = (self.session.directory, &self.compilation.flags);
        let label = &module.label;
        let places = ModulePlaces::of(directory, label);
        let dwo = flags.dwo(label);
        let names = BackendFiles {
            module: label,
            shard: &places.shard,
            object: &places.object,
            dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
        };
        let mut args = module.flags.args.clone();
        args.extend(names.args(""));
        let mut inputs = flags.inputs.clone();
        inputs.push(keep::toolchain_place(directory).into());
        BackendParts {
            label: label.clone(),
            shared: self.compilation.shared_words().to_vec(),
            args,
            module: label.into(),
            shard: places.shard.into(),
            digest: None,
            imports: module.imports.iter().map(Utf8PathBuf::from).collect(),
            inputs,
            object: places.object.into(),
            outputs: dwo.into_iter().collect(),
            cost: module.cost,
        }
    }
}
