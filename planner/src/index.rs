//! One thin link from the user's command to a link plan: the spine of the planner.
//!
//! Resolves the command, takes its inputs, runs the thin link, keeps what changed, and says what backends and the
//! final link have to do. Starts tools through the caller's `Runner` only. Knows nothing of how actions run.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use camino::Utf8PathBuf;
use distlto_prepare::names::escape_path;
use distlto_prepare::store::Store;
use distlto_prepare::write::{IoError, write_if_changed};
use miette::Diagnostic;
use rayon::prelude::*;
use thiserror::Error;

use crate::backend_flags::{self, BackendFlags, FlagError};
use crate::compile_jobs::{self, CompileError};
use crate::front::{FrontError, LinkCommand, clang_beside, in_search_path};
use crate::inputs::{self, InputError, Inputs, Places};
use crate::link_line::{Argument, LinkLineError, last_value, options, parse};
use crate::link_plan::{self, ArchivePlan, LinkPlan, MemberPlan, ObjectPlan, Step};
use crate::module::{Module, Summary};
use crate::rewrite::{Fate, Fates, final_words, thin_words};
use crate::runner::{Runner, ToolError};
use crate::scratch::Scratch;
use crate::thin_link::{IndexedModule, ThinLink, ThinLinkError, ThinLinked, traced_file};
use crate::words::{Word, lossy, path_of};

/// Why a link could not be planned.
#[derive(Debug, Error, Diagnostic)]
#[expect(missing_docs, reason = "each variant is the error of the step that its type names")]
pub enum IndexError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Front(#[from] FrontError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Line(#[from] LinkLineError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Flags(#[from] FlagError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    ThinLink(#[from] ThinLinkError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// Symbols of an archive would be exported that the user wants hidden.
    #[error("--exclude-libs={libraries} names {archive}, which holds bitcode")]
    #[diagnostic(
        code(distlto::untranslatable),
        help(
            "members of an unpacked archive are no longer a library; hide the symbols with a version script or -fvisibility=hidden"
        )
    )]
    ExcludeLibs { libraries: String, archive: String },
    /// Code would be lost.
    #[error("{id} was loaded, but the thin link wrote neither an index shard nor regular LTO code for it")]
    #[diagnostic(
        code(distlto::tool),
        help("compile it with -flto=thin, or report the link line as a defect of distlto")
    )]
    Lost { id: String },
}

/// How a link is to be planned.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The link, as `front::resolve` found it.
    pub link: &'a LinkCommand,
    /// The state directory.
    pub state: &'a str,
    /// The clang for the backends, instead of the one that the command names or implies.
    pub compiler: Option<&'a str>,
    /// Arguments for every backend besides those that the link line implies.
    pub backend_args: &'a [String],
    /// Shared storage for unpacked archive members.
    pub store: Option<&'a Store>,
    /// Runs tools.
    pub runner: &'a dyn Runner,
}

/// What planning a link gave.
#[derive(Debug)]
pub enum Planned {
    /// A distributed link.
    Link(Box<PlannedLink>),
    /// No input is ThinLTO bitcode, or the line asks for output that only the linker itself writes: it is to be
    /// run as it is.
    Unchanged,
}

/// A distributed link, planned.
#[derive(Debug)]
pub struct PlannedLink {
    /// What is to be done.
    pub plan: LinkPlan,
    /// Options that ask for output which a distributed link does not write.
    pub not_done: Vec<String>,
    /// What the linker printed in the thin link.
    pub warnings: Vec<u8>,
    /// Places where a library was looked for in vain, sorted.
    pub absent: Vec<PathBuf>,
    /// How many backends the link line asks to run at once.
    pub jobs: Option<usize>,
}

/// The output that a link line names; the linker's own default where it names none.
pub fn output_of(words: &[Word]) -> Result<String, LinkLineError> {
    let arguments = parse(words.to_vec())?;
    Ok(last_value(&arguments, "output").unwrap_or("a.out").to_owned())
}

