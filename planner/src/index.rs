//! One thin link from the user's command to a link plan: the spine of the planner.
//!
//! Resolves the command, takes its inputs, runs the thin link, keeps what changed, and says what backends and the
//! final link have to do. Starts tools through the caller's `Runner` only. Knows nothing of how actions run.

pub(crate) mod error;
pub(crate) mod request;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use distlto_prepare::kind::{Kind, classify_file};

use crate::backend_flags::{self, BackendFlags, UNUSED};
use crate::compile_jobs;
use crate::inputs::{self, InputError, InputPlaces, LinkInputs};
use crate::link_command::{LinkCommand, clang_beside};
use crate::link_line::{Argument, options};
use crate::linker::elf::library_members;
use crate::linker::elf::wrapped;
use crate::linker::options::{last, step, value};
use crate::loaded::LoadedFiles;
use crate::module::{Module, SummaryKind};
use crate::options::LinkStep;
use crate::planning::Planning;
use crate::recorded_flags::FlagRecords;
use crate::rewrite::thin_words;
use crate::runner::ToolError;
use crate::scratch::Scratch;
use crate::search_path::program_file;
use crate::thin_link::{ThinLink, ThinLinkError, traced_file};
use crate::words::{Word, lossy, path_of, word_of};

pub use error::IndexError;
pub use request::{AskLinker, Identify, PlanRequest, Planned, PlannedLink, Prepared, Preview};

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
    library_members::check_line(&arguments, &inputs)?;
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
        None => {
            let said = request.linker_flags.and_then(|ask| ask(&arguments));
            backend_flags::of_link_line(&arguments, &architecture, said.as_ref(), request.backend_args)?
        }
    };
    let noted = HashSet::new();
    let mut planning = Planning { request, arguments, inputs, noted, flags, records, compiler, jobs };
    if let (Some(preview), Some(backend)) = (request.preview, planning.preview()) {
        preview(backend);
    }
    loop {
        let thin_link = thin_link_of(request.link, &planning.arguments, &planning.inputs);
        let scratch = Scratch::new(Path::new(request.state), thin_link.ids.len())?;
        let linked = thin_link.run(&scratch, request.runner)?;
        let mut loaded =
            LoadedFiles::of(&planning.inputs, &linked.outcome.loaded).map_err(InputError::from)?;
        match loaded.unprepared(&planning.inputs, &linked.outcome).map_err(InputError::from)? {
            Some(id) => name_noted(&mut planning, id)?,
            None => {
                library_members::check_loaded(&planning.arguments, &planning.inputs, &linked.outcome)?;
                library_members::check_noted(&planning.noted, &planning.inputs, &linked.outcome)?;
                loaded.demanded = wrapped::demanded(&planning.arguments, &loaded, &linked.outcome.loaded)?;
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
    planning.noted.insert(file.to_string_lossy().into_owned());
    planning.arguments.push(Argument::Input(word_of(file.into_os_string())));
    let request = &planning.request;
    let places = InputPlaces { state: request.state, store: request.store };
    planning.inputs = inputs::resolve(&planning.arguments, places)?;
    library_members::check_line(&planning.arguments, &planning.inputs)
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
