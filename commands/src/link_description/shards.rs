//! Links that are known by the files that a thin link wrote for them: a job file of lld's DTLTO, a folder of index
//! shards, a meta file of Buck2's rule with the index that it names.
//!
//! The content of a missing shard is lost; modules and imports then come from the listing itself.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::bitcode::BitcodeError;
use distlto_planner::buck2::darwin;
use distlto_planner::buck2::meta::{self, Meta};
use distlto_planner::buck2::modules::{LinkedModules, ModuleSlot, SlotOrigin};
use distlto_planner::dtlto;
use distlto_planner::shard::{self, Shard};
use distlto_planner::state::SUFFIX;
use distlto_planner::words::shell_line;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, classify_file};
use distlto_record::inspect::KnownModule;
use distlto_record::progress::text::counted;

use super::files::Listing;
use super::{LinkDescription, LinkDescriptionError};

/// The suffix of a shard's name, for every producer.
const SHARD: &str = ".thinlto.bc";
/// How deep folders may lie in folders; links that go round are deeper.
const DEEPEST: usize = 64;

impl LinkDescription {
    /// Of a job file.
    pub(super) fn of_jobs(named: &Utf8Path, bytes: &[u8]) -> Result<Self, LinkDescriptionError> {
        let (file, placed) = dtlto::read_placed(bytes, named.as_str())?;
        let mut absent = 0;
        let module = |&job| {
            let label = file.module(job);
            let common = |path: &&Utf8Path| file.common_inputs.iter().all(|input| input != path);
            let listed = file.others(job).filter(common).map(ToString::to_string).collect();
            let shard = read(file.shard(job).as_std_path());
            absent += usize::from(shard.is_none());
            ModuleImports { imports: Some(listed), ..known(label, shard.as_ref()) }
        };
        let modules = numbered(file.jobs.iter().map(module).collect());
        let format = match placed {
            None => "a job file of lld's DTLTO",
            Some(_) => "a DTLTO job file of version 0.0",
        };
        let words = shell_line(file.common_args.iter().map(String::as_str));
        let mut notes = vec![format!("{format}: {}, each by {words}", counted(modules.len(), "job"))];
        notes.extend(gone(absent, modules.len()));
        let output = file.linker_output.as_ref().map_or_else(|| named.to_string(), ToString::to_string);
        let shards = file.jobs.iter().map(|&job| file.shard(job).to_owned()).collect();
        let listing = Listing { shards, ..Listing::default() };
        Ok(Self { output, modules, listing, notes, ..Self::without_runs(named) })
    }

    /// Of a folder with shards in it, or below; `None` if there is no shard.
    pub(super) fn of_folder(
        named: &Utf8Path,
        folder: &Utf8Path,
    ) -> Result<Option<Self>, LinkDescriptionError> {
        let mut found = Vec::new();
        shards_below(folder, 0, &mut found)?;
        if found.is_empty() {
            return Ok(None);
        }
        found.sort();
        let (mut modules, mut listed, mut empty) = (Vec::new(), Vec::new(), 0);
        for path in found {
            let bytes = Input::open(path.as_std_path())?;
            if bytes.is_empty() {
                empty += 1;
                continue;
            }
            let shard = shard::read(&bytes).map_err(|error| unreadable(&path, &error))?;
            let stem = path.strip_prefix(folder).unwrap_or(&path).as_str().trim_end_matches(SHARD);
            let label = own_of(&shard, stem);
            modules.push(known(&label, Some(&shard)));
            listed.push(path);
        }
        let mut notes = vec![format!("a folder of {}", counted(modules.len(), "index shard"))];
        // Linkers and Buck2's tools leave empty shards for inputs that are no ThinLTO modules.
        notes.extend(
            (empty > 0).then(|| format!("not ThinLTO: {}, whose shard is empty", counted(empty, "object"))),
        );
        let (modules, listing) = (numbered(modules), Listing { shards: listed, ..Listing::default() });
        Ok(Some(Self { modules, listing, notes, ..Self::without_runs(named) }))
    }

