//! Plans for linker type `darwin`: a flat list of objects in, one plan for each and one for the link out.
//!
//! The rule takes archives apart, and decides flags and order of the final link. A linker that merges modules
//! beforehand writes one file for each module, which gives the module's merge state.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::json::{self, JsonObject, Text};
use distlto_prepare::write::{remove, write_atomically};
use serde::{Deserialize, Serialize, Serializer};

use super::error::{Buck2PlanError, MetaError};
use super::import_list::ImportList;
use super::index_directory::IndexDirectory;
use super::listing::{Listing, Listings};
use super::meta::values::Index;
use super::meta::{Linkable, Meta, MetaEntry, Object, check_outputs};
use super::modules::LinkedModules;
use super::settle::{PlanForm, Settling};
use super::{json_text, outputs, plan, split_units};

/// How bitcode begins that is wrapped, as merged modules are.
const WRAPPER: [u8; 4] = [0xde, 0xc0, 0x17, 0x0b];

/// A meta file.
#[derive(Debug)]
pub struct DarwinMeta<'a> {
    /// The objects, as one entry.
    pub meta: Meta<'a>,
    /// For each object, where its merged module goes.
    pub merged: Vec<Option<Cow<'a, str>>>,
}

#[derive(Deserialize)]
struct DarwinObject<'a> {
    #[serde(borrow)]
    input_object_file_path: Text<'a>,
    #[serde(borrow)]
    output_index_shard_file_path: Text<'a>,
    #[serde(borrow)]
    output_plan_file_path: Text<'a>,
    starlark_array_index: Index,
    #[serde(borrow)]
    output_premerged_bitcode_file_path: Option<Text<'a>>,
}

/// Reads a meta file; `path` is for messages.
pub fn read<'a>(path: &Path, text: &'a [u8], premerger: bool) -> Result<DarwinMeta<'a>, MetaError> {
    let file = || path.to_owned();
    let text = std::str::from_utf8(text)
        .map_err(|error| MetaError::NotUtf8 { file: file(), offset: error.valid_up_to() })?;
    let records: Vec<JsonObject<DarwinObject<'a>>> =
        json::read(text.as_bytes()).map_err(|error| MetaError::unread(file(), error))?;
    let (mut linkables, mut merged) = (Vec::new(), Vec::new());
    for (index, JsonObject(record)) in records.into_iter().enumerate() {
        if premerger && record.output_premerged_bitcode_file_path.is_none() {
            return Err(MetaError::NoMergedOutput { file: file(), index });
        }
        merged.push(record.output_premerged_bitcode_file_path.filter(|_| premerger).map(|text| text.0));
        linkables.push(Linkable::Object(Object {
            path: record.input_object_file_path.0,
            output: record.output_index_shard_file_path.0,
            plan_output: record.output_plan_file_path.0,
            index: record.starlark_array_index.0,
        }));
    }
    let meta = Meta { entries: vec![MetaEntry { linkables, ..MetaEntry::default() }] };
    check_outputs(path, &meta)?;
    Ok(DarwinMeta { meta, merged })
}

impl DarwinMeta<'_> {
    /// Returns the modules of the meta file. The path of a merged module finds the original object.
    pub fn modules(&self) -> LinkedModules<'_> {
        let merged = self.merged.iter().enumerate();
        let names: Vec<(&str, usize)> =
            merged.filter_map(|(slot, merged)| Some((merged.as_deref()?, slot))).collect();
        LinkedModules::with_names(&self.meta, &names)
    }

    /// For the linker: where the merged module of each object goes, as JSON.
    pub fn output_map(&self) -> Vec<u8> {
        let objects = self.meta.entries.iter().flat_map(|entry| &entry.linkables);
        let places = objects.zip(&self.merged).filter_map(|(linkable, merged)| match linkable {
            Linkable::Object(object) => Some((&object.path, merged.as_ref()?)),
            _ => None,
        });
        let mut out = Vec::new();
        json_text::serializer(&mut out).collect_map(places).expect("text has a JSON form");
        out
    }
}

/// A link after its thin link.
#[derive(Debug, Clone, Copy)]
pub struct DarwinLink<'a> {
    /// The meta file.
    pub meta: &'a DarwinMeta<'a>,
    /// The modules of the meta file.
    pub modules: &'a LinkedModules<'a>,
    /// Where the linker has written.
    pub directory: &'a IndexDirectory,
    /// Where the plan of the final link goes.
    pub link_plan: &'a str,
}