/// Plans a link: everything up to the first backend.
pub fn plan(request: Request<'_>) -> Result<Planned, IndexError> {
    let state = request.state;
    let compiled = compile_jobs::run(request.link, state, request.runner)?;
    let arguments = parse(compiled)?;
    if options(&arguments).any(|option| writes_itself(&option.name)) {
        return Ok(Planned::Unchanged);
    }
    let inputs = inputs::resolve(&arguments, Places { state, store: request.store })?;
    if inputs.modules().next().is_none() {
        return Ok(Planned::Unchanged);
    }
    check_exclude_libs(&arguments, &inputs)?;
    let compiler = compiler_of(&request)?;
    let architecture = architecture_of(&inputs);
    let flags = backend_flags::of_link_line(&arguments, &architecture, request.backend_args)?;
    let thin_link = thin_link_of(request.link, &arguments, &inputs);
    let scratch = Scratch::new(Path::new(state), thin_link.ids.len())?;
    let linked = thin_link.run(&scratch, request.runner)?;
    let planning = Planning { request, arguments, inputs, flags, compiler };
    let planned = planning.finish(&thin_link, linked)?;
    scratch.close()?;
    Ok(Planned::Link(Box::new(planned)))
}

/// Options with which the linker stops before the program, or writes what only it can.
fn writes_itself(name: &str) -> bool {
    let name = name.strip_prefix("plugin-opt=").unwrap_or(name);
    matches!(
        name,
        "lto-emit-asm"
            | "lto-emit-llvm"
            | "emit-asm"
            | "emit-llvm"
            | "version"
            | "help"
            | "thinlto-index-only"
    ) || name.starts_with("thinlto-index-only=")
        || name.starts_with("thinlto-single-module=")
}

fn thin_link_of(link: &LinkCommand, arguments: &[Argument], inputs: &Inputs) -> ThinLink {
    let chooses = options(arguments).any(|option| option.name.starts_with("lto="));
    let regular = |module: &Module| module.summary != Summary::ThinLto || module.unified || module.split_unit;
    ThinLink {
        linker: link.linker.clone(),
        words: thin_words(inputs),
        ids: inputs.modules().map(|(id, _)| id.to_owned()).collect(),
        regular_lto: chooses || inputs.modules().any(|(_, module)| regular(module)),
    }
}

fn check_exclude_libs(arguments: &[Argument], inputs: &Inputs) -> Result<(), IndexError> {
    let exports =
        options(arguments).any(|option| option.name == "shared" || option.name.starts_with("export-dynamic"));
    for option in options(arguments).filter(|option| exports && option.name == "exclude-libs") {
        let libraries = option.value.clone().unwrap_or_default();
        let names = |path: &str| {
            let base = path.rsplit('/').next().unwrap_or(path);
            libraries.split([',', ':']).any(|library| library == "ALL" || library == base)
        };
        if let Some(archive) = inputs.archives.iter().find(|archive| names(&archive.path)) {
            return Err(IndexError::ExcludeLibs { libraries, archive: archive.path.clone() });
        }
    }
    Ok(())
}

/// The first part of the modules' target triple.
fn architecture_of(inputs: &Inputs) -> String {
    let triple = inputs.modules().map(|(_, module)| module.triple.as_str()).find(|triple| !triple.is_empty());
    triple.and_then(|triple| triple.split('-').next()).unwrap_or_default().to_owned()
}

fn compiler_of(request: &Request<'_>) -> Result<String, ToolError> {
    let linker = &request.link.linker[0];
    request
        .compiler
        .map(str::to_owned)
        .or_else(|| request.link.compiler.as_deref().map(lossy))
        .or_else(|| clang_beside(linker).as_deref().map(lossy))
        .or_else(|| in_search_path(Path::new("clang")).map(|_| "clang".to_owned()))
        .ok_or_else(|| ToolError::NoCompiler { linker: lossy(linker) })
}

/// Where a module's files lie in the state directory.
pub struct ModulePlaces {
    /// The index shard.
    pub shard: String,
    /// The import list.
    pub imports: String,
    /// The native object.
    pub object: String,
}

