//! The `-mllvm` options that only a linker registers, in a compiler's spelling.
//!
//! ld.lld registers LLVM's code generation flags (`llvm/lib/CodeGen/CommandFlags.cpp`), clang does not: there the same
//! settings are driver or `-cc1` options. Clang registers those of the assembler's library
//! (`llvm/lib/MC/MCTargetOptionsCommandFlags.cpp`), but uses its own options all the same. Every other `-mllvm` option
//! is the same on both sides; a test asks both.

/// The translation of one `-mllvm` option of a link line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Codegen {
    /// These compiler arguments say the same.
    Arguments(Vec<String>),
    /// The processor to generate code for.
    Cpu(String),
    /// The relocation model; replaces the one that the kind of output implies.
    RelocationModel(String),
    /// ld.lld sets this itself, regardless of the option.
    Overridden,
    /// A code generation flag that a compiler cannot be given.
    Untranslatable,
    /// Asks for a report on the work and cost of backends, which belongs to the one process that runs them all.
    Report,
    /// Not a code generation flag: passed on as it is.
    Llvm,
}

/// Flags of CommandFlags.cpp, and of the assembler's library, without a clang spelling that reaches a ThinLTO backend.
const UNTRANSLATABLE: &[&str] = &[
    "align-loops",
    "asm-show-inst",
    "debug-entry-values",
    "denormal-fp-math",
    "denormal-fp-math-f32",
    "disable-tail-calls",
    "dwarf-directory",
    "dwarf-version",
    "dwarf64",
    "emit-call-site-info",
    "emit-compact-unwind-non-canonical",
    "emit-dwarf-unwind",
    "enable-approx-func-fp-math",
    "enable-debug-entry-values",
    "enable-jmc-instrument",
    "enable-no-infs-fp-math",
    "enable-no-nans-fp-math",
    "enable-no-signed-zeros-fp-math",
    "enable-no-trapping-fp-math",
    "enable-sign-dependent-rounding-fp-math",
    "enable-unsafe-fp-math",
    "exception-model",
    "fdpic",
    "filetype",
    "gsframe",
    "ignore-xcoff-visibility",
    "implicit-mapsyms",
    "incremental-linker-compatible",
    "load",
    "lower-global-dtors-via-cxa-atexit",
    "march",
    "meabi",
    "mxcoff-roptr",
    "no-integrated-as",
    "no-xray-index",
    "nozero-initialized-in-bss",
    "stack-alignment",
    "stack-symbol-ordering",
    "stackrealign",
    "swift-async-fp",
    "tailcallopt",
    "target-abi",
    "thinlto-assume-merged",
    "thread-model",
    "trap-func",
    "unique-bb-section-names",
    "use-ctors",
    "vec-extabi",
    "x86-sse2avx",
    "xcoff-traceback-table",
    "xray-function-index",
];

/// Returns clang's name for a library of vector functions.
fn vector_library(name: &str) -> &str {
    match name {
        "LIBMVEC" | "LIBMVEC-X86" => "libmvec",
        "sleefgnuabi" => "SLEEF",
        other => other,
    }
}

/// Options that make LLVM print or write reports on its passes, besides those that begin with `print-`.
const REPORTS: &[&str] = &[
    "debug",
    "debug-only",
    "debug-pass",
    "debug-pass-manager",
    "info-output-file",
    "stats",
    "stats-json",
    "time-passes",
    "time-passes-per-run",
    "track-memory",
];

/// Words for the compiler proper, which its driver hands on.
pub fn to_compiler(words: &[&str]) -> Vec<String> {
    words.iter().flat_map(|&word| ["-Xclang", word]).map(str::to_owned).collect()
}

