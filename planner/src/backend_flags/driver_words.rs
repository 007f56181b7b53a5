//! The words of a compiler driver's link command, sorted by what they mean for the code that LTO generates.
//!
//! Pure, and asks no driver: which words reach the linker's LTO was established by `clang -###` of LLVM 14 to 22
//! (`addLTOOptions` in clang's `CommonArgs.cpp`). Reads words, not files. What the linker's own words mean is in `raw`.

use crate::words::Word;

/// A driver's link command, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverWords {
    /// What the linker is given through `-Wl,` and `-Xlinker`, with input files between, since a value may be one.
    pub linker: Vec<Word>,
    /// The last optimisation level as it was written: `-O3`, `-Os`.
    pub level: Option<Word>,
    /// Words that name a processor or an architecture: `-march=haswell`.
    pub processor: Vec<Word>,
    /// Words that a backend compilation takes as they are.
    pub kept: Vec<Word>,
    /// `-fPIC` and the like. They count where [`DriverWords::output`] does not say what is linked.
    pub position: Vec<Word>,
    /// What is linked, where the words say it.
    pub output: Option<Output>,
}

/// What a driver links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A shared library.
    Shared,
    /// A position-independent program.
    Pie,
    /// A program with a fixed place.
    FixedPlace,
    /// Another relocatable object.
    Relocatable,
}

/// Options whose value is the next word.
const VALUED: &[&str] = &[
    "--config",
    "--param",
    "--sysroot",
    "--target",
    "-A",
    "-B",
    "-D",
    "-F",
    "-I",
    "-L",
    "-MF",
    "-MQ",
    "-MT",
    "-T",
    "-U",
    "-Xanalyzer",
    "-Xassembler",
    "-Xclang",
    "-Xcuda-ptxas",
    "-Xopenmp-target",
    "-Xpreprocessor",
    "-arch",
    "-e",
    "-framework",
    "-gcc-toolchain",
    "-idirafter",
    "-imacros",
    "-include",
    "-include-pch",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-isystem-after",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-l",
    "-o",
    "-resource-dir",
    "-specs",
    "-target",
    "-u",
    "-x",
    "-z",
];

/// `-f` words that a compilation of bitcode rejects, or that would make it write something else.
///
/// The thin link has done the work of those about LTO, vtables and CFI, and wrote the outcome into the shards;
/// sanitizers and coverage have instrumented the bitcode.
const NOT_FOR_BITCODE: &[&str] = &[
    "-fcoverage-mapping",
    "-fdriver-only",
    "-fembed-bitcode",
    "-ffat-lto-objects",
    "-flto",
    "-fno-coverage-mapping",
    "-fno-fat-lto-objects",
    "-fno-integrated-as",
    "-fno-lto",
    "-fno-sanitize",
    "-fno-split-lto-unit",
    "-fno-unified-lto",
    "-fno-virtual-function-elimination",
    "-fno-whole-program-vtables",
    "-foptimization-record",
    "-fplugin",
    "-fproc-stat-report",
    "-fsanitize",
    "-fsave-optimization-record",
    "-fsplit-lto-unit",
    "-fsyntax-only",
    "-fthin-link-bitcode=",
    "-fthinlto-",
    "-ftime-trace",
    "-funified-lto",
    "-fuse-ld=",
    "-fvirtual-function-elimination",
    "-fwhole-program-vtables",
];

/// Words that are not `-f` and that a backend is given: those that the driver turns into LTO options, and those by
/// which compiling and linking must agree on the ABI. Others of `-m`, such as `-mavx2`, are for functions of the
/// bitcode to say.
const KEPT: &[&str] = &[
    "-gdbx",
    "-gdwarf-aranges",
    "-ggdb",
    "-glldb",
    "-gsce",
    "-mabi=",
    "-mfloat-abi=",
    "-mfpu=",
    "-mhard-float",
    "-mno-outline",
    "-moutline",
    "-msoft-float",
    "-mtls-size=",
    "-mtune=",
];

const POSITION: &[&str] =
    &["-fPIC", "-fPIE", "-fno-PIC", "-fno-PIE", "-fno-pic", "-fno-pie", "-fpic", "-fpie"];

/// An option at the end of the words that lacks its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMissing {
    /// The option.
    pub option: &'static str,
}

