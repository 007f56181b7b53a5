//! Translates a link line's LTO options into the arguments of a backend compilation, as ld.lld's own LTO would.
//!
//! Two steps: [`raw`] gathers the written options; this module validates and translates them. An option that would
//! change code and has no compiler spelling is an error that names it. An option that only asks for more output is
//! named in [`BackendFlags::not_done`]. Source: `createConfig` in `lld/ELF/LTO.cpp`, and LLVM's
//! `llvm/lib/CodeGen/CommandFlags.cpp`. Does not depend on modules and files.

pub mod codegen;
pub mod driver_words;
pub mod link_flags;
pub mod linker_flags;
pub mod raw;
pub mod stable_names;

use camino::Utf8PathBuf;
use distlto_prepare::names::escape_path;
use miette::Diagnostic;
use thiserror::Error;

use crate::clang::driver::changes;
use crate::link_line::{Argument, last_value};
use crate::options::Code;
use codegen::{Codegen, to_compiler};
use linker_flags::LinkerFlags;
use raw::{RawLto, RawOption};

/// Flags of a whole compilation are not all for one of bitcode.
pub const UNUSED: &str = "-Wno-unused-command-line-argument";

/// Why a link line has no backend flags.
#[derive(Debug, Error, Diagnostic, PartialEq, Eq)]
pub enum FlagError {
    /// An option that changes code, and that a compiler cannot be given.
    #[error("the link option {option} changes the code that LTO generates, and clang has no spelling for it")]
    #[diagnostic(
        code(distlto::untranslatable),
        help(
            "remove the option, or link this program with in-process ThinLTO; an equal clang option can be given with --backend-arg"
        )
    )]
    Untranslatable {
        /// The option as it was written.
        option: String,
    },
    /// An option with a value that ld.lld does not take.
    #[error("{option}: expected {expected}")]
    #[diagnostic(code(distlto::usage), help("correct the link option"))]
    BadValue {
        /// The option as it was written.
        option: String,
        /// The values that ld.lld takes.
        expected: &'static str,
    },
    /// `-r`: the linker takes the relocation model from each module.
    #[error(
        "with -r the relocation model of each object is its compiler's, which the link line does not say"
    )]
    #[diagnostic(
        code(distlto::untranslatable),
        help("say it: --backend-arg=-fPIC or --backend-arg=-fno-pic, as the objects were compiled")
    )]
    RelocationModelUnknown,
}

/// The flags of every backend compilation of one link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackendFlags {
    /// Compiler arguments, without the compiler, the module, the shard and the output.
    pub args: Vec<String>,
    /// Files that the arguments name and the compiler reads: profiles, plugins, section lists.
    pub inputs: Vec<Utf8PathBuf>,
    /// Where `.dwo` files go, when debug information is split.
    pub dwo_directory: Option<Utf8PathBuf>,
    /// Options that ask for output besides the objects, which a distributed link does not write.
    pub not_done: Vec<String>,
}

/// Translates the LTO options of a link line. `said` has the linker's own backend flags for these options; `None`
/// stands for those of lld 22. `extra` are arguments that the user adds, last so that they win.
pub fn of_link_line(
    arguments: &[Argument],
    architecture: &str,
    said: Option<&LinkerFlags>,
    extra: &[String],
) -> Result<BackendFlags, FlagError> {
    translate(&raw::gather(arguments), architecture, said, extra, Relocatable::HasToSay)
}

/// Does the same for a link that the linker itself performs. There `-r` is no error: it leaves the relocation model to
/// the compiler.
pub fn of_distributed_line(
    arguments: &[Argument],
    said: Option<&LinkerFlags>,
    extra: &[String],
) -> Result<BackendFlags, FlagError> {
    translate(&raw::gather(arguments), architecture(arguments), said, extra, Relocatable::UpToCompiler)
}

/// The first part of the target triple, as far as it decides how a processor is spelled.
pub fn architecture(arguments: &[Argument]) -> &str {
    match last_value(arguments, "emulation") {
        Some(emulation) if emulation.starts_with("elf_x86_64") => "x86_64",
        Some(emulation) if emulation.starts_with("elf_i386") => "i386",
        Some(other) => other,
        None => std::env::consts::ARCH,
    }
}