impl ModulePlaces {
    /// For a module id.
    pub fn of(state: &str, id: &str) -> Self {
        let name = escape_path(id.as_bytes());
        Self {
            shard: format!("{state}/shards/{name}.thinlto.bc"),
            imports: format!("{state}/shards/{name}.imports"),
            object: format!("{state}/objects/{name}.o"),
        }
    }
}

/// All that is known once the thin link has run.
struct Planning<'a> {
    request: Request<'a>,
    arguments: Vec<Argument>,
    inputs: Inputs,
    flags: BackendFlags,
    compiler: String,
}

impl Planning<'_> {
    fn finish(self, thin_link: &ThinLink, linked: ThinLinked) -> Result<PlannedLink, IndexError> {
        let state = self.request.state;
        let fates = Fates::of(&linked.outcome);
        let merged = self.keep_regular_object(&fates, linked.regular_object.as_deref())?;
        let toolchain = self.keep_toolchain()?;
        keep_shards(state, &linked.modules)?;
        let by_id = inputs::by_id(&self.inputs);
        let modules: Vec<ObjectPlan> = linked
            .modules
            .iter()
            .map(|indexed| self.object_plan(indexed, by_id[indexed.id.as_str()], &toolchain))
            .collect();
        let output = last_value(&self.arguments, "output").unwrap_or("a.out").to_owned();
        let object_of = |id: &str| ModulePlaces::of(state, id).object;
        let mut command: Vec<String> = self.request.link.linker.iter().map(|word| lossy(word)).collect();
        command.extend(final_words(&self.inputs, &fates, object_of, merged.as_deref()));
        command.extend(["-o".to_owned(), output.clone()]);
        let link = Step {
            inputs: self.link_inputs(&linked, &fates, merged.as_ref()),
            outputs: vec![output.clone().into()],
            command,
        };
        let mut backend = vec![self.compiler.clone(), "-c".to_owned()];
        backend.extend(self.flags.args.iter().cloned());
        let plan = LinkPlan {
            version: link_plan::VERSION,
            output: output.into(),
            archives: self.archive_plans(&fates),
            thin_link: self.thin_step(thin_link, merged.as_ref()),
            backend,
            modules,
            link,
        };
        sweep_stale(state, &plan)?;
        Ok(PlannedLink {
            plan,
            not_done: self.flags.not_done,
            warnings: linked.stderr,
            absent: self.inputs.absent,
            jobs: jobs_of(&self.arguments),
        })
    }

    /// Writes the object of regular LTO, if the link needs it: some loaded module has no shard, or has code
    /// beside its ThinLTO part.
    fn keep_regular_object(
        &self,
        fates: &Fates,
        object: Option<&[u8]>,
    ) -> Result<Option<String>, IndexError> {
        let plain = self.inputs.slots.iter().filter_map(|slot| match slot {
            inputs::Slot::Module { input, lazy } => Some((input.id.as_str(), &input.module, *lazy)),
            _ => None,
        });
        let members = self.inputs.slots.iter().flat_map(|slot| match slot {
            inputs::Slot::Archive { index, lazy } => self.inputs.archives[*index]
                .members
                .iter()
                .filter_map(|member| Some((member.path.as_str(), member.module.as_ref()?, *lazy)))
                .collect(),
            _ => Vec::new(),
        });
        let needed = plain.chain(members).find(|(id, module, lazy)| match fates.of_module(id, *lazy) {
            Fate::Object => module.split_unit,
            Fate::Merged => true,
            Fate::Unloaded => false,
        });
        let path = format!("{}/regular-lto.o", self.request.state);
        match (needed, object) {
            (None, _) => Ok(None),
            (Some(_), Some(object)) => {
                write_if_changed(Path::new(&path), object)?;
                Ok(Some(path))
            }
            (Some((id, _, _)), None) => Err(IndexError::Lost { id: id.to_owned() }),
        }
    }

    /// Writes what compiles, so that another compiler under the same name makes every backend run again.
    fn keep_toolchain(&self) -> Result<String, IoError> {
        use std::os::unix::fs::MetadataExt;
        let named = Path::new(&self.compiler);
        let file = if self.compiler.contains('/') { Some(named.to_owned()) } else { in_search_path(named) };
        let real = file.and_then(|file| file.canonicalize().ok());
        let stat = real.as_deref().and_then(|real| fs::metadata(real).ok());
        let (size, modified) =
            stat.map_or((0, 0), |stat| (stat.size(), stat.mtime_nsec() + stat.mtime() * 1_000_000_000));
        let real = real.unwrap_or_else(|| named.to_owned());
        let text = format!(
            "compiler {}\nfile {}\nsize {size}\nmodified {modified}\n",
            self.compiler,
            real.display()
        );
        let path = format!("{}/toolchain", self.request.state);
        write_if_changed(Path::new(&path), text.as_bytes())?;
        Ok(path)
    }

    fn object_plan(&self, indexed: &IndexedModule, module: &Module, toolchain: &str) -> ObjectPlan {
        let places = ModulePlaces::of(self.request.state, &indexed.id);
        let mut args = Vec::with_capacity(12);
        if !module.triple.is_empty() {
            args.push(format!("--target={}", module.triple));
        }
        let mut extra_outputs = Vec::new();
        if let Some(directory) = &self.flags.dwo_directory {
            let dwo = directory.join(format!("{}.dwo", escape_path(indexed.id.as_bytes())));
            for option in ["-split-dwarf-file", "-split-dwarf-output"] {
                args.extend(["-Xclang", option, "-Xclang", dwo.as_str()].map(str::to_owned));
            }
            extra_outputs.push(dwo);
        }
        args.extend(["-x", "ir", &indexed.id].map(str::to_owned));
        args.push(format!("-fthinlto-index={}", places.shard));
        args.extend(["-o".to_owned(), places.object.clone()]);
        let mut extra_inputs = self.flags.inputs.clone();
        extra_inputs.push(toolchain.into());
        extra_inputs.sort();
        let cost = indexed.cost.unwrap_or_else(|| self.cost_by_size(indexed));
        ObjectPlan {
            id: indexed.id.clone().into(),
            shard: places.shard.into(),
            imports: indexed.imports.iter().map(Utf8PathBuf::from).collect(),
            extra_inputs,
            object: places.object.into(),
            extra_outputs,
            args,
            own_instructions: cost.own_instructions,
            imported_instructions: cost.imported_instructions,
        }
    }

    /// For shards of a version whose counts are unknown: the module's size stands for its instructions.
    fn cost_by_size(&self, indexed: &IndexedModule) -> crate::shard::Cost {
        let size = fs::metadata(&indexed.id).map_or(0, |found| found.len());
        crate::shard::Cost { own_instructions: size, imported_instructions: 0 }
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
                members: archive.members.iter().map(member_plan).collect(),
            })
            .collect()
    }

    fn thin_step(&self, thin_link: &ThinLink, merged: Option<&String>) -> Step {
        let mut command: Vec<String> = thin_link.linker.iter().map(|word| lossy(word)).collect();
        command.extend(thin_link.words.iter().cloned());
        command.extend(["--thinlto-index-only", "--thinlto-emit-imports-files"].map(str::to_owned));
        let members = self
            .inputs
            .archives
            .iter()
            .flat_map(|archive| &archive.members)
            .map(|member| member.path.clone());
        let named =
            self.inputs.files.iter().filter_map(|file| file.to_str()).filter(|file| !self.is_unpacked(file));
        let ids = self.inputs.modules().map(|(id, _)| id.to_owned());
        let inputs: BTreeSet<Utf8PathBuf> =
            members.chain(named.map(str::to_owned)).chain(ids).map(Utf8PathBuf::from).collect();
        Step {
            command,
            inputs: inputs.into_iter().collect(),
            outputs: merged.into_iter().map(Utf8PathBuf::from).collect(),
        }
    }

    fn is_unpacked(&self, file: &str) -> bool {
        self.inputs.archives.iter().any(|archive| archive.path == file)
    }

    /// What the final link reads: objects in the places of modules, and all else that the linker was seen to load
    /// or that the line names.
    fn link_inputs(&self, linked: &ThinLinked, fates: &Fates, merged: Option<&String>) -> Vec<Utf8PathBuf> {
        let modules: HashMap<&str, &Module> = inputs::by_id(&self.inputs);
        let mut found: BTreeSet<Utf8PathBuf> = BTreeSet::new();
        found.extend(
            linked
                .modules
                .iter()
                .map(|module| ModulePlaces::of(self.request.state, &module.id).object.into()),
        );
        found.extend(merged.map(Utf8PathBuf::from));
        let loaded = linked.outcome.loaded.iter().map(|line| traced_file(line));
        let named = self.inputs.files.iter().cloned();
        found.extend(
            loaded
                .chain(named)
                .filter_map(|path| path.into_os_string().into_string().ok())
                .filter(|path| !modules.contains_key(path.as_str()) && !self.is_unpacked(path))
                .map(Utf8PathBuf::from)
                .filter(|path| path.exists()),
        );
        let lazy = modules.keys().filter(|id| fates.of_module(id, true) == Fate::Unloaded);
        found.extend(lazy.map(Utf8PathBuf::from));
        found.into_iter().collect()
    }
}

