//! Options that lld drops silently when it hands its backends to a distributor.
//!
//! lld 22 passes to the compiler `-O`, `-faddrsig`, `-ffunction-sections`, `-fdata-sections`, `-fpic`, a sample
//! profile, `--no-lto-pgo-warn-mismatch` and the user's own `--thinlto-remote-compiler-arg`; each other option that
//! changes code is lost. `backend_flags` knows the compiler's spelling of each. Pure; found out by comparing the job
//! files and objects of lld 22 with those of its own LTO.

use std::fmt;

use crate::backend_flags::raw::{RawLto, RawOption, gather};
use crate::backend_flags::{Relocatable, architecture, translate};
use crate::clang::driver::changes;
use crate::link_line::{self, Argument, LinkLineError, last_value, options};
use crate::linker::options::{is, last, value};
use crate::options::Code;
use crate::words::Word;

/// Something that a link line asks for and that a link through a distributor does not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The option as it was written; `no -pie or -shared` for one that is not there.
    pub option: String,
    /// The effect of dropping it.
    pub effect: &'static str,
    /// The remedy for the user.
    pub remedy: Remedy,
}

/// A remedy for a link line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// lld is to pass these to every compilation.
    CompilerArguments(Vec<String>),
    /// lld is to pass these to the distributor.
    DistributorArguments(Vec<String>),
    /// Advice, where no option helps.
    Advice(&'static str),
}

impl Remedy {
    /// The options of lld that are to be added; none for an advice.
    pub fn lld_words(&self) -> Vec<String> {
        let with = |option: &str, values: &[String]| {
            values.iter().map(|value| format!("{option}={value}")).collect()
        };
        match self {
            Self::CompilerArguments(values) => with("--thinlto-remote-compiler-arg", values),
            Self::DistributorArguments(values) => with("--thinlto-distributor-arg", values),
            Self::Advice(_) => Vec::new(),
        }
    }

    /// The same in the spelling of a compiler driver that passes words on to lld.
    pub fn driver_words(&self) -> Vec<String> {
        let through = |word: String| match word.contains(',') {
            false => vec![format!("-Wl,{word}")],
            // A comma would part the word.
            true => vec!["-Xlinker".to_owned(), word],
        };
        self.lld_words().into_iter().flat_map(through).collect()
    }
}

/// One sentence for each warning, with the remedy in lld's own spelling.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.remedy.lld_words();
        self.write(f, &words)
    }
}

impl Dropped {
    /// The warning with the remedy in the spelling of a compiler driver.
    pub fn for_driver(&self) -> impl fmt::Display {
        struct Text<'a>(&'a Dropped);
        impl fmt::Display for Text<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, &self.0.remedy.driver_words())
            }
        }
        Text(self)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, words: &[String]) -> fmt::Result {
        write!(f, "{}: {}", self.option, self.effect)?;
        match &self.remedy {
            Remedy::Advice(advice) => write!(f, "; {advice}"),
            _ => write!(f, "; add {}", crate::words::shell_line(words.iter().map(String::as_str))),
        }
    }
}

const NOT_PASSED: &str = "lld does not tell the compiler";
const USE_LINK: &str = "`distlto link` does it";

/// Returns the options that lld drops with these words: those after the linker's own name, response files expanded.
pub fn of_words(words: &[Word]) -> Result<Vec<Dropped>, LinkLineError> {
    Ok(of_link_line(&link_line::parse(words.iter().cloned())?))
}

/// Returns the options that lld drops with these arguments, in their order. Omits options that a
/// `--thinlto-remote-compiler-arg` passes already.
pub fn of_link_line(arguments: &[Argument]) -> Vec<Dropped> {
    let architecture = architecture(arguments);
    let raw = gather(arguments);
    let given: Vec<&str> = options(arguments)
        .filter(|option| option.name == "thinlto-remote-compiler-arg")
        .filter_map(|option| option.value.as_deref())
        .collect();
    let mut found = Vec::new();
    found.extend(compiler_missing(arguments));
    found.extend(relocation_model(&raw, &given));
    found.extend(levels(&raw));
    found.extend(context_sensitive(&raw, architecture));
    for (at, option) in raw.options.iter().enumerate() {
        let mut later = raw.options[at + 1..].iter();
        let overridden = option.code == Code::Processor && later.any(|later| later.code == option.code);
        if !overridden {
            found.extend(code_option(option, architecture));
        }
    }
    found.retain(|dropped| match &dropped.remedy {
        Remedy::CompilerArguments(wanted) => !given.windows(wanted.len()).any(|words| words == wanted),
        _ => true,
    });
    found.extend(outputs(arguments));
    found.extend(cache(arguments, !given.is_empty() || found.iter().any(mended_by_arguments)));
    let mut unique: Vec<Dropped> = Vec::with_capacity(found.len());
    for dropped in found {
        if !unique.contains(&dropped) {
            unique.push(dropped);
        }
    }
    unique
}

