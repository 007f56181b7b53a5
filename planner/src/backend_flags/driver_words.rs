//! Sorts the words of a compiler driver's link command by their effect on the code that LTO generates.
//!
//! Pure, and asks no driver: `clang::driver` lists the words that reach the linker's LTO. Reads words, not files.
//! `raw` interprets the linker's own words.

use crate::clang::driver::{changes, find};
use crate::options::{Code, LinkedKind, Value};
use crate::words::{Word, lossy};

/// A driver's link command, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverWords {
    /// Words for the linker from `-Wl,` and `-Xlinker`, with input files between, since a value may be one.
    pub linker: Vec<Word>,
    /// The last optimisation level as it was written: `-O3`, `-Os`.
    pub level: Option<Word>,
    /// Words that name a processor or an architecture: `-march=haswell`.
    pub processor: Vec<Word>,
    /// Words that a backend compilation takes as they are.
    pub kept: Vec<Word>,
    /// `-fPIC` and the like. They count where [`DriverWords::output`] is unknown.
    pub position: Vec<Word>,
    /// The kind of output, if the words determine it.
    pub output: Option<DriverOutput>,
}

/// The kind of output of a driver's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverOutput {
    /// A shared library.
    Shared,
    /// A position-independent program.
    Pie,
    /// A program with a fixed place.
    FixedPlace,
    /// Another relocatable object.
    Relocatable,
}

/// An option at the end of the words that lacks its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMissing {
    /// The option.
    pub option: String,
}

/// Sorts words; response files are expanded already. The program's name may be among them.
pub fn sort(words: impl IntoIterator<Item = Word>) -> Result<DriverWords, ValueMissing> {
    let mut sorted = DriverWords::default();
    let mut seen = Outputs::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(known) = find(&word) else {
            if !word.starts_with(b"-") || word == b"-" {
                sorted.linker.push(word);
            }
            continue;
        };
        // Without its value the link fails by itself; no code depends on it.
        let next = if known.takes_next { words.next() } else { None };
        let missing = || ValueMissing { option: lossy(&word) };
        match known.option.code {
            Code::OfLinker if known.takes_next => sorted.linker.push(next.ok_or_else(missing)?),
            Code::OfLinker if known.option.value == Value::Joined => {
                sorted.linker.extend(known.value.split(|&byte| byte == b',').map(<[u8]>::to_vec));
            }
            Code::OfLinker => sorted.linker.push(known.value.to_vec()),
            Code::Llvm if known.takes_next => {
                let value = next.ok_or_else(missing)?;
                sorted.kept.extend([word, value]);
            }
            Code::Linked(linked) => seen.note(linked),
            Code::Level if is_level(known.value) => sorted.level = Some(word),
            Code::Processor => sorted.processor.push(word),
            Code::Position => sorted.position.push(word),
            Code::Kept | Code::Llvm => sorted.kept.extend([word].into_iter().chain(next)),
            _ => {}
        }
    }
    sorted.output = seen.output();
    Ok(sorted)
}

/// Whether a compilation of bitcode to an object takes an option that compilations of sources take.
pub fn is_for_bitcode(word: &[u8]) -> bool {
    !changes(word, Code::OfSources)
}

/// Returns whether `level` can follow `-O` as a level; other words are `-ObjC` and the like.
fn is_level(level: &[u8]) -> bool {
    matches!(level, b"" | b"s" | b"z" | b"g" | b"fast") || level.iter().all(u8::is_ascii_digit)
}

/// Words that determine the kind of output.
#[derive(Default)]
struct Outputs {
    shared: bool,
    relocatable: bool,
    fixed: bool,
    static_pie: bool,
    pie: Option<bool>,
}

impl Outputs {
    fn note(&mut self, linked: LinkedKind) {
        match linked {
            LinkedKind::Shared => self.shared = true,
            LinkedKind::Relocatable => self.relocatable = true,
            LinkedKind::Static { pie: false } => self.fixed = true,
            LinkedKind::Static { pie: true } => self.static_pie = true,
            LinkedKind::Pie(pie) => self.pie = Some(pie),
        }
    }

    /// In the order of precedence that clang's driver has; of `-pie` and `-no-pie` the last one counts.
    fn output(&self) -> Option<DriverOutput> {
        if self.relocatable {
            Some(DriverOutput::Relocatable)
        } else if self.shared {
            Some(DriverOutput::Shared)
        } else if self.static_pie {
            Some(DriverOutput::Pie)
        } else if self.fixed {
            Some(DriverOutput::FixedPlace)
        } else {
            self.pie.map(|pie| if pie { DriverOutput::Pie } else { DriverOutput::FixedPlace })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(line: &str) -> DriverWords {
        sort(line.split_whitespace().map(|word| word.as_bytes().to_vec())).expect("whole options")
    }

    fn line(words: &[Word]) -> String {
        words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_linked_is_decided_as_clang_does() {
        // As `clang-22 -###` chose the linker's options.
        for (command, output) in [
            ("-static -pie", Some(DriverOutput::FixedPlace)),
            ("-shared -static", Some(DriverOutput::Shared)),
            ("-static-pie -static -no-pie", Some(DriverOutput::Pie)),
            ("-no-pie -pie", Some(DriverOutput::Pie)),
            ("-pie -no-pie", Some(DriverOutput::FixedPlace)),
            ("-shared -pie", Some(DriverOutput::Shared)),
            ("-r -pie", Some(DriverOutput::Relocatable)),
            ("-nopie", None),
            ("-fPIC", None),
        ] {
            assert_eq!(sorted(command).output, output, "{command}");
        }
    }

    #[test]
    fn the_rest_is_kept_or_belongs_to_others() {
        for (command, kept) in [
            ("-flto=thin -flto-jobs=4 -fuse-ld=lld --ld-path=ld.lld -rdynamic -pthread -s -g3 -Wall", ""),
            ("-fwhole-program-vtables -fsanitize=cfi -fno-sanitize-trap=cfi -fsplit-lto-unit", ""),
            (
                "-fprofile-sample-use=a.prof -fno-plt -femulated-tls",
                "-fprofile-sample-use=a.prof -fno-plt -femulated-tls",
            ),
            ("-mavx2 -m32 -mcmodel=large -mabi=lp64d -mtune=znver3", "-mabi=lp64d -mtune=znver3"),
            ("-framework Foundation -ObjC -Objfoo", ""),
            ("-mllvm -x -glldb", "-mllvm -x -glldb"),
        ] {
            assert_eq!(line(&sorted(command).kept), kept, "{command}");
        }
        let named = sorted("-march=haswell -mcpu=a -O2 -Ofast -fPIC -fno-pie");
        assert_eq!(line(&named.processor), "-march=haswell -mcpu=a");
        assert_eq!(named.level.as_deref(), Some(&b"-Ofast"[..]));
        assert_eq!(line(&named.position), "-fPIC -fno-pie");
    }
}
