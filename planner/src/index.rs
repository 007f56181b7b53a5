//! One thin link from the user's command to a link plan: the spine of the planner.
//!
//! Resolves the command, takes its inputs, runs the thin link, keeps what changed, and says what backends and the
//! final link have to do. Starts tools through the caller's `Runner` only. Knows nothing of how actions run.

use std::path::{Path, PathBuf};

use distlto_prepare::kind::{Kind, classify_file};
use distlto_prepare::store::Store;
use distlto_prepare::write::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::backend_flags::{self, BackendFlags, FlagError};
use crate::compile_jobs::{self, CompileError};
use crate::exclude_libs;
use crate::inputs::{self, InputError, InputPlaces, LinkInputs};
use crate::link_command::{LinkCommand, LinkCommandError, clang_beside};
use crate::link_line::{Argument, options};
use crate::link_plan::LinkPlan;
use crate::linker::elf::options::{last, step, value};
use crate::loaded::LoadedFiles;
use crate::module::{Module, SummaryKind};
use crate::options::LinkStep;
use crate::pending::Pending;
use crate::planning::Planning;
use crate::recorded_flags::{FlagRecords, FlagsSource, RecordError};
use crate::rewrite::thin_words;
use crate::runner::{Runner, ToolError};
use crate::scratch::Scratch;
use crate::search_path::program_file;
use crate::thin_link::{ThinLink, ThinLinkError, traced_file};
use crate::words::{Word, lossy, path_of, word_of};

/// Why a link could not be planned.
#[derive(Debug, Error, Diagnostic)]
pub enum IndexError {
    /// The command could not be resolved to a link line.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Front(#[from] LinkCommandError),
    /// Sources on a driver's line could not be compiled.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
    /// An input could not be taken.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    /// An option has no meaning for backends that run apart from the linker.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Flags(#[from] FlagError),
    /// What a build has recorded of an object.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Record(#[from] RecordError),
    /// The thin link failed or left less than it should.
    #[error(transparent)]
    #[diagnostic(transparent)]
    ThinLink(#[from] ThinLinkError),
    /// A tool is missing or could not be run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
    /// The state directory could not be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// Symbols of an archive would be exported that the user wants hidden.
    #[error("--exclude-libs={libraries} names {archive}, whose members are linked one by one")]
    #[diagnostic(
        code(distlto::untranslatable),
        help(
            "members of an unpacked archive are no longer a library; hide the symbols with a version script or -fvisibility=hidden"
        )
    )]
    ExcludeLibs {
        /// The option's value.
        libraries: String,
        /// The first archive with bitcode that it names.
        archive: String,
    },
    /// Code of a loaded module would be lost.
    #[error("{id} was loaded, but the thin link wrote neither an index shard nor regular LTO code for it")]
    #[diagnostic(
        code(distlto::tool),
        help("compile it with -flto=thin, or report the link line as a defect of distlto")
    )]
    Lost {
        /// The module id.
        id: String,
    },
}

/// Flags of a whole compilation are not all for one of bitcode.
const UNUSED: &str = "-Wno-unused-command-line-argument";

/// How a link is to be planned.
#[derive(Clone, Copy)]
pub struct PlanRequest<'a> {
    /// The link, as `link_command::resolve` found it.
    pub link: &'a LinkCommand,
    /// The state directory.
    pub state: &'a str,
    /// The clang for the backends, instead of the one that the command names or implies.
    pub compiler: Option<&'a str>,
    /// Arguments for every backend besides those that the link line implies.
    pub backend_args: &'a [String],
    /// Where a build has recorded each object's flags, which then count instead of the link line's.
    pub flags_from: Option<&'a FlagsSource>,
    /// Shared storage for unpacked archive members.
    pub store: Option<&'a Store>,
    /// Runs tools.
    pub runner: &'a dyn Runner,
    /// Is told of one backend before the thin link runs.
    pub preview: Option<&'a dyn Fn(Preview)>,
    /// Says of a compiler what besides its own file decides what it does, a line each.
    pub identity: Option<&'a Identify<'a>>,
}

/// What decides what a compiler does besides its own file, a line each.
pub type Identify<'a> = dyn Fn(&str) -> Vec<String> + 'a;

/// A backend as the plan will have it, but for what the thin link says.
#[derive(Debug)]
pub struct Preview {
    /// The command.
    pub command: Vec<String>,
    /// Its module.
    pub module: String,
    /// Where its shard will lie.
    pub shard: String,
    /// Where its object will lie.
    pub object: String,
    /// How many modules may be compiled.
    pub modules: usize,
}

/// What planning a link gave.
#[derive(Debug)]
pub enum Planned {
    /// A distributed link. Whoever compiles keeps each shard before its backend starts, and then the rest.
    Link(Box<PlannedLink>, Pending),
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
    /// Whether the program's native objects and modules stand in another order than in a link of one step.
    pub order_differs: bool,
}

/// A link whose sources are compiled, whose inputs are known and whose archives are unpacked.
#[derive(Debug)]
pub struct Prepared {
    /// The link line.
    pub arguments: Vec<Argument>,
    /// What its inputs are.
    pub inputs: LinkInputs,
    /// The clang for the backends.
    pub compiler: String,
    /// The first part of the modules' target triple.
    pub architecture: String,
    /// How many backends the link line asks to run at once.
    pub jobs: Option<usize>,
}