fn mended_by_arguments(dropped: &Dropped) -> bool {
    matches!(dropped.remedy, Remedy::CompilerArguments(_))
}

fn advice(option: impl Into<String>, effect: &'static str, advice: &'static str) -> Dropped {
    Dropped { option: option.into(), effect, remedy: Remedy::Advice(advice) }
}

fn compiler_missing(arguments: &[Argument]) -> Option<Dropped> {
    let distributor = last_value(arguments, "thinlto-distributor").filter(|value| !value.is_empty())?;
    let compiler = last_value(arguments, "thinlto-remote-compiler").unwrap_or("");
    compiler.is_empty().then(|| {
        advice(
            format!("--thinlto-distributor={distributor}"),
            "lld is not told which compiler to run, and writes an empty name",
            "add --thinlto-remote-compiler=CLANG, or give clang -fthinlto-distributor= in place of the option",
        )
    })
}

/// lld says `-fpic` or nothing, and a clang that is built so makes position-independent code by default.
fn relocation_model(raw: &RawLto, given: &[&str]) -> Option<Dropped> {
    if given.iter().any(|word| changes(word.as_bytes(), Code::Position)) {
        return None;
    }
    if raw.relocatable {
        return Some(advice(
            "-r",
            "the compiler's default decides between position-independent code and other",
            "say what the objects were compiled with, --thinlto-remote-compiler-arg=-fno-pic or =-fPIC",
        ));
    }
    let model = raw.options.iter().rev().find_map(relocation_model_in);
    let fixed = match model {
        Some(model) => model == "static",
        None => !raw.shared && !raw.pie,
    };
    fixed.then(|| Dropped {
        option: model.map_or_else(
            || "no -pie or -shared".to_owned(),
            |model| format!("-mllvm -relocation-model={model}"),
        ),
        effect: "a clang that makes position-independent code by default does so here too",
        remedy: Remedy::CompilerArguments(vec!["-fno-pic".to_owned()]),
    })
}

fn relocation_model_in(option: &RawOption) -> Option<&str> {
    let llvm = (option.code == Code::Llvm).then(|| option.value.trim_start_matches('-'))?;
    llvm.strip_prefix("relocation-model=")
}

/// Returns a warning if lld would optimise and generate code at different levels: it passes only the first to the
/// compiler.
fn levels(raw: &RawLto) -> Option<Dropped> {
    let last = |code| raw.last(code).map(|option| (&option.written, option.value.parse::<u8>().ok()));
    let (level, codegen) = (last(Code::Level), last(Code::CodegenLevel));
    let opt = level.and_then(|(_, level)| level).unwrap_or(2);
    // Without an option lld generates code at level 2 or 3.
    let own = codegen.and_then(|(_, level)| level).unwrap_or(opt.max(2));
    let (written, _) = codegen.or(level)?;
    (own != opt).then(|| {
        advice(
            written,
            "clang generates code at the level of -O, lld's own LTO at another one",
            "give --lto-O and --lto-CGO one level, 2 or 3, or link without a distributor",
        )
    })
}

/// Whether it is generated or used, and from where, takes two options.
fn context_sensitive(raw: &RawLto, architecture: &str) -> Option<Dropped> {
    let ours = |option: &&RawOption| matches!(option.code, Code::CsGenerate | Code::CsProfile);
    let taken: Vec<_> = raw.options.iter().filter(ours).cloned().collect();
    let option = taken.iter().find(|option| option.code == Code::CsGenerate).or(taken.last())?;
    let generates = option.code == Code::CsGenerate;
    let option = option.written.clone();
    let effect = match generates {
        true => "the compiler is not told to instrument, so running the program leaves no profile",
        false => "the compiler is not given the profile",
    };
    let arguments = arguments_of(taken, architecture).unwrap_or_default();
    // `-fcs-profile-generate` gives the compiler the path that the driver passes to lld, so the remedy names it.
    let own = arguments.last().and_then(|path| path.strip_prefix("-fprofile-instrument-path="));
    let own = own.and_then(|path| path.strip_suffix("default_%m.profraw")).and_then(|directory| {
        match directory.strip_suffix('/') {
            Some(directory) => Some(format!("-fcs-profile-generate={directory}")),
            None => directory.is_empty().then(|| "-fcs-profile-generate".to_owned()),
        }
    });
    let arguments = own.map_or(arguments, |own| vec![own]);
    Some(Dropped { option, effect, remedy: Remedy::CompilerArguments(arguments) })
}