/// The first option that asks for output besides the objects, as it was written.
pub fn reported(arguments: &[Argument]) -> Option<String> {
    let is_report = |option: &&RawOption| match option.code {
        Code::Llvm => codegen::translate(&option.value) == Codegen::Report,
        code => matches!(code, Code::Report | Code::Remarks),
    };
    raw::gather(arguments).options.iter().find(is_report).map(|option| option.written.clone())
}

/// The treatment of `-r`, for which the linker would take the relocation model from each module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relocatable {
    /// The user says it, or it is an error.
    HasToSay,
    /// The compiler's default decides.
    UpToCompiler,
}

/// Validates raw options and translates them. `architecture` is the first part of the target triple; it decides the
/// spelling of a processor. The words that the linker has `said` come first and are not repeated.
pub fn translate(
    raw: &RawLto,
    architecture: &str,
    said: Option<&LinkerFlags>,
    extra: &[String],
    relocatable: Relocatable,
) -> Result<BackendFlags, FlagError> {
    let mut gathered = gather_arguments(raw)?;
    let said = said.cloned().unwrap_or_else(|| said_by_llvm_22(gathered.level));
    let linked = match raw {
        RawLto { relocatable: true, .. } if relocatable == Relocatable::UpToCompiler => OutputKind::Unsaid,
        RawLto { relocatable: true, .. } => OutputKind::Relocatable,
        RawLto { shared: true, .. } | RawLto { pie: true, .. } => OutputKind::Independent,
        _ => OutputKind::FixedPlace,
    };
    let position = position(linked, gathered.relocation_model.as_deref(), extra)?;
    let mut words = gathered.words;
    words.extend(position.map(|independent| vec![if independent { "-fpic" } else { "-fno-pic" }.to_owned()]));
    // The linker's own backends unroll loops at every level, clang only from the second on.
    words.extend((gathered.level == 1).then(|| vec!["-funroll-loops".to_owned()]));
    words.retain(|words| !said.say(words));
    let words = said.args.into_iter().chain(words.into_iter().flatten());
    // The driver's option of this name also makes the compiler infer parts that the profile lacks; the linker does
    // not.
    let mut args = Vec::new();
    for word in words {
        args.extend(word.starts_with("-fprofile-sample-use=").then(|| "-Xclang".to_owned()));
        args.push(word);
    }
    args.extend(gathered.cpu.iter().flat_map(|cpu| cpu_arguments(architecture, cpu)));
    args.append(&mut gathered.last);
    args.push(UNUSED.to_owned());
    args.extend_from_slice(extra);
    let mut flags = BackendFlags { args, ..gathered.flags };
    flags.inputs.extend(said.inputs);
    flags.inputs.sort();
    flags.inputs.dedup();
    Ok(flags)
}

/// Returns the words that lld 22 gives its backends on every line.
fn said_by_llvm_22(level: u8) -> LinkerFlags {
    let sections = ["-faddrsig", "-ffunction-sections", "-fdata-sections"].map(str::to_owned);
    let args = [format!("-O{level}")].into_iter().chain(sections).collect();
    LinkerFlags { args, inputs: Vec::new() }
}

/// Options translated one by one, before the decisions that need all of them together.
struct Gathered {
    level: u8,
    /// The arguments of each option.
    words: Vec<Vec<String>>,
    /// The rest.
    flags: BackendFlags,
    relocation_model: Option<String>,
    cpu: Option<String>,
    /// Arguments that follow all others.
    last: Vec<String>,
}

fn gather_arguments(raw: &RawLto) -> Result<Gathered, FlagError> {
    let level = opt_level(raw)?;
    check_codegen_level(raw, level)?;
    let mut flags = BackendFlags::default();
    let mut relocation_model = None;
    let mut cpu = None;
    let mut context_sensitive = ContextSensitive::default();
    let mut words = Vec::new();
    for option in &raw.options {
        flags.add(option, &mut relocation_model, &mut cpu, &mut context_sensitive)?;
        words.push(std::mem::take(&mut flags.args));
    }
    let last = context_sensitive.arguments(&mut flags.inputs);
    Ok(Gathered { level, words, flags, relocation_model, cpu, last })
}

