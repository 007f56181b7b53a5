//! From the outcome of a thin link to the link plan: what each backend and the final link have to do.
//!
//! The last step of `index::plan`. What the final link is given for what was loaded is found by `loaded` and
//! `first_words`; what is written is up to `keep`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;

use camino::Utf8PathBuf;
use distlto_prepare::store::Store;

use crate::backend_flags::{BackendFiles, BackendFlags};
use crate::fates::{Fates, ModuleFate};
use crate::final_line::final_words;
use crate::first_words::{Decided, FirstWords, first_words};
use crate::index::error::IndexError;
use crate::index::request::{PlanRequest, PlannedLink, Preview};
use crate::inputs::{self, InputError, LinkInputs, MemberOrigin, Slot};
use crate::keep::{self, ModulePlaces};
use crate::link_line::{Argument, last_value};
use crate::link_plan::{ArchivePlan, LinkPlan, MemberPlan, ObjectPlan, PlanStep, VERSION};
use crate::loaded::LoadedFiles;
use crate::module::{Module, SummaryKind};
use crate::pending::Pending;
use crate::recorded_flags::{FlagRecords, RecordError};
use crate::shard::Cost;
use crate::thin_link::{IndexedModule, ThinLinked, traced_file};
use crate::words::lossy;

/// Members of archives by their ids: each's archive, and what it was there.
type Origins<'a> = HashMap<&'a str, (&'a str, &'a MemberOrigin)>;

/// What a build has called a module, and the archive that holds it, if it is in no file of its own.
fn recorded_as<'a>(id: &str, origins: &Origins<'a>) -> (Utf8PathBuf, Option<&'a str>) {
    match origins.get(id) {
        None => (id.into(), None),
        Some((_, MemberOrigin::File(file))) => (file.to_string_lossy().into_owned().into(), None),
        Some((archive, MemberOrigin::Member(name))) => (name.into(), Some(*archive)),
    }
}

/// The program of a thin link's own command.
const INDEX_PROGRAM: &str = "distlto-index";

/// All that is known once the thin link has run.
pub(crate) struct Planning<'a> {
    pub request: PlanRequest<'a>,
    pub arguments: Vec<Argument>,
    pub inputs: LinkInputs,
    /// Archives that only an object names.
    pub noted: HashSet<String>,
    pub flags: BackendFlags,
    pub records: Option<FlagRecords>,
    pub compiler: String,
    pub jobs: Option<usize>,
}

