//! The flavours of lld beside ELF's: Mach-O (`ld64.lld`), WebAssembly (`wasm-ld`), and those for Windows.
//!
//! The first two can be made to ask. COFF's linker calls a distributor (DTLTO), and so does MinGW's, which hands its link to COFF's.
//! A flavour's `--help` lists its options with their values ([`Help`]), so this module names only those with an effect
//! on a link's code, by ELF's name for them. All other options keep a name that ELF's table does not have. The effects
//! follow `createConfig` in `lld/MachO/LTO.cpp` and `lld/wasm/LTO.cpp`. Pure.

use serde::{Deserialize, Serialize};

use super::coff;
use super::help::Help;
use super::options::{last, value};
use crate::backend_flags::raw::gather;
use crate::backend_flags::{BackendFlags, FlagError, linker_flags::LinkerFlags, opt_level};
use crate::backend_flags::{Relocatable, translate};
use crate::link_line::{Argument, LinkLine, LinkLineError, LinkOption, options};
use crate::words::Word;

/// A flavour beside ELF's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavour {
    /// Mach-O.
    MachO,
    /// WebAssembly.
    Wasm,
    /// COFF.
    Coff,
    /// COFF with the command line of GNU's linker. Its line is the one that it would give to COFF's linker (`-###`).
    MinGw,
}

/// Options that ELF's linker has under the same name.
const SHARED: [&str; 9] = [
    "thinlto-jobs",
    "thinlto-index-only",
    "thinlto-emit-index-files",
    "thinlto-emit-imports-files",
    "save-temps",
    "lto-emit-llvm",
    "lto-emit-asm",
    "lto-debug-pass-manager",
    "reproduce",
];
/// Those that ask leave `PipelineTuningOptions` at its defaults: at each level, loops are vectorised and unrolled, and
/// straight-line code is not vectorised.
const TUNING: [&str; 3] = ["-fvectorize", "-funroll-loops", "-fno-slp-vectorize"];
/// The oldest version of ld64.lld that is known to name members with parentheses.
const OLDEST_MACHO: u32 = 19;
/// Keeps the compiler's command line out of CodeView.
const NO_COMMAND_LINE: &str = "-gno-codeview-command-line";
/// Those with a number at their end.
const LEVELS: [&str; 2] = ["lto-O", "lto-CGO"];

impl Flavour {
    /// Returns the flavour of a linker with this help; `None` for all others.
    pub fn of_help(help: &Help) -> Option<Self> {
        match () {
            () if help.has("platform_version") => Some(Self::MachO),
            () if help.has("import-table") => Some(Self::Wasm),
            () if help.has("thinlto-distributor") => Some(Self::Coff),
            () => None,
        }
    }

    /// Whether the linker does not ask, but calls a distributor for its objects.
    pub fn is_distributed(self) -> bool {
        matches!(self, Self::Coff | Self::MinGw)
    }

    /// How this linker takes an option that it shares with ELF's.
    pub fn spelled(self, name: &str, value: &[u8]) -> Word {
        let option = match self {
            Self::MachO | Self::Wasm => format!("--{name}="),
            Self::Coff => format!("/{name}:"),
            Self::MinGw => format!("-Xlink=/{name}:"),
        };
        [option.as_bytes(), value].concat()
    }

    /// Whether a linker of this version names members of archives so that they can be found. ld64.lld 16 runs archive,
    /// member and place together.
    pub fn names_members(self, version: &str) -> bool {
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
        self != Self::MachO || numbers.next().is_some_and(|major: u32| major >= OLDEST_MACHO)
    }

