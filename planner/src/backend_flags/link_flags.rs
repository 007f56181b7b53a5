//! Backend flags from a link command in a driver's spelling, without asking the driver.
//!
//! For build systems that hand every backend the flags of the link. `driver_words` sorts the words; the linker's own
//! words are translated as those of any link line. Unlike [`super::of_link_line`], this module does not know the
//! driver's defaults. It leaves them to the compiler, which is the same program.

use miette::Diagnostic;
use thiserror::Error;

use super::driver_words::{self, DriverOutput, ValueMissing};
use super::raw::{self, RawLto, RawOption};
use super::{BackendFlags, FlagError, OutputKind, UNUSED};
use crate::invocation::{ProgramKind, program};
use crate::link_line::{self, LinkLineError};
use crate::options::Code;
use crate::words::{Word, lossy};

const IN_A_BUILD_FILE: &str =
    "remove the option from the flags of the link, or link without distributed ThinLTO";

/// Why link flags have no backend flags.
#[derive(Debug, Error, Diagnostic)]
pub enum LinkFlagError {
    /// An option at the end of the flags lacks its value.
    #[error("the link flags end after {option}, which takes a value")]
    #[diagnostic(code(distlto::usage), help("add the value, or remove the option"))]
    ValueMissing {
        /// The option.
        option: String,
    },
    /// A flag that the compiler would be given is not UTF-8.
    #[error("the link flag {flag:?} is not UTF-8")]
    #[diagnostic(code(distlto::usage), help("give the file or directory in it another name"))]
    NotUtf8 {
        /// The flag, with other bytes as U+FFFD.
        flag: String,
    },
    /// The words for the linker cannot be read.
    #[error("{0}")]
    #[diagnostic(code(distlto::usage), help("correct the link flags"))]
    LinkLine(#[from] LinkLineError),
    /// A link option has no equivalent, or a wrong value.
    #[error("{source}")]
    #[diagnostic(code(distlto::untranslatable), help("{IN_A_BUILD_FILE}"))]
    Untranslatable {
        /// The error in it.
        source: FlagError,
    },
    /// An option with a value that ld.lld does not take.
    #[error("{source}")]
    #[diagnostic(code(distlto::usage), help("correct the link flags"))]
    BadValue {
        /// The error in it.
        source: FlagError,
    },
}

/// The backend flags of a link command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkFlags {
    /// Arguments for a compilation of one of the link's modules, and the files that they name.
    pub backend: BackendFlags,
    /// Arguments that name the processor. They are for functions with no processor in their bitcode; see `processor`.
    pub processor: Vec<String>,
}

/// Translates a link command, of a driver or of ld.lld. Response files are expanded already. `architecture` is the
/// first part of the target triple.
///
/// The command begins with the program, or with the first flag. Words that say nothing of code are passed over.
pub fn of_command(words: Vec<Word>, architecture: &str) -> Result<LinkFlags, LinkFlagError> {
    let of_linker = words.first().is_some_and(|first| program(&lossy(first), None) == ProgramKind::Lld);
    let sorted = match of_linker {
        true => driver_words::DriverWords { linker: words, ..driver_words::DriverWords::default() },
        false => driver_words::sort(words)?,
    };
    let mut raw = raw::gather(&link_line::parse(sorted.linker)?);
    if let Some(level) = &sorted.level {
        // Before the linker's own words, where clang puts it: `-Wl,--lto-O1` wins over `-O3`.
        raw.options.insert(0, level_option(&utf8(level)?));
    }
    let linked = linked(sorted.output, &raw, of_linker);
    let said = strings(&sorted.position)?;
    let mut gathered = super::gather_arguments(&raw)?;
    let position = super::position(linked, gathered.relocation_model.as_deref(), &said)?;
    let mut args = vec![format!("-O{}", gathered.level)];
    args.extend(["-ffunction-sections", "-fdata-sections"].map(str::to_owned));
    match position {
        Some(independent) => args.push(if independent { "-fPIC" } else { "-fno-pic" }.to_owned()),
        None => args.extend(said),
    }
    args.extend(strings(&sorted.kept)?);
    args.extend(gathered.words.into_iter().flatten());
    args.append(&mut gathered.last);
    args.push(UNUSED.to_owned());
    let processor = match gathered.cpu {
        Some(cpu) => super::cpu_arguments(architecture, &cpu),
        None => strings(&sorted.processor)?,
    };
    Ok(LinkFlags { backend: BackendFlags { args, ..gathered.flags }, processor })
}