impl DarwinLink<'_> {
    /// Writes everything. Returns the imports that the meta file does not list, sorted, each once.
    ///
    /// On an error no plan is left behind.
    pub fn finish(&self) -> Result<Vec<String>, Buck2PlanError> {
        let listings = Listings::load(self.directory)?;
        let listing = Listing::read(&listings, self.directory, self.modules);
        remove(Path::new(self.link_plan))?;
        let whole = split_units::refuse(self.modules, &listing, self.directory);
        let finished = whole.and_then(|()| self.plans(&listing));
        if finished.is_err() {
            outputs::withdraw(self.modules.plans().chain([self.link_plan]));
        }
        finished
    }

    fn plans(&self, listing: &Listing<'_>) -> Result<Vec<String>, Buck2PlanError> {
        let mut positions = HashMap::new();
        for (position, loaded) in (0..).zip(&listing.loaded) {
            if let Some(leader) = loaded.slot {
                for &slot in self.modules.copies(leader).iter().chain([&leader]) {
                    positions.insert(slot, position);
                }
            }
        }
        let form = DarwinForm { meta: self.meta, positions };
        let settled =
            Settling { modules: self.modules, directory: self.directory, listing, form: &form }.all()?;
        let mut text = Vec::new();
        json_text::append(&mut text, &DarwinLinkJson { non_lto_objects: plan::numbers(settled.native) });
        write_atomically(Path::new(self.link_plan), &text)?;
        Ok(settled.unknown)
    }
}

struct DarwinForm<'a> {
    meta: &'a DarwinMeta<'a>,
    /// Lines of `index.full`, by slot.
    positions: HashMap<usize, i64>,
}

#[derive(Serialize)]
struct DarwinLinkJson {
    non_lto_objects: plan::Numbers,
}

#[derive(Serialize)]
struct DarwinJson<'a> {
    final_link_line_position: i64,
    imports: &'a [u64],
    is_bitcode: bool,
    loaded_by_linker: bool,
    merge_state: Option<&'static str>,
}

impl PlanForm for DarwinForm<'_> {
    fn plan(
        &self,
        out: &mut Vec<u8>,
        slot: usize,
        _: &Object<'_>,
        imports: Option<&ImportList>,
        _: &str,
    ) -> Result<(), Buck2PlanError> {
        // Slots are the records: a darwin link has no archives.
        let merged = self.meta.merged[slot].as_deref();
        let merge_state = match (merged, imports) {
            (Some(merged), Some(_)) => Some(merge_state(merged)?),
            (Some(merged), None) => {
                outputs::write(merged, b"")?;
                None
            }
            (None, _) => None,
        };
        let position = self.positions.get(&slot).copied();
        let plan = DarwinJson {
            final_link_line_position: position.unwrap_or(-1),
            imports: imports.map_or(&[], |imports| &imports.objects),
            is_bitcode: imports.is_some(),
            loaded_by_linker: position.is_some(),
            merge_state,
        };
        json_text::append(out, &plan);
        Ok(())
    }
}

/// Returns the merge state of a module, from the file that the linker has written for it.
fn merge_state(merged: &str) -> Result<&'static str, Buck2PlanError> {
    let file = match File::open(merged) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let because = "the link line asks for a merged module or a note there".to_owned();
            return Err(Buck2PlanError::Missing { file: merged.into(), because });
        }
        Err(error) => return Err(IoError::on("read", merged)(error).into()),
    };
    let read = |error| Buck2PlanError::from(IoError::on("read", merged)(error));
    if fs::metadata(merged).map_err(read)?.len() == 0 {
        return Ok("NOT_LOADED");
    }
    let mut file = BufReader::new(file);
    if file.fill_buf().map_err(read)?.starts_with(&WRAPPER) {
        return Ok("ROOT");
    }
    let mut note = Vec::new();
    file.read_to_end(&mut note).map_err(read)?;
    let note = String::from_utf8_lossy(&note);
    for line in note.lines() {
        if line.contains("standalone") {
            return Ok("STANDALONE");
        }
        if line.contains("absorbed") {
            return Ok("ABSORBED");
        }
    }
    Err(Buck2PlanError::MergeState { file: merged.into() })
}