/// The kind of output, as far as it decides how code finds its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    /// A shared library or a position-independent program.
    Independent,
    /// A program with a fixed place.
    FixedPlace,
    /// Another object: each module says for itself.
    Relocatable,
    /// The compiler's default kind.
    Unsaid,
}

/// Returns whether code is to be position-independent; `None` leaves it to the compiler and to the words in `said`.
fn position(linked: OutputKind, model: Option<&str>, said: &[String]) -> Result<Option<bool>, FlagError> {
    let says = |argument: &String| changes(argument.as_bytes(), Code::Position);
    match (model, linked) {
        (Some("pic"), _) | (None, OutputKind::Independent) => Ok(Some(true)),
        // Clang may be built to make position-independent code by default, so the opposite is said too.
        (Some("static"), _) | (None, OutputKind::FixedPlace) => Ok(Some(false)),
        (Some(other), _) => {
            Err(FlagError::Untranslatable { option: format!("-mllvm -relocation-model={other}") })
        }
        (None, OutputKind::Relocatable) if !said.iter().any(says) => Err(FlagError::RelocationModelUnknown),
        (None, OutputKind::Relocatable | OutputKind::Unsaid) => Ok(None),
    }
}

/// Context-sensitive profiling: generating or using is only known once both options were seen.
#[derive(Default)]
struct ContextSensitive {
    generate: bool,
    file: Option<String>,
}

impl ContextSensitive {
    fn arguments(self, inputs: &mut Vec<Utf8PathBuf>) -> Vec<String> {
        if self.generate {
            let file = self.file.unwrap_or_else(|| "default_%m.profraw".to_owned());
            let path = format!("-fprofile-instrument-path={file}");
            return ["-Xclang", "-fprofile-instrument=csllvm", "-Xclang", &path].map(str::to_owned).to_vec();
        }
        let Some(file) = self.file else { return Vec::new() };
        let argument = format!("-fprofile-use={file}");
        inputs.push(file.into());
        vec![argument]
    }
}

/// The files of one backend compilation, as its command names them.
#[derive(Debug, Clone, Copy)]
pub struct BackendFiles<'a> {
    /// The module, by its id.
    pub module: &'a str,
    /// Its index shard.
    pub shard: &'a str,
    /// The native object.
    pub object: &'a str,
    /// The split debug information, if there is any.
    pub dwo: Option<&'a str>,
}

impl BackendFiles<'_> {
    /// The words that follow the shared ones. `triple` is the module's own; it may be empty.
    pub fn args(&self, triple: &str) -> Vec<String> {
        let mut args = Vec::with_capacity(16);
        if !triple.is_empty() {
            args.push(format!("--target={triple}"));
        }
        if let Some(dwo) = self.dwo {
            for option in ["-split-dwarf-file", "-split-dwarf-output"] {
                args.extend(["-Xclang", option, "-Xclang", dwo].map(str::to_owned));
            }
        }
        args.extend(["-x", "ir", self.module].map(str::to_owned));
        args.push(format!("-fthinlto-index={}", self.shard));
        args.extend(["-o", self.object].map(str::to_owned));
        args
    }
}

impl BackendFlags {
    /// Returns the path of a module's split debug information, if there is any. `name` distinguishes the module from
    /// all others.
    pub fn dwo(&self, name: &str) -> Option<Utf8PathBuf> {
        let directory = self.dwo_directory.as_ref()?;
        Some(directory.join(format!("{}.dwo", escape_path(name.as_bytes()))))
    }

    /// The words that all backends share, the compiler first.
    pub fn shared_words(&self, compiler: &str) -> Vec<String> {
        let shared = [compiler, "-c"].map(str::to_owned);
        shared.into_iter().chain(self.args.iter().cloned()).collect()
    }