/// Prepares a link: everything up to the thin link. `None` when the command is to be run as it is.
pub fn prepare(request: &PlanRequest<'_>) -> Result<Option<Prepared>, IndexError> {
    let compiled = compile_jobs::run(request.link, request.state, request.runner)?;
    let arguments = compiled.into_owned().into_arguments();
    if writes_itself(&arguments) {
        return Ok(None);
    }
    let inputs = inputs::resolve(&arguments, InputPlaces { state: request.state, store: request.store })?;
    if inputs.modules().next().is_none() {
        return Ok(None);
    }
    exclude_libs::check_line(&arguments, &inputs)?;
    let compiler = compiler_of(request.link, request.compiler)?;
    let architecture = architecture_of(&inputs);
    let jobs = jobs_of(&arguments);
    Ok(Some(Prepared { arguments, inputs, compiler, architecture, jobs }))
}

/// Plans a link: everything up to the first backend.
pub fn plan(request: PlanRequest<'_>) -> Result<Planned, IndexError> {
    let Some(prepared) = prepare(&request)? else { return Ok(Planned::Unchanged) };
    let Prepared { arguments, inputs, compiler, architecture, jobs } = prepared;
    let records = request.flags_from.map(FlagRecords::open).transpose()?;
    let flags = match records {
        Some(_) => BackendFlags { args: vec![UNUSED.to_owned()], ..BackendFlags::default() },
        None => backend_flags::of_link_line(&arguments, &architecture, request.backend_args)?,
    };
    let mut planning = Planning { request, arguments, inputs, flags, records, compiler, jobs };
    if let (Some(preview), Some(backend)) = (request.preview, planning.preview()) {
        preview(backend);
    }
    loop {
        let thin_link = thin_link_of(request.link, &planning.arguments, &planning.inputs);
        let scratch = Scratch::new(Path::new(request.state), thin_link.ids.len())?;
        let linked = thin_link.run(&scratch, request.runner)?;
        let loaded = LoadedFiles::of(&planning.inputs, &linked.outcome.loaded).map_err(InputError::from)?;
        match loaded.unprepared(&planning.inputs, &linked.outcome).map_err(InputError::from)? {
            Some(id) => name_noted(&mut planning, id)?,
            None => {
                exclude_libs::check_loaded(&planning.arguments, &planning.inputs, &linked.outcome)?;
                let (planned, pending) = planning.finish(linked, &loaded)?;
                return Ok(Planned::Link(Box::new(planned), pending.with(scratch)));
            }
        }
    }
}

/// Puts what the linker has found by itself, after a note in an object, at the end of the line, where it has put it too:
/// there it can be unpacked. What stands on the line already came from somewhere else.
fn name_noted(planning: &mut Planning<'_>, id: String) -> Result<(), IndexError> {
    let file = traced_file(&id);
    if planning.inputs.files.contains(&file) || !file.is_file() {
        return Err(ThinLinkError::Unprepared { id }.into());
    }
    planning.arguments.push(Argument::Input(word_of(file.into_os_string())));
    let request = &planning.request;
    let places = InputPlaces { state: request.state, store: request.store };
    planning.inputs = inputs::resolve(&planning.arguments, places)?;
    Ok(())
}

/// Whether the linker is told to stop before the program, or to write what only it can.
pub fn writes_itself(arguments: &[Argument]) -> bool {
    options(arguments).any(|option| step(option) == LinkStep::Whole)
}

fn thin_link_of(link: &LinkCommand, arguments: &[Argument], inputs: &LinkInputs) -> ThinLink {
    let chooses = last(arguments, "lto").is_some();
    let regular =
        |module: &Module| module.summary != SummaryKind::ThinLto || module.unified || module.split_unit;
    ThinLink {
        linker: link.linker.clone(),
        words: thin_words(inputs),
        ids: inputs.modules().map(|(id, _)| id.to_owned()).collect(),
        regular_lto: chooses || inputs.modules().any(|(_, module)| regular(module)),
    }
}

/// The first part of the modules' target triple.
fn architecture_of(inputs: &LinkInputs) -> String {
    let triple = inputs.modules().map(|(_, module)| module.triple.as_str()).find(|triple| !triple.is_empty());
    triple.and_then(|triple| triple.split('-').next()).unwrap_or_default().to_owned()
}

/// The clang for the backends: the one that is asked for, or that the command names or implies, or the linker's neighbour.
pub fn compiler_of(link: &LinkCommand, asked: Option<&str>) -> Result<String, ToolError> {
    let linker = &link.linker[0];
    asked
        .map(str::to_owned)
        .or_else(|| link.compiler.as_deref().map(lossy))
        .or_else(|| clang_beside(linker).as_deref().map(lossy))
        .or_else(|| program_file(Path::new("clang")).map(|_| "clang".to_owned()))
        .ok_or_else(|| ToolError::NoCompiler { linker: lossy(linker) })
}

/// The last `--thinlto-jobs=`, when it is a number.
pub fn jobs_of(arguments: &[Argument]) -> Option<usize> {
    value(last(arguments, "thinlto-jobs")?)?.parse().ok().filter(|&jobs| jobs > 0)
}

/// Whether a command that is no lld link has bitcode among its words, which no other linker understands.
pub fn bitcode_among(words: &[Word]) -> Option<PathBuf> {
    words.iter().filter(|word| !word.starts_with(b"-")).map(|word| path_of(word)).find(|path| {
        path.is_file() && classify_file(path).is_ok_and(|kind| matches!(kind, Kind::Bitcode { .. }))
    })
}