/// Translates one `-mllvm` option, given with its dash.
pub fn translate(option: &str) -> Codegen {
    let bare = option.trim_start_matches('-');
    let (name, value) = bare.split_once('=').unwrap_or((bare, ""));
    let on = !matches!(value, "0" | "false" | "FALSE" | "False");
    let flag = |yes: &str, no: &str| Codegen::Arguments(vec![if on { yes } else { no }.to_owned()]);
    let one = |argument: String| Codegen::Arguments(vec![argument]);
    // Clang's driver takes some words for some machines only; the linker takes its own for all.
    let direct = |argument: &str| Codegen::Arguments(to_compiler(&[argument]));
    match name {
        "mcpu" => Codegen::Cpu(value.to_owned()),
        "mattr" => Codegen::Arguments(
            value
                .split(',')
                .filter(|feature| !feature.is_empty())
                .flat_map(|feature| to_compiler(&["-target-feature", feature]))
                .collect(),
        ),
        "relocation-model" => Codegen::RelocationModel(value.to_owned()),
        "code-model" => direct(&format!("-mcmodel={value}")),
        "function-sections" | "data-sections" | "addrsig" => Codegen::Overridden,
        "basic-block-address-map" | "unique-basic-block-section-names" => Codegen::Overridden,
        "call-graph-section" => {
            flag("-fexperimental-call-graph-section", "-fno-experimental-call-graph-section")
        }
        "debugger-tune" => Codegen::Arguments(to_compiler(&[&format!("-debugger-tuning={value}")])),
        "emulated-tls" => flag("-femulated-tls", "-fno-emulated-tls"),
        // Clang has no opposite and needs none: off is its default.
        "generate-arange-section" if !on => Codegen::Arguments(Vec::new()),
        "generate-arange-section" => one("-gdwarf-aranges".to_owned()),
        // The driver's own option has another name on each architecture.
        "enable-tlsdesc" if on => Codegen::Arguments(to_compiler(&["-enable-tlsdesc"])),
        "enable-tlsdesc" => Codegen::Untranslatable,
        "force-dwarf-frame-section" => flag("-fforce-dwarf-frame", "-fno-force-dwarf-frame"),
        "large-data-threshold" => direct(&format!("-mlarge-data-threshold={value}")),
        "partition-static-data-sections" => {
            flag("-fpartition-static-data-sections", "-fno-partition-static-data-sections")
        }
        "separate-named-sections" => flag("-fseparate-named-sections", "-fno-separate-named-sections"),
        "strict-dwarf" if on => Codegen::Arguments(to_compiler(&["-gstrict-dwarf"])),
        "strict-dwarf" => Codegen::Arguments(Vec::new()),
        // Clang has no opposites, and needs none.
        "crel" | "mc-relax-all" | "save-temp-labels" if !on => Codegen::Arguments(Vec::new()),
        "crel" => direct("--crel"),
        "mc-relax-all" => direct("-mrelax-all"),
        "save-temp-labels" => direct("-msave-temp-labels"),
        "relax-elf-relocations" | "x86-relax-relocations" => {
            direct(if on { "-mrelax-relocations=yes" } else { "-mrelax-relocations=no" })
        }
        "stack-size-section" => flag("-fstack-size-section", "-fno-stack-size-section"),
        "split-machine-functions" => {
            direct(if on { "-fsplit-machine-functions" } else { "-fno-split-machine-functions" })
        }
        "unique-section-names" => flag("-funique-section-names", "-fno-unique-section-names"),
        "vector-library" => direct(&format!("-fveclib={}", vector_library(value))),
        "tls-size" => direct(&format!("-mtls-size={value}")),
        "float-abi" => one(format!("-mfloat-abi={value}")),
        // Clang takes its own option for source files alone. Without an option lld uses `on`.
        "fp-contract" if value == "on" => Codegen::Arguments(Vec::new()),
        "fp-contract" => Codegen::Untranslatable,
        "basic-block-sections" => direct(&format!("-fbasic-block-sections={value}")),
        // The bitcode's own function attributes say this; the flag only fills in for functions without one.
        "frame-pointer" => Codegen::Arguments(to_compiler(&[&format!("-mframe-pointer={value}")])),
        _ if UNTRANSLATABLE.contains(&name) => Codegen::Untranslatable,
        _ if ["pass-remarks", "print-"].iter().any(|begin| name.starts_with(begin))
            || REPORTS.contains(&name) =>
        {
            Codegen::Report
        }
        _ => Codegen::Llvm,
    }
}