impl Planning<'_> {
    /// Makes the plan, and keeps what it takes to tell which backends are out of date.
    pub(crate) fn finish(
        self,
        linked: ThinLinked,
        loaded: &LoadedFiles,
    ) -> Result<(PlannedLink, Pending), IndexError> {
        let state = self.request.state;
        let fates = Fates::of(&linked.outcome);
        let merged = self.regular_object(&fates, linked.regular_object.as_deref())?;
        let shards = linked.modules.iter().map(|module| (module.id.as_str(), module.shard.as_slice()));
        let decided = Decided { shards: shards.collect(), regular: merged };
        keep::regular_object(state, merged)?;
        let further = self.request.identity.map(|of| of(&self.compiler)).unwrap_or_default();
        keep::toolchain(state, &self.compiler, &further)?;
        let merged = merged.map(|_| keep::regular_object_place(state));
        let object_of = |id: &str| ModulePlaces::of(state, id).object;
        let first =
            first_words(state, &self.inputs, &fates, (loaded, &decided), object_of, merged.as_deref())
                .map_err(InputError::from)?;
        if let Some(symbol) = first.unsaid {
            return Err(IndexError::Unsaid { symbol });
        }
        keep::excerpts(&first.excerpts)?;
        let by_id = inputs::by_id(&self.inputs);
        let origins = self.origins();
        let modules = linked
            .modules
            .iter()
            .map(|indexed| self.object_plan(indexed, by_id[indexed.id.as_str()], &origins))
            .collect::<Result<_, _>>()?;
        let output = last_value(&self.arguments, "output").unwrap_or("a.out");
        let plan = LinkPlan {
            version: VERSION,
            by_linker: false,
            output: output.into(),
            archives: self.archive_plans(&fates),
            thin_link: self.thin_step(
                merged.as_deref(),
                &first,
                self.record_files(&linked.modules, &origins),
            ),
            backend: self.flags.shared_words(&self.compiler),
            modules,
            link: self.link_step(&linked, &fates, loaded, &first, output),
        };
        let pending = Pending::after_comparison(state, linked.modules)?;
        let planned = PlannedLink {
            plan,
            not_done: self.flags.not_done,
            warnings: linked.stderr,
            absent: self.inputs.absent,
            jobs: self.jobs,
            order_differs: first.order_differs,
        };
        Ok((planned, pending))
    }

    /// The object of regular LTO, if the link needs it: some loaded module has no shard, or has code beside its
    /// ThinLTO part.
    fn regular_object<'o>(
        &self,
        fates: &Fates,
        object: Option<&'o [u8]>,
    ) -> Result<Option<&'o [u8]>, IndexError> {
        let plain = self.inputs.slots.iter().filter_map(|slot| match slot {
            Slot::Module { input, lazy } => Some((input.id.as_str(), &input.module, *lazy)),
            _ => None,
        });
        let members = self.inputs.slots.iter().flat_map(|slot| match slot {
            Slot::Archive { index, lazy } => self.inputs.archives[*index]
                .members
                .iter()
                .filter_map(|member| Some((member.path.as_str(), member.module.as_ref()?, *lazy)))
                .collect(),
            _ => Vec::new(),
        });
        let needed = plain.chain(members).find(|(id, module, lazy)| match fates.of_module(id, *lazy) {
            ModuleFate::Object => module.split_unit,
            ModuleFate::Merged => true,
            ModuleFate::Unloaded => false,
        });
        match (needed, object) {
            (None, _) => Ok(None),
            (Some(_), Some(object)) => Ok(Some(object)),
            (Some((id, _, _)), None) => Err(IndexError::Lost { id: id.to_owned() }),
        }
    }

    /// A backend that will be in the plan if the linker loads its module.
    pub(crate) fn preview(&self) -> Option<Preview> {
        let of_thin_lto =
            || self.inputs.modules().filter(|(_, module)| module.summary == SummaryKind::ThinLto);
        let (id, module) = of_thin_lto().next()?;
        let cost = Some(Cost { own_instructions: 0, imported_instructions: 0 });
        let unknown = IndexedModule { id: id.to_owned(), shard: Vec::new(), imports: Vec::new(), cost };
        let plan = self.object_plan(&unknown, module, &self.origins()).ok()?;
        let mut command = self.flags.shared_words(&self.compiler);
        command.extend(plan.args);
        Some(Preview {
            command,
            module: plan.id.into_string(),
            shard: plan.shard.into_string(),
            object: plan.object.into_string(),
            modules: of_thin_lto().count(),
        })
    }

    /// Where members of archives come from, by their ids, where that is asked.
    fn origins(&self) -> Origins<'_> {
        let archives = self.inputs.archives.iter().filter(|_| self.records.is_some());
        archives
            .flat_map(|archive| {
                let members = archive.members.iter();
                members.map(|member| (member.path.as_str(), (archive.path.as_str(), &member.origin)))
            })
            .collect()
    }

    /// The flags that a build has recorded of a module; none where that is not asked.
    fn recorded(&self, id: &str, origins: &Origins<'_>) -> Result<Vec<String>, RecordError> {
        let Some(records) = &self.records else { return Ok(Vec::new()) };
        let (object, archive) = recorded_as(id, origins);
        let mut flags = records.flags_of(&object, archive)?.kept;
        flags.extend_from_slice(self.request.backend_args);
        Ok(flags)
    }

    /// The files that hold those flags. Planning reads them, and no backend: what they say is in its command.
    fn record_files(&self, modules: &[IndexedModule], origins: &Origins<'_>) -> Vec<Utf8PathBuf> {
        let Some(records) = &self.records else { return Vec::new() };
        modules.iter().map(|module| records.file_of(&recorded_as(&module.id, origins).0)).collect()
    }

    fn object_plan(
        &self,
        indexed: &IndexedModule,
        module: &Module,
        origins: &Origins<'_>,
    ) -> Result<ObjectPlan, RecordError> {
        let places = ModulePlaces::of(self.request.state, &indexed.id);
        let dwo = self.flags.dwo(&indexed.id);
        let dwo_name = dwo.as_ref().map(|dwo| dwo.as_str());
        let names =
            BackendFiles { module: &indexed.id, shard: &places.shard, object: &places.object, dwo: dwo_name };
        let mut args = self.recorded(&indexed.id, origins)?;
        args.extend(names.args(&module.triple));
        let mut extra_inputs = self.flags.inputs.clone();
        extra_inputs.push(keep::toolchain_place(self.request.state).into());
        extra_inputs.sort();
        let cost = indexed.cost.unwrap_or_else(|| cost_by_size(indexed));
        Ok(ObjectPlan {
            id: indexed.id.clone().into(),
            archive: None,
            shard: places.shard.into(),
            imports: indexed.imports.iter().map(Utf8PathBuf::from).collect(),
            extra_inputs,
            object: places.object.into(),
            extra_outputs: dwo.into_iter().collect(),
            args,
            own_instructions: cost.own_instructions,
            imported_instructions: cost.imported_instructions,
        })
    }

    fn archive_plans(&self, fates: &Fates) -> Vec<ArchivePlan> {
        let member_plan = |member: &inputs::MemberInput| MemberPlan {
            path: member.path.clone().into(),
            bitcode: member.module.is_some(),
            loaded: fates.is_loaded(&member.path),
        };
        self.inputs
            .archives
            .iter()
            .map(|archive| ArchivePlan {
                path: archive.path.clone().into(),
                directory: archive.directory.clone().into(),
                fat_lto: self.inputs.fat_lto,
                inputs: archive.sources.iter().map(Utf8PathBuf::from).collect(),
                members: archive.members.iter().map(member_plan).collect(),
            })
            .collect()
    }

    /// The thin link as this planning runs it: a bare `ld.lld --thinlto-index-only` would write every shard anew and
    /// beside its module.
    fn thin_step(&self, merged: Option<&str>, first: &FirstWords, records: Vec<Utf8PathBuf>) -> PlanStep {
        let request = &self.request;
        let mut command = [INDEX_PROGRAM, "--index", request.state, "--compiler", &self.compiler]
            .map(str::to_owned)
            .to_vec();
        command.extend(request.backend_args.iter().map(|arg| format!("--backend-arg={arg}")));
        command.extend(request.flags_from.map(|source| format!("--flags-from={source}")));
        let store = request.store.map(Store::directory);
        command
            .extend(store.into_iter().flat_map(|store| ["--store".to_owned(), store.display().to_string()]));
        command.push("--".to_owned());
        command.extend(request.link.linker.iter().map(|word| lossy(word)));
        command.extend(self.inputs.words.iter().cloned());
        let own = |path: &String| self.inputs.extracted.contains(path);
        let members = self
            .inputs
            .archives
            .iter()
            .flat_map(|archive| archive.members.iter().map(|member| &member.path).chain(&archive.sources))
            .cloned();
        let named = self.inputs.files.iter().filter_map(|file| file.to_str()).map(str::to_owned);
        let ids = self.inputs.modules().map(|(id, _)| id.to_owned());
        let read: BTreeSet<Utf8PathBuf> = members
            .chain(named)
            .chain(ids)
            .chain(first.sources.iter().cloned())
            .filter(|path| !own(path))
            .map(Utf8PathBuf::from)
            .chain(records)
            .collect();
        let notes = [keep::plan_place(request.state), keep::toolchain_place(request.state)];
        let written: BTreeSet<Utf8PathBuf> = notes
            .into_iter()
            .chain(merged.map(str::to_owned))
            .chain(self.inputs.extracted.iter().cloned())
            .chain(first.excerpts.iter().map(|(place, _)| place.clone()))
            .map(Utf8PathBuf::from)
            .collect();
        PlanStep { command, inputs: read.into_iter().collect(), outputs: written.into_iter().collect() }
    }

    fn link_step(
        &self,
        linked: &ThinLinked,
        fates: &Fates,
        loaded: &LoadedFiles,
        first: &FirstWords,
        output: &str,
    ) -> PlanStep {
        let mut command: Vec<String> = self.request.link.linker.iter().map(|word| lossy(word)).collect();
        command.extend(final_words(&self.inputs, fates, &first.words, &loaded.slots));
        command.extend(["-o", output].map(str::to_owned));
        let inputs = self.link_inputs(linked, fates, first);
        PlanStep { command, inputs, outputs: vec![output.into()] }
    }

    /// What the final link reads: the loaded files in the form that they have there, and all else that the linker was
    /// seen to load or that the line names.
    fn link_inputs(&self, linked: &ThinLinked, fates: &Fates, first: &FirstWords) -> Vec<Utf8PathBuf> {
        let modules: HashMap<&str, &Module> = inputs::by_id(&self.inputs);
        let archives: BTreeSet<&str> =
            self.inputs.archives.iter().map(|archive| archive.path.as_str()).collect();
        let words = first.words.iter().filter(|word| !word.starts_with('-'));
        let mut found: BTreeSet<Utf8PathBuf> = words.map(Utf8PathBuf::from).collect();
        let loaded = linked.outcome.loaded.iter().map(|line| traced_file(line));
        let named = self.inputs.files.iter().cloned();
        found.extend(
            loaded
                .chain(named)
                .filter_map(|path| path.into_os_string().into_string().ok())
                .filter(|path| !modules.contains_key(path.as_str()) && !archives.contains(path.as_str()))
                .map(Utf8PathBuf::from)
                .filter(|path| path.exists()),
        );
        let lazy = modules.keys().filter(|id| fates.of_module(id, true) == ModuleFate::Unloaded);
        found.extend(lazy.map(Utf8PathBuf::from));
        let members = self.inputs.archives.iter().flat_map(|archive| &archive.members);
        let unloaded = members.filter(|member| member.module.is_none() && !fates.is_loaded(&member.path));
        found.extend(unloaded.map(|member| Utf8PathBuf::from(&member.path)));
        found.into_iter().collect()
    }
}

/// For shards of a version whose counts are unknown: the module's size stands for its instructions.
fn cost_by_size(indexed: &IndexedModule) -> Cost {
    let size = fs::metadata(&indexed.id).map_or(0, |found| found.len());
    Cost { own_instructions: size, imported_instructions: 0 }
}