/// The last `--thinlto-jobs=`, when it is a number.
fn jobs_of(arguments: &[Argument]) -> Option<usize> {
    let value = |name: &str| {
        name.strip_prefix("thinlto-jobs=").or_else(|| name.strip_prefix("plugin-opt=jobs=")).map(str::to_owned)
    };
    options(arguments).filter_map(|option| value(&option.name)).last()?.parse().ok().filter(|&jobs| jobs > 0)
}

/// Writes the shards and import lists whose content differs.
fn keep_shards(state: &str, modules: &[IndexedModule]) -> Result<(), IoError> {
    modules.par_iter().try_for_each(|module| {
        let places = ModulePlaces::of(state, &module.id);
        write_if_changed(Path::new(&places.shard), &module.shard)?;
        let mut imports = module.imports.join("\n");
        if !imports.is_empty() {
            imports.push('\n');
        }
        write_if_changed(Path::new(&places.imports), imports.as_bytes()).map(|_| ())
    })
}

/// Removes the shards, import lists and objects of modules that the last plan had and this one has not, and
/// makes this plan the last one.
fn sweep_stale(state: &str, plan: &LinkPlan) -> Result<(), IoError> {
    let path = PathBuf::from(format!("{state}/link-plan.json"));
    let mut text = serde_json::to_vec_pretty(plan).expect("strings, numbers and lists serialise");
    text.push(b'\n');
    let current: BTreeSet<&str> = plan.modules.iter().map(|module| module.id.as_str()).collect();
    // An unreadable old plan names nothing to sweep; its files are only left over.
    let old: Option<LinkPlan> = fs::read(&path).ok().and_then(|old| serde_json::from_slice(&old).ok());
    for module in
        old.iter().flat_map(|old| &old.modules).filter(|module| !current.contains(module.id.as_str()))
    {
        let places = ModulePlaces::of(state, module.id.as_str());
        for stale in [places.shard, places.imports, places.object] {
            remove(Path::new(&stale))?;
        }
    }
    write_if_changed(&path, &text).map(|_| ())
}

fn remove(path: &Path) -> Result<(), IoError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(IoError::on("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Whether a command that is no lld link has bitcode among its words, which no other linker understands.
pub fn bitcode_among(words: &[Word]) -> Option<PathBuf> {
    words.iter().filter(|word| !word.starts_with(b"-")).map(|word| path_of(word)).find(|path| {
        path.is_file()
            && distlto_prepare::kind::classify_file(path)
                .is_ok_and(|kind| matches!(kind, distlto_prepare::kind::Kind::Bitcode { .. }))
    })
}
