//! Plans for linker type `gnu`: from a meta file and an index directory to every file that the rule declares.
//!
//! The lists that name the plans are written last, so a reader of the lists finds all plans. Does not depend on how the
//! linker was run.

use std::path::Path;

use distlto_prepare::write::{remove, write_atomically};
use rayon::prelude::*;
use serde_json::value::RawValue;

use super::error::Buck2PlanError;
use super::final_list::FinalList;
use super::import_list::ImportList;
use super::index_directory::IndexDirectory;
use super::listing::{Listing, Listings, lines};
use super::meta::{Meta, Object};
use super::modules::LinkedModules;
use super::settle::{PlanForm, Settled, Settling};
use super::{outputs, plan, split_units};

/// A link after its thin link.
#[derive(Clone, Copy)]
pub struct GnuLink<'a> {
    /// The meta file.
    pub meta: &'a Meta<'a>,
    /// The modules of the meta file.
    pub modules: &'a LinkedModules<'a>,
    /// Where the linker has written.
    pub directory: &'a IndexDirectory,
    /// Where the plan of the final link goes.
    pub link_plan: &'a str,
    /// Where the argument file of the final link goes.
    pub final_list: &'a str,
    /// The content of the link's own argument file.
    pub arguments: &'a [u8],
    /// Whether the final link's command itself brings a file that the meta file does not list.
    pub brought: &'a dyn Fn(&[u8]) -> bool,
}

struct GnuForm;

impl PlanForm for GnuForm {
    fn plan(
        &self,
        out: &mut Vec<u8>,
        _: usize,
        object: &Object<'_>,
        imports: Option<&ImportList>,
        bitcode_file: &str,
    ) -> Result<(), Buck2PlanError> {
        match imports {
            Some(imports) => {
                plan::of_object(out, imports, object.index, &object.path, bitcode_file);
            }
            None => out.extend_from_slice(plan::NATIVE),
        }
        Ok(())
    }
}

impl GnuLink<'_> {
    /// Writes everything. Returns the imports that the meta file does not list, sorted, each once.
    ///
    /// On an error no plan is left behind.
    pub fn finish(&self) -> Result<Vec<String>, Buck2PlanError> {
        let listings = Listings::load(self.directory)?;
        let listing = Listing::read(&listings, self.directory, self.modules);
        for list in [self.final_list, self.link_plan] {
            remove(Path::new(list))?;
        }
        let whole = split_units::refuse(self.modules, &listing, self.directory);
        let finished = whole.and_then(|()| self.plans(&listing)).and_then(|settled| {
            self.lists(&listing, &settled.native)?;
            Ok(settled.unknown)
        });
        if finished.is_err() {
            let archives = self.modules.archives.iter().filter(|of| of.archive.members.is_some());
            let lists = [self.link_plan, self.final_list];
            outputs::withdraw(self.modules.plans().chain(archives.map(|of| &*of.archive.plan)).chain(lists));
        }
        finished
    }

    fn plans(&self, listing: &Listing<'_>) -> Result<Settled, Buck2PlanError> {
        for of in self.modules.archives.iter().filter(|of| of.archive.members.is_some()) {
            outputs::make_directory(&of.archive.index_directory)?;
        }
        let form = GnuForm;
        let settled =
            Settling { modules: self.modules, directory: self.directory, listing, form: &form }.all()?;
        let mut said: Vec<Option<&RawValue>> = vec![None; self.modules.slots.len()];
        for (slot, text) in &settled.members {
            said[*slot] = Some(text);
        }
        self.modules.archives.par_iter().try_for_each(|of| {
            // Another action of the rule writes the plan of an archive without members.
            if of.archive.members.is_none() && Path::new(&*of.archive.plan).exists() {
                return Ok(());
            }
            let text = plan::of_archive(of.archive.base(), of.members.iter().filter_map(|&slot| said[slot]));
            outputs::write(&of.archive.plan, &text).map_err(Buck2PlanError::from)
        })?;
        Ok(settled)
    }

    /// The argument file of the final link and its plan.
    fn lists(&self, listing: &Listing<'_>, native: &[u64]) -> Result<(), Buck2PlanError> {
        let modules = self.modules;
        let indexed = (0..modules.slots.len()).filter(|&slot| listing.indexed[slot]);
        let text = plan::of_link(indexed.map(|slot| modules.index(slot)), native.iter().copied());
        let search_paths: Vec<&[u8]> = lines(self.arguments)
            .filter(|line| line.starts_with(b"-L"))
            .map(<[u8]>::trim_ascii_end)
            .collect();
        let list = FinalList {
            meta: self.meta,
            modules,
            listing,
            search_paths: &search_paths,
            brought: self.brought,
        };
        write_atomically(Path::new(self.final_list), &list.text())?;
        Ok(write_atomically(Path::new(self.link_plan), &text)?)
    }
}
