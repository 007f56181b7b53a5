//! A backend compilation of an ELF module: the words of `distlto-opt --out O --input M --index S -- COMPILER`, which
//! are also those of Buck2's opt tool for linkers of type `gnu`.
//!
//! Makes the command and lists the checks; runs nothing. `backend_flags::link_flags` interprets link flags.

use std::fs;

use camino::Utf8Path;
use clap::ValueEnum;
use distlto_planner::backend_flags::driver_words::is_for_bitcode;
use distlto_planner::backend_flags::link_flags::{self, LinkFlags};
use distlto_planner::module;
use distlto_planner::recorded_flags::{FlagRecords, FlagsSource, RecordedFlags};
use distlto_planner::shard::{self, Shard};
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::Native;

use super::compiler::{self, Compiler};
use super::processor;
use super::{CommandFiles, OptArgs, OptError, Plan, args_file};
use crate::backend_command;
use distlto_executor::output::Role;
use miette::Report;

/// Where debug information goes that the program does not need to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitDwarf {
    /// Into the object, to be linked.
    None,
    /// Into sections of the object that the linker leaves out.
    Single,
    /// Into the file that `--dwo` names.
    Split,
}

/// Makes the plan.
pub(super) fn plan(args: &OptArgs, named: CommandFiles<'_>) -> Result<Plan, Report> {
    check_dwo(args)?;
    let compiler = compiler::read(&args.words)?;
    let own_triple = match &args.target {
        Some(triple) => triple.clone(),
        None => triple_of(named.input)?,
    };
    let said = backend_command::target_of(&compiler.arguments);
    let triple = said.unwrap_or(&own_triple).to_owned();
    let mut plan = Plan { expected: Native::of_triple(&triple), ..Plan::of(named) };
    let Compiler { program, arguments } = match (&args.args, &args.flags_from) {
        (Some(path), _) => with_link_flags(path, (args, named), &triple, compiler, &mut plan)?,
        (None, Some(source)) => with_recorded_flags(source, named.input, compiler)?,
        (None, None) => compiler,
    };
    plan.words = backend_command::words(backend_command::BackendParts {
        program: &program,
        given: &arguments,
        triple: &own_triple,
        flags: &[],
        module: named.input,
        shard: named.index,
        output: named.out,
    });
    let imports = match &args.imports {
        Some(list) => imports_in(list)?,
        None => imports_of(named.index, named.input.as_str()),
    };
    plan.others.extend(imports);
    plan.outputs.push((named.out.to_owned(), Role::Object));
    let role = if args.split_dwarf.is_some() { Role::DwoIfAny } else { Role::Dwo };
    plan.outputs.extend(args.dwo.clone().map(|dwo| (dwo, role)));
    Ok(plan)
}

/// A compiler that compiles as the link flags in a file say.
///
/// They follow the compiler's own arguments, so they win; both together name the processor.
fn with_link_flags(
    path: &Utf8Path,
    (args, files): (&OptArgs, CommandFiles<'_>),
    triple: &str,
    compiler: Compiler,
    plan: &mut Plan,
) -> Result<Compiler, Report> {
    let words = args_file::read(path)?;
    let architecture = triple.split('-').next().unwrap_or_default();
    let in_file = |source| OptError::LinkFlags { path: path.to_owned(), source };
    let LinkFlags { backend, processor } = link_flags::of_command(words, architecture).map_err(in_file)?;
    if backend.dwo_directory.is_some() && args.dwo.is_none() && args.split_dwarf.is_none() {
        return Err(OptError::NoDwo.into());
    }
    let Compiler { program, arguments } = compiler;
    let (mut named, mut arguments): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|argument| processor::is_named_by(argument));
    named.extend(processor);
    // A compiler that is always given `-flto=thin` would write bitcode again.
    arguments.retain(|argument| is_for_bitcode(argument.as_bytes()));
    arguments.extend(backend.args);
    arguments.extend(processor::arguments(&named, files.input, files.index)?);
    arguments.extend(split_dwarf_arguments(args, files.out));
    plan.others.extend(backend.inputs.into_iter().map(String::from));
    plan.notes = backend.not_done;
    Ok(Compiler { program, arguments })
}

/// A compiler that compiles as a build recorded for the module.
fn with_recorded_flags(
    source: &FlagsSource,
    module: &Utf8Path,
    compiler: Compiler,
) -> Result<Compiler, Report> {
    let RecordedFlags { kept: mut arguments, .. } = FlagRecords::open(source)?.flags_of(module, None)?;
    // Some flags of a compilation from source do not apply to bitcode.
    arguments.push("-Wno-unused-command-line-argument".to_owned());
    arguments.extend(compiler.arguments);
    Ok(Compiler { program: compiler.program, arguments })
}

/// Clang takes the names of split debug information from the object's, and writes them into the object; the object is
/// written elsewhere first, so the names are given.
fn split_dwarf_arguments(args: &OptArgs, out: &Utf8Path) -> Vec<String> {
    let (mode, name, place) = match (args.split_dwarf, &args.dwo) {
        (Some(SplitDwarf::Split), Some(dwo)) => ("-gsplit-dwarf=split", dwo.as_path(), Some(dwo)),
        (Some(SplitDwarf::Single), _) => ("-gsplit-dwarf=single", out, None),
        (Some(SplitDwarf::None), _) => return vec!["-gno-split-dwarf".to_owned()],
        _ => return Vec::new(),
    };
    let mut arguments = vec![mode, "-Xclang", "-split-dwarf-file", "-Xclang", name.as_str()];
    if let Some(place) = place {
        arguments.extend(["-Xclang", "-split-dwarf-output", "-Xclang", place.as_str()]);
    }
    arguments.into_iter().map(str::to_owned).collect()
}

fn check_dwo(args: &OptArgs) -> Result<(), Report> {
    match (args.split_dwarf, &args.dwo) {
        (Some(SplitDwarf::Split), None) => Err(OptError::NoDwo.into()),
        (Some(SplitDwarf::None | SplitDwarf::Single), Some(path)) => {
            Err(OptError::UselessDwo { path: path.clone() }.into())
        }
        // Here the compiler gets no name for the file, and its own choice always ends in .dwo.
        (None, Some(path)) if path.extension() != Some("dwo") => {
            Err(OptError::DwoName { path: path.clone() }.into())
        }
        _ => Ok(()),
    }
}

/// The module's own target; empty when it is not bitcode, which `verify` reports in full.
fn triple_of(module: &Utf8Path) -> Result<String, IoError> {
    let bytes = fs::read(module).map_err(IoError::on("read the module", module))?;
    Ok(module::read(&bytes).map(|module| module.triple).unwrap_or_default())
}

/// Returns the modules that a shard imports from. Verification reports a shard that cannot be read.
fn imports_of(shard: &Utf8Path, module: &str) -> Vec<String> {
    let read = fs::read(shard).ok().and_then(|bytes| shard::read(&bytes).ok());
    let imported = |shard: Shard| {
        let from = shard.imported_from(module);
        from.filter_map(|import| String::from_utf8(import.path.clone()).ok()).collect()
    };
    read.map(imported).unwrap_or_default()
}

/// An import list: one module a line, as the thin link writes it.
fn imports_in(path: &Utf8Path) -> Result<Vec<String>, Report> {
    let text = fs::read_to_string(path).map_err(IoError::on("read the import list", path))?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