    /// The option that prints all options, also those that the plain help leaves out.
    pub fn whole_help(self) -> &'static str {
        match self {
            Self::MachO => "--help-hidden",
            Self::Wasm | Self::Coff | Self::MinGw => "-help",
        }
    }

    /// The linker's own name of an option, and ELF's name of one with the same effect.
    fn counterparts(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::MachO => &[
                ("o", "output"),
                ("r", "relocatable"),
                ("arch", "emulation"),
                ("mllvm", "mllvm"),
                ("mcpu", "plugin-opt=mcpu"),
                ("cache_path_lto", "thinlto-cache-dir"),
                ("lto-newpm-passes", "lto-newpm-passes"),
                ("disable_verify", "disable-verify"),
            ],
            Self::Wasm => &[
                ("o", "output"),
                ("r", "relocatable"),
                ("relocatable", "relocatable"),
                ("m", "emulation"),
                ("mllvm", "mllvm"),
                ("shared", "shared"),
                ("pie", "pie"),
                ("no-pie", "no-pie"),
                ("thinlto-cache-dir", "thinlto-cache-dir"),
                ("lto-newpm-passes", "lto-newpm-passes"),
                ("disable-verify", "disable-verify"),
                ("lto-obj-path", "lto-obj-path"),
            ],
            Self::Coff | Self::MinGw => &[],
        }
    }

    /// Reads a link line; response files are expanded already.
    pub fn read(self, words: Vec<Word>, help: &Help) -> Result<LinkLine, LinkLineError> {
        if self.is_distributed() {
            let arguments = coff::arguments(&words, help)?;
            return Ok(LinkLine::of(words, arguments));
        }
        let mut arguments = help.arguments(&words)?;
        for argument in &mut arguments {
            if let Argument::Option(option) = argument {
                self.rename(option);
            }
        }
        Ok(LinkLine::of(words, arguments))
    }

    /// Gives an option ELF's name, or one that ELF's table does not have.
    fn rename(self, option: &mut LinkOption) {
        let known = self.counterparts().iter().find(|(own, _)| *own == option.name);
        option.name = match (known, option.value.take()) {
            (Some((_, "plugin-opt=mcpu")), Some(value)) => format!("plugin-opt=mcpu={value}"),
            (Some((_, name)), value) => {
                option.value = value;
                (*name).to_owned()
            }
            // A level is a part of its option's name there.
            (None, Some(level)) if LEVELS.contains(&&*option.name) => format!("{}{level}", option.name),
            (None, value) => {
                option.value = value;
                match SHARED.contains(&&*option.name) {
                    true => return,
                    false => format!("-{}", option.name),
                }
            }
        };
    }

    /// The words that make the linker look for objects in this folder, which is its cache.
    pub fn cache_words(self, folder: &str) -> Vec<Word> {
        match self {
            Self::MachO => vec![b"-cache_path_lto".to_vec(), folder.as_bytes().to_vec()],
            Self::Wasm => vec![format!("--thinlto-cache-dir={folder}").into_bytes()],
            Self::Coff | Self::MinGw => Vec::new(),
        }
    }

    /// The word that makes the linker write its symbol resolution; that of Mach-O also writes all temporaries.
    /// WebAssembly's backends do not depend on it.
    pub fn resolving(self) -> Option<&'static [u8]> {
        match self {
            Self::MachO => Some(b"-save-temps"),
            Self::Wasm => None,
            Self::Coff => Some(b"/lldsavetemps:resolution"),
            Self::MinGw => Some(b"-Xlink=/lldsavetemps:resolution"),
        }
    }

    /// The beginning that the format gives to the name of each symbol.
    pub fn symbol_prefix(self) -> &'static str {
        match self {
            Self::MachO => "_",
            Self::Wasm | Self::Coff | Self::MinGw => "",
        }
    }

    /// Translates the LTO options of a link line; `extra` are arguments that the user adds.
    pub fn backend_flags(self, arguments: &[Argument], extra: &[String]) -> Result<BackendFlags, FlagError> {
        let mut raw = gather(arguments);
        let mut args = vec![format!("-O{}", opt_level(&raw)?)];
        args.extend(TUNING.map(str::to_owned));
        let mut relocatable = Relocatable::HasToSay;
        match self {
            Self::MachO => {
                // LTO's own default, whatever is linked.
                raw.relocatable = false;
                raw.pie = true;
                let folds_safely = last_is(arguments, "-icf", "safe");
                args.push(if folds_safely { "-faddrsig" } else { "-fno-addrsig" }.to_owned());
            }
            Self::Wasm => {
                raw.pie |= last_is(arguments, "-unresolved-symbols", "import-dynamic");
                args.extend(["-fno-addrsig", "-ffunction-sections", "-fdata-sections"].map(str::to_owned));
            }
            Self::Coff | Self::MinGw => {
                // The linker itself gives its distributor the flags of every line. The linker's own objects have neither a
                // time nor the compiler's command line.
                let plain = ["-mno-incremental-linker-compatible", "-Xclang", NO_COMMAND_LINE];
                args = plain.map(str::to_owned).into();
                // The compiler's default is the linker's: independent of the place, but for 32 bits of x86.
                raw.relocatable = true;
                relocatable = Relocatable::UpToCompiler;
            }
        }
        let said = LinkerFlags { args, inputs: Vec::new() };
        translate(&raw, self.architecture(arguments), Some(&said), extra, relocatable)
    }

    /// The architecture whose slice of a universal file the linker takes, where the format has such files.
    pub fn slice(self, arguments: &[Argument]) -> Option<&str> {
        (self == Self::MachO).then(|| self.architecture(arguments))
    }

    fn architecture(self, arguments: &[Argument]) -> &str {
        let named = last(arguments, "emulation").and_then(value);
        match self {
            Self::MachO => named.unwrap_or("arm64"),
            Self::Wasm => named.unwrap_or("wasm32"),
            Self::Coff | Self::MinGw => match named.map(str::to_ascii_lowercase).as_deref() {
                Some("x64") => "x86_64",
                Some("x86") => "i386",
                Some("arm") => "arm",
                Some(machine) if machine.starts_with("arm64") => "aarch64",
                // Without the option the objects decide.
                _ => "",
            },
        }
    }
}

