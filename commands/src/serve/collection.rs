//! Collects the modules of links: each linker performs its thin link, and nothing is compiled.
//!
//! Does not write them.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use distlto_planner::link_command::LinkCommand;
use distlto_prepare::mutex::lock;

use super::describe::Described;
use super::modules::{ModuleFiles, Temporaries};
use super::settings::CompileSettings;
use super::thin_link::ThinLink;
use crate::link::error::LinkError;

/// Where the modules of links are collected.
pub struct Collection {
    /// The directory for modules that are no files of their own.
    directory: String,
    copies: bool,
    links: Mutex<Vec<CollectedLink>>,
    alone: Mutex<Vec<String>>,
}

/// A link and its modules.
pub struct CollectedLink {
    pub command: LinkCommand,
    pub settings: CompileSettings,
    /// Each with its id, in the order in which the linker wrote their shards.
    pub modules: Vec<(String, Described)>,
    /// Modules that were written to files of their own.
    pub written: Vec<String>,
    /// Files that hold flags of modules.
    pub records: Vec<Utf8PathBuf>,
    /// Whether the linker ran in another directory than its command.
    pub is_elsewhere: bool,
}

impl Collection {
    pub fn new(directory: &str) -> Self {
        let directory = directory.to_owned();
        Self { directory, copies: false, links: Mutex::default(), alone: Mutex::default() }
    }

    /// Has copies in the directory where it would have symbolic links, so that it can be read on another machine.
    pub fn with_copies(self, copies: bool) -> Self {
        Self { copies, ..self }
    }

    /// Collects the modules of a linker that has performed its thin link.
    pub fn add(
        &self,
        thin_link: ThinLink,
        (command, settings): (LinkCommand, CompileSettings),
        kept: Temporaries,
        elsewhere: Option<&Path>,
    ) -> Result<(), LinkError> {
        let root = elsewhere.unwrap_or(Path::new(""));
        let mut files = ModuleFiles::new(root, &self.directory)
            .with_kept(kept)
            .with_slices(&settings)
            .with_copies(self.copies);
        let modules = thin_link.modules(&mut files, &settings)?;
        let records = modules.iter().filter_map(|(_, described)| described.flags.file.clone()).collect();
        let written = files.written().map(str::to_owned).collect();
        let is_elsewhere = elsewhere.is_some();
        lock(&self.links).push(CollectedLink { command, settings, modules, written, records, is_elsewhere });
        Ok(())
    }

    /// Notes why a linker links by itself.
    pub fn leave(&self, why: String) {
        lock(&self.alone).push(why);
    }

    /// The links, and why other linkers link by themselves.
    pub fn into_parts(self) -> (Vec<CollectedLink>, Vec<String>) {
        (
            self.links.into_inner().unwrap_or_else(PoisonError::into_inner),
            self.alone.into_inner().unwrap_or_else(PoisonError::into_inner),
        )
    }
}