/// An option that changes code by itself.
fn code_option(option: &RawOption, architecture: &str) -> Option<Dropped> {
    let written = &option.written;
    match option.code {
        // lld passes these on, or they were looked at together with others.
        Code::Level
        | Code::CodegenLevel
        | Code::SampleProfile
        | Code::MismatchWarning(_)
        | Code::CsGenerate
        | Code::CsProfile
        | Code::BlockAddressMap(false)
        | Code::UniqueBlockNames(false)
        | Code::Report => None,
        // Drivers always pass these processors, and clang uses them by default.
        Code::Processor if ["x86-64", "generic"].contains(&option.value.as_str()) => None,
        Code::Llvm if relocation_model_in(option).is_some() => None,
        Code::SplitDebug => Some(advice(
            written,
            "debug information is not split; it stays in the objects, complete",
            USE_LINK,
        )),
        Code::Remarks => Some(advice(
            written,
            "no remarks are written for the modules",
            "link without a distributor for them",
        )),
        code => match arguments_of(vec![option.clone()], architecture) {
            Some(arguments) if arguments.is_empty() => None,
            Some(arguments) => Some(Dropped {
                option: written.clone(),
                effect: match code {
                    Code::Processor => {
                        "lld does not tell the compiler; functions that name no processor get the default"
                    }
                    _ => NOT_PASSED,
                },
                remedy: Remedy::CompilerArguments(arguments),
            }),
            None => Some(advice(
                written,
                NOT_PASSED,
                "clang has no spelling for it: remove it, or link without a distributor",
            )),
        },
    }
}

/// Returns the compiler's arguments for these options alone; `None` if the compiler has no spelling for them.
fn arguments_of(options: Vec<RawOption>, architecture: &str) -> Option<Vec<String>> {
    let line = |options| RawLto { options, pie: true, ..RawLto::default() };
    let base = translate(&line(Vec::new()), architecture, None, &[], Relocatable::HasToSay).ok()?.args;
    let with = translate(&line(options), architecture, None, &[], Relocatable::HasToSay).ok()?.args;
    // The arguments of every line stand around those of the options, each once.
    Some(with.into_iter().filter(|argument| !base.contains(argument)).collect())
}

/// Options that ask for other files, or for a number of jobs.
fn outputs(arguments: &[Argument]) -> Vec<Dropped> {
    let of_option = |option: &link_line::LinkOption| {
        let written = option.words.join(" ");
        if is(option, "lto-emit-asm") {
            Some(advice(
                written,
                "no assembly is written, the program is linked instead",
                "link without a distributor for it",
            ))
        } else if is(option, "lto-emit-llvm") {
            Some(advice(
                written,
                "the objects are compiled to native code all the same",
                "link without a distributor for bitcode",
            ))
        } else if is(option, "thinlto-jobs") {
            let jobs = value(option).filter(|jobs| jobs.bytes().all(|byte| byte.is_ascii_digit()))?;
            Some(Dropped {
                option: written,
                effect: "the distributor is not told how many jobs may run",
                remedy: Remedy::DistributorArguments(vec![format!("-j{jobs}")]),
            })
        } else {
            None
        }
    };
    options(arguments).filter_map(of_option).collect()
}

/// Returns a warning about lld's cache: its key covers the module and lld's own options, but not the compiler's
/// arguments.
fn cache(arguments: &[Argument], compiler_is_told: bool) -> Option<Dropped> {
    let option = last(arguments, "thinlto-cache-dir")?;
    compiler_is_told.then(|| {
        advice(
            option.words.join(" "),
            "objects are found in it whatever compiler and arguments made them",
            "empty it whenever the compiler or a --thinlto-remote-compiler-arg changes",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_commas_pass_a_driver() {
        let remedy = Remedy::CompilerArguments(vec!["-a".to_owned(), "-b,c".to_owned()]);
        let expected =
            ["-Wl,--thinlto-remote-compiler-arg=-a", "-Xlinker", "--thinlto-remote-compiler-arg=-b,c"];
        assert_eq!(remedy.driver_words(), expected);
    }
}