fn last_is(arguments: &[Argument], name: &str, expected: &str) -> bool {
    let named = options(arguments).rev().find(|option| option.name == name);
    named.is_some_and(|option| option.value.as_deref() == Some(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHO: &str = "  -o <path>  Output\n  -platform_version <a> <b> <c>\n  -mllvm <value>\n  --icf=[none,safe]\n  \
        -arch <name>\n  --lto-O<level>\n  -mcpu <value>\n  -map <path>\n  -save-temps  Save\n  -l<name>\n";

    fn read(line: &str) -> LinkLine {
        let words = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        Flavour::MachO.read(words, &Help::read(MACHO)).expect("a line")
    }

    fn args(line: &str) -> String {
        Flavour::MachO.backend_flags(read(line).arguments(), &[]).expect("flags").args.join(" ")
    }

    #[test]
    fn old_linkers_for_macho_are_left_alone() {
        for (version, names) in
            [("Debian LLD 22.1.8", true), ("LLD 19.1.7", true), ("LLD 16.0.6", false), ("LLD", false)]
        {
            assert_eq!(Flavour::MachO.names_members(version), names, "{version}");
        }
        assert!(Flavour::Wasm.names_members("LLD 16.0.6"));
    }

    #[test]
    fn options_that_change_code_are_translated() {
        assert!(args("--icf=safe a.o").contains("-faddrsig"));
        assert!(args("-mcpu apple-m1 a.o").contains("-mcpu=apple-m1"));
        assert!(args("-dylib -r a.o").contains("-fpic"));
        let saves = Flavour::MachO.backend_flags(read("-save-temps a.o").arguments(), &[]).expect("flags");
        assert_eq!(saves.not_done, ["-save-temps"]);
        let maps = Flavour::MachO.backend_flags(read("-map m a.o").arguments(), &[]).expect("flags");
        assert_eq!(maps.not_done, [""; 0]);
    }
}