fn linked(output: Option<DriverOutput>, raw: &RawLto, of_linker: bool) -> OutputKind {
    match output {
        Some(DriverOutput::Shared | DriverOutput::Pie) => OutputKind::Independent,
        Some(DriverOutput::FixedPlace) => OutputKind::FixedPlace,
        Some(DriverOutput::Relocatable) => OutputKind::Relocatable,
        None if raw.relocatable => OutputKind::Relocatable,
        None if raw.shared || raw.pie => OutputKind::Independent,
        None if of_linker => OutputKind::FixedPlace,
        None => OutputKind::Unsaid,
    }
}

/// A driver's level as the option that it gives the linker.
fn level_option(written: &str) -> RawOption {
    let level = match &written[2..] {
        "" | "g" => "1",
        "s" | "z" => "2",
        level @ ("0" | "1" | "2" | "3") => level,
        _ => "3",
    };
    RawOption { code: Code::Level, value: level.to_owned(), written: written.to_owned() }
}

fn strings(words: &[Word]) -> Result<Vec<String>, LinkFlagError> {
    words.iter().map(|word| utf8(word)).collect()
}

fn utf8(word: &[u8]) -> Result<String, LinkFlagError> {
    String::from_utf8(word.to_vec()).map_err(|_| LinkFlagError::NotUtf8 { flag: lossy(word) })
}

impl From<ValueMissing> for LinkFlagError {
    fn from(missing: ValueMissing) -> Self {
        Self::ValueMissing { option: missing.option }
    }
}

impl From<FlagError> for LinkFlagError {
    fn from(source: FlagError) -> Self {
        match source {
            FlagError::BadValue { .. } => Self::BadValue { source },
            FlagError::Untranslatable { .. } | FlagError::RelocationModelUnknown => {
                Self::Untranslatable { source }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: &str = "-ffunction-sections -fdata-sections";

    fn flags(line: &str) -> Result<LinkFlags, LinkFlagError> {
        of_command(line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect(), "x86_64")
    }

    /// Arguments between the base ones and the last.
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let flags = flags(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let args = flags.backend.args.join(" ");
        let (level, rest) = args.split_once(' ').expect("a level first");
        let rest =
            rest.strip_prefix(BASE).and_then(|rest| rest.strip_suffix("-Wno-unused-command-line-argument"));
        let rest = rest.unwrap_or_else(|| panic!("{line}: {args}"));
        assert_eq!(format!("{level} {}", rest.trim()).trim_end(), expected, "{line}");
    }

    #[test]
    fn what_a_link_line_says_of_code() {
        for (line, expected) in [
            ("-O3", "-O3"),
            ("-O0 -O1", "-O1"),
            ("-O", "-O1"),
            ("-Og", "-O1"),
            ("-Os", "-O2"),
            ("-Ofast", "-O3"),
            ("--lto-O3", "-O2"),
            ("-Xlinker -plugin-opt=O0", "-O0"),
            ("-Wl,--lto-O1 -O3", "-O1"),
            ("-Wl,-O1", "-O2"),
            ("ld.lld --lto-O3 a.o", "-O3 -fno-pic"),
            ("-Wl,-mllvm -Wl,-x=3", "-O2 -mllvm -x=3"),
            ("-Wl,-mllvm=-x=3", "-O2 -mllvm -x=3"),
            ("-Xlinker -mllvm -Wl,-x=3", "-O2 -mllvm -x=3"),
            ("-mllvm -x=3", "-O2 -mllvm -x=3"),
            ("-fprofile-sample-use=p -Wl,-mllvm,-emulated-tls", "-O2 -fprofile-sample-use=p -femulated-tls"),
            ("-shared -fno-pic", "-O2 -fPIC"),
            ("-no-pie -fPIC", "-O2 -fno-pic"),
            ("-static-pie", "-O2 -fPIC"),
            ("-Wl,-pie", "-O2 -fPIC"),
            ("-r -fPIC", "-O2 -fPIC"),
            ("-shared -Wl,-mllvm,-relocation-model=static", "-O2 -fno-pic"),
        ] {
            check(line, expected);
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_level_or_an_error(words in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec!["-Wl,", "-Xlinker", "-mllvm", "-O", "-plugin-opt", "-Wl,-plugin-opt,", "-f"])
                    .prop_map(|word| word.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..8),
            ], 0..8))
        {
            if let Ok(flags) = of_command(words, "x86_64") {
                prop_assert!(flags.backend.args[0].starts_with("-O"));
            }
        }
    }
}
