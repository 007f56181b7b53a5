//! A backend compilation of a Mach-O module, in the form of Buck2's opt tool for linkers of type `darwin`.
//!
//! There the file of shared arguments holds flags of the compiler, which reads it itself. Makes the command and lists
//! the checks; runs nothing. The words and their order are those of `dist_lto_opt_darwin.py`.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use distlto_planner::clang::driver::named;
use distlto_planner::module;
use distlto_planner::response::{self, ResponseError};
use distlto_planner::words::lossy;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::Native;

use super::compiler::{self, Compiler};
use super::{CommandFiles, DARWIN, OptArgs, Plan};
use crate::backend_command;
use distlto_executor::output::Role;
use miette::Report;

const BUCK2_DARWIN: &str = "As Buck2 calls it for linkers of type darwin";

/// The options of this form. Any one of them selects it.
#[derive(Debug, Clone, Args)]
pub struct DarwinArgs {
    /// Compile with this compiler
    #[arg(long, hide_short_help = true, value_name = "CLANG", num_args = 1.., requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub compiler: Vec<String>,
    /// Give the compiler this response file, which all backends of a link share
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "compiler", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub shared_args: Option<Utf8PathBuf>,
    /// Give the compiler this response file, too; it says what else to write
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub extra_outputs_args: Option<Utf8PathBuf>,
    /// Print the command and do not run it
    #[arg(long, hide_short_help = true, requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub print_command: bool,
    /// Put data for optimising code generation into the object
    #[arg(long, hide_short_help = true, requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub generate_cgdata: bool,
    /// Use this merged data for optimising code generation
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub read_cgdata: Option<Utf8PathBuf>,
    /// Write the optimised bitcode here, too; released clangs cannot
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub save_precodegen_ir: Option<Utf8PathBuf>,
    /// Generate code for optimised bitcode, and do not optimise it again; released clangs cannot
    #[arg(long, hide_short_help = true, requires = "shared_args", group = DARWIN, help_heading = BUCK2_DARWIN)]
    pub codegen_only: bool,
}

/// Makes the plan. `shared` is the file of shared arguments.
pub(super) fn plan(args: &OptArgs, named: CommandFiles<'_>, shared: &Utf8Path) -> Result<Plan, Report> {
    let Compiler { program, arguments } = compiler::read(&args.darwin.compiler)?;
    let mut words = program;
    // Without a target, clang compiles for its own. A target in any of the words comes after this one and wins.
    let said = said(args, shared, &arguments)?;
    let bytes = fs::read(named.input).map_err(IoError::on("read the module", named.input))?;
    let triple = module::read(&bytes).map(|module| module.triple).unwrap_or_default();
    if !triple.is_empty() && !names_target(&said) {
        words.push(format!("--target={triple}"));
    }
    words.extend(arguments);
    words.push(format!("@{shared}"));
    words.extend(["-o", named.out.as_str(), "-x", "ir", "-c", named.input.as_str()].map(str::to_owned));
    // Shared arguments are those of all compilations, which make bitcode.
    words.extend(["-fno-lto", "-Werror=unused-command-line-argument"].map(str::to_owned));
    words.push(format!("-fthinlto-index={}", named.index));
    let mut plan = Plan { expected: expected(&said, &triple), ..Plan::of(named) };
    plan.outputs.push((named.out.to_owned(), Role::Object));
    if args.darwin.codegen_only {
        words.push("-fthinlto-codegen-only".to_owned());
        // Bitcode that an earlier compilation wrote is no module of the shard, and needs no imports.
        plan.shard = "/dev/null".to_owned();
        plan.others.push(named.index.to_string());
    }
    if let Some(path) = &args.darwin.save_precodegen_ir {
        words.push(format!("-save-precodegen-ir={path}"));
        plan.outputs.push((path.clone(), Role::File));
    }
    words.extend(args.darwin.extra_outputs_args.iter().map(|path| format!("@{path}")));
    words.extend_from_slice(&args.words);
    if args.darwin.generate_cgdata {
        words.extend(["-mllvm", "-codegen-data-generate"].map(str::to_owned));
    }
    if let Some(path) = &args.darwin.read_cgdata {
        words.push(format!("-fcodegen-data-use={path}"));
        plan.others.push(path.to_string());
    }
    plan.words = words;
    Ok(plan)
}

/// Every word that the compiler is given by its user.
fn said(args: &OptArgs, shared: &Utf8Path, arguments: &[String]) -> Result<Vec<String>, ResponseError> {
    let mut words: Vec<_> = arguments.iter().map(|word| word.clone().into_bytes()).collect();
    for file in [Some(shared), args.darwin.extra_outputs_args.as_deref()].into_iter().flatten() {
        words.extend(response::tokenize(
            &fs::read(file).map_err(IoError::on("read the compiler's arguments", file))?,
        ));
    }
    words.extend(args.words.iter().map(|word| word.clone().into_bytes()));
    Ok(response::expand(words)?.iter().map(|word| lossy(word)).collect())
}

fn names_target(words: &[String]) -> bool {
    let names = |word: &String| matches!(named(word.as_bytes()), Some("target" | "arch"));
    words.iter().any(names)
}

/// Returns the expected kind of the object. With `-arch` the module's triple decides.
fn expected(said: &[String], triple: &str) -> Option<Native> {
    Native::of_triple(backend_command::target_of(said).unwrap_or(triple))
}