    fn add(
        &mut self,
        option: &RawOption,
        relocation_model: &mut Option<String>,
        cpu: &mut Option<String>,
        context_sensitive: &mut ContextSensitive,
    ) -> Result<(), FlagError> {
        let refuse = || Err(FlagError::Untranslatable { option: option.written.clone() });
        let value = option.value.as_str();
        match option.code {
            Code::Llvm => match codegen::translate(value) {
                Codegen::Arguments(arguments) => self.args.extend(arguments),
                Codegen::Cpu(name) => *cpu = Some(name),
                Codegen::RelocationModel(model) => *relocation_model = Some(model),
                Codegen::Overridden => {}
                Codegen::Untranslatable => return refuse(),
                Codegen::Report => self.not_done.push(option.written.clone()),
                Codegen::Llvm => self.add_words(&["-mllvm", value]),
            },
            Code::Processor => *cpu = Some(value.to_owned()),
            Code::SampleProfile => self.add_file("-fprofile-sample-use=", value),
            Code::CsGenerate => context_sensitive.generate = true,
            Code::CsProfile => context_sensitive.file = Some(value.to_owned()),
            Code::MismatchWarning(false) => self.add_words(&["-mllvm", "-no-pgo-warn-mismatch"]),
            Code::SplitDebug => self.dwo_directory = Some(value.into()),
            Code::BlockSections => match value {
                "all" | "none" => {
                    self.args.extend(to_compiler(&[&format!("-fbasic-block-sections={value}")]));
                }
                "labels" => self.args.extend(to_compiler(&["-fbasic-block-address-map"])),
                file => {
                    self.add_words(&["-Xclang"]);
                    self.add_file("-fbasic-block-sections=list=", file);
                }
            },
            Code::BlockAddressMap(true) => self.args.extend(to_compiler(&["-fbasic-block-address-map"])),
            Code::BlockAddressMap(false) => self.args.extend(to_compiler(&["-fno-basic-block-address-map"])),
            Code::UniqueBlockNames(true) => self.add_words(&["-funique-basic-block-section-names"]),
            Code::UniqueBlockNames(false) => self.add_words(&["-fno-unique-basic-block-section-names"]),
            Code::PassPlugin => self.add_file("-fpass-plugin=", value),
            Code::Untranslatable => return refuse(),
            Code::Report | Code::Remarks => self.not_done.push(option.written.clone()),
            // Levels are checked together. The other codes do not occur in a linker's table.
            _ => {}
        }
        Ok(())
    }

    fn add_words(&mut self, words: &[&str]) {
        self.args.extend(words.iter().map(|&word| word.to_owned()));
    }

    fn add_file(&mut self, prefix: &str, file: &str) {
        self.args.push(format!("{prefix}{file}"));
        self.inputs.push(file.into());
    }
}

/// ld.lld's optimisation level; 2 where none is given.
pub(crate) fn opt_level(raw: &RawLto) -> Result<u8, FlagError> {
    last_level(raw, Code::Level).map(|level| level.unwrap_or(2))
}

/// Clang derives the code generation level from `-O` alone; any other combination cannot be said.
fn check_codegen_level(raw: &RawLto, opt_level: u8) -> Result<(), FlagError> {
    match last_level(raw, Code::CodegenLevel)? {
        Some(level) if level != opt_level => {
            Err(FlagError::Untranslatable { option: format!("--lto-CGO{level} with --lto-O{opt_level}") })
        }
        _ => Ok(()),
    }
}

fn last_level(raw: &RawLto, code: Code) -> Result<Option<u8>, FlagError> {
    let Some(option) = raw.last(code) else { return Ok(None) };
    match option.value.parse() {
        Ok(level @ 0..=3) => Ok(Some(level)),
        _ => Err(FlagError::BadValue { option: option.written.clone(), expected: "a level from 0 to 3" }),
    }
}

/// Returns clang's spelling of a processor on an architecture. On some, such as RISC-V, the driver would derive
/// instructions and ABI from the processor. There only the compiler proper gets it, so that the driver keeps the
/// instructions and ABI of the compilations.
fn cpu_arguments(architecture: &str, cpu: &str) -> Vec<String> {
    match architecture {
        "x86_64" | "i386" | "i486" | "i586" | "i686" => vec![format!("-march={cpu}")],
        _ if ["aarch64", "arm", "thumb"].iter().any(|arm| architecture.starts_with(arm)) => {
            vec![format!("-mcpu={cpu}")]
        }
        _ => to_compiler(&["-target-cpu", cpu]),
    }
}