/// Sorts words; response files are expanded already. The program's name may be among them.
pub fn sort(words: impl IntoIterator<Item = Word>) -> Result<DriverWords, ValueMissing> {
    let mut sorted = DriverWords::default();
    let mut seen = Outputs::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.as_slice();
        if let Some(joined) = text.strip_prefix(b"-Wl,") {
            sorted.linker.extend(joined.split(|&byte| byte == b',').map(<[u8]>::to_vec));
        } else if text == b"-Xlinker" {
            sorted.linker.push(words.next().ok_or(ValueMissing { option: "-Xlinker" })?);
        } else if text == b"-mllvm" {
            let value = words.next().ok_or(ValueMissing { option: "-mllvm" })?;
            sorted.kept.extend([word, value]);
        } else if !text.starts_with(b"-") || text == b"-" {
            sorted.linker.push(word);
        } else if is_one_of(VALUED, text) || text.starts_with(b"-Xarch_") {
            // Without its value the link fails by itself; no code depends on it.
            words.next();
        } else if seen.note(text) {
        } else if is_level(text) {
            sorted.level = Some(word);
        } else if text.starts_with(b"-march=") || text.starts_with(b"-mcpu=") {
            sorted.processor.push(word);
        } else if is_one_of(POSITION, text) {
            sorted.position.push(word);
        } else if is_kept(text) {
            sorted.kept.push(word);
        }
    }
    sorted.output = seen.output();
    Ok(sorted)
}

fn is_one_of(names: &[&str], word: &[u8]) -> bool {
    names.iter().any(|name| name.as_bytes() == word)
}

fn begins_as(names: &[&str], word: &[u8]) -> bool {
    names.iter().any(|name| word.starts_with(name.as_bytes()))
}

/// Whether a compilation of bitcode to an object takes an option that compilations of sources take.
pub fn is_for_bitcode(word: &[u8]) -> bool {
    !begins_as(NOT_FOR_BITCODE, word)
}

fn is_kept(word: &[u8]) -> bool {
    let of_mllvm = word.starts_with(b"-mllvm=");
    let feature = word.starts_with(b"-f") && is_for_bitcode(word);
    of_mllvm || feature || begins_as(KEPT, word)
}

/// `-O`, `-O2`, `-Os`, `-Ofast`; but not `-ObjC`.
fn is_level(word: &[u8]) -> bool {
    let Some(level) = word.strip_prefix(b"-O") else { return false };
    matches!(level, b"" | b"s" | b"z" | b"g" | b"fast") || level.iter().all(u8::is_ascii_digit)
}

/// Words that say what is linked.
#[derive(Default)]
struct Outputs {
    shared: bool,
    relocatable: bool,
    fixed: bool,
    static_pie: bool,
    pie: Option<bool>,
}

impl Outputs {
    fn note(&mut self, word: &[u8]) -> bool {
        match word {
            b"-shared" | b"--shared" => self.shared = true,
            b"-r" | b"--relocatable" => self.relocatable = true,
            b"-static" | b"--static" => self.fixed = true,
            b"-static-pie" | b"--static-pie" => self.static_pie = true,
            b"-pie" | b"--pie" => self.pie = Some(true),
            b"-no-pie" | b"--no-pie" => self.pie = Some(false),
            _ => return false,
        }
        true
    }

    /// In the order of precedence that clang's driver has; of `-pie` and `-no-pie` the last one counts.
    fn output(&self) -> Option<Output> {
        if self.relocatable {
            Some(Output::Relocatable)
        } else if self.shared {
            Some(Output::Shared)
        } else if self.static_pie {
            Some(Output::Pie)
        } else if self.fixed {
            Some(Output::FixedPlace)
        } else {
            self.pie.map(|pie| if pie { Output::Pie } else { Output::FixedPlace })
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
    fn words_for_the_linker_keep_their_order() {
        for (command, linker) in [
            ("-Wl,-a,b -Xlinker -mllvm -Xlinker -x", "-a b -mllvm -x"),
            ("shim.py clang++ -Wl,-rpath dir/of.so -Wl,-z,now", "shim.py clang++ -rpath dir/of.so -z now"),
            ("-o -Wl,x -z -Wl,y -T -shared -Xclang -O3 -Lx -lx", ""),
        ] {
            assert_eq!(line(&sorted(command).linker), linker, "{command}");
        }
        assert_eq!(sort([b"-Xlinker".to_vec()]), Err(ValueMissing { option: "-Xlinker" }));
        assert_eq!(sort([b"-mllvm".to_vec()]), Err(ValueMissing { option: "-mllvm" }));
    }

    #[test]
    fn what_is_linked_is_decided_as_clang_does() {
        // As `clang-22 -###` chose the linker's options.
        for (command, output) in [
            ("-static -pie", Some(Output::FixedPlace)),
            ("-shared -static", Some(Output::Shared)),
            ("-static-pie -static -no-pie", Some(Output::Pie)),
            ("-no-pie -pie", Some(Output::Pie)),
            ("-pie -no-pie", Some(Output::FixedPlace)),
            ("-shared -pie", Some(Output::Shared)),
            ("-r -pie", Some(Output::Relocatable)),
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