    /// Of a meta file for either linker type; shards are where it has them written.
    pub(super) fn of_meta(named: &Utf8Path, bytes: &[u8]) -> Result<Self, LinkDescriptionError> {
        let path = named.as_std_path();
        let meta = match meta::read(path, bytes) {
            Ok(meta) => meta,
            // The error of the more frequent form is reported.
            Err(error) => match darwin::read(path, bytes, false) {
                Ok(read) => read.meta,
                Err(_) => return Err(error.into()),
            },
        };
        let places = places_of(&meta);
        let (mut modules, mut listed, mut native, mut absent) = (Vec::new(), Vec::new(), 0, 0);
        for (label, place) in &places {
            let shard = read(Path::new(place));
            let is_module = || {
                classify_file(Path::new(label))
                    .is_ok_and(|kind| matches!(kind, Kind::Bitcode { .. } | Kind::FatLto(_)))
            };
            if shard.is_none() && Path::new(label).exists() && !is_module() {
                native += 1;
                continue;
            }
            absent += usize::from(shard.is_none());
            modules.push(known(label, shard.as_ref()));
            listed.push(place.into());
        }
        let mut notes = vec![format!("a meta file of Buck2's rule: {}", counted(places.len(), "object"))];
        notes.extend((native > 0).then(|| format!("not ThinLTO: {}", counted(native, "object"))));
        notes.extend(gone(absent, modules.len()));
        let (modules, listing) = (numbered(modules), Listing { shards: listed, ..Listing::default() });
        Ok(Self { modules, listing, notes, ..Self::without_runs(named) })
    }
}

/// Each object of a meta file with the place of its shard.
fn places_of<'m>(meta: &'m Meta<'m>) -> Vec<(String, String)> {
    let linked = LinkedModules::of(meta);
    let place = |(number, slot): (usize, &ModuleSlot<'_>)| match slot.origin {
        SlotOrigin::Object(object) => object.output.to_string(),
        SlotOrigin::Member(archive) => linked.member_shard(number, linked.archives[archive].archive),
    };
    linked
        .slots
        .iter()
        .enumerate()
        .map(|(number, slot)| (slot.path.to_owned(), place((number, slot))))
        .collect()
}

/// A module with the names of those that it imports from, if these are known.
struct ModuleImports {
    module: KnownModule,
    imports: Option<Vec<String>>,
}

/// Replaces the names of imports by the numbers of the modules. Drops imports that are not among them.
fn numbered(modules: Vec<ModuleImports>) -> Vec<KnownModule> {
    let numbers: HashMap<String, u32> =
        modules.iter().zip(0..).map(|(named, number)| (named.module.label.clone(), number)).collect();
    let number =
        |imports: Vec<String>| imports.iter().filter_map(|name| numbers.get(name).copied()).collect();
    let module = |ModuleImports { module, imports }| KnownModule { imports: imports.map(number), ..module };
    modules.into_iter().map(module).collect()
}

/// A module as its shard knows it.
fn known(label: &str, shard: Option<&Shard>) -> ModuleImports {
    let cost = shard.and_then(|shard| shard.cost(label).ok()).unwrap_or_default();
    let imports =
        |shard: &Shard| shard.imported_from(label).map(|module| module.name().into_owned()).collect();
    let module = KnownModule {
        label: label.to_owned(),
        own_instructions: cost.own_instructions,
        imported_instructions: cost.imported_instructions,
        imports: None,
    };
    ModuleImports { module, imports: shard.map(imports) }
}

/// The name of a shard's own module: the one that the shard's file is named after.
fn own_of(shard: &Shard, stem: &str) -> String {
    let file = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    let names: Vec<String> = shard.modules.iter().map(|module| module.name().into_owned()).collect();
    let whole = names.iter().find(|name| *name == stem || name.ends_with(&format!("/{stem}")));
    let by_file = || names.iter().find(|name| file(name) == file(stem));
    whole.or_else(by_file).cloned().unwrap_or_else(|| stem.to_owned())
}

fn read(path: &Path) -> Option<Shard> {
    shard::read(&Input::open(path).ok()?).ok()
}

/// Says how many shards are not there, or are none.
fn gone(absent: usize, all: usize) -> Option<String> {
    (absent > 0)
        .then(|| format!("{absent} of {all} index shards are not there: imports and costs are not all known"))
}

/// The error of a file of bitcode.
pub fn unreadable(path: &Utf8Path, error: &BitcodeError) -> LinkDescriptionError {
    LinkDescriptionError::Unreadable { what: format!("{path}: {error}"), help: error.remedy.to_owned() }
}

fn shards_below(
    folder: &Utf8Path,
    depth: usize,
    found: &mut Vec<Utf8PathBuf>,
) -> Result<(), LinkDescriptionError> {
    for entry in fs::read_dir(folder).map_err(IoError::on("list", folder))? {
        let entry = entry.map_err(IoError::on("list", folder))?;
        // Names of other bytes are passed over: no plan can name them.
        let Ok(path) = Utf8PathBuf::from_path_buf(entry.path()) else { continue };
        let kind = entry.file_type().map_err(IoError::on("look at", &path))?;
        // A link's own state is named by itself.
        let is_state = path.as_str().ends_with(SUFFIX);
        if kind.is_dir() && depth < DEEPEST && !is_state {
            shards_below(&path, depth + 1, found)?;
        } else if kind.is_file() && path.as_str().ends_with(SHARD) {
            found.push(path);
        }
    }
    Ok(())
}
