//! Flags of compilations and links, in groups that stand together, and machines to compile for: what `campaign flags` draws
//! from. As data; what the linker and the compiler make of them is for them to say.

/// Words of one flag.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Where it is understood: how the machine's name begins.
    pub machines: &'static [&'static str],
    /// For compilations.
    pub compile: &'static [&'static str],
    /// For links.
    pub link: &'static [&'static str],
    /// What lld's DTLTO does not tell its backends, and has to be told: `--thinlto-remote-compiler-arg`.
    pub remote: &'static [&'static str],
}

/// Clang's names of machines; the first is this one's.
pub const MACHINES: &[&str] = &[
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "i386-linux-gnu",
    "armv7-linux-gnueabihf",
    "riscv64-linux-gnu",
    "powerpc64le-linux-gnu",
    "s390x-linux-gnu",
    "loongarch64-linux-gnu",
    "mips64el-linux-gnuabi64",
    "mipsel-linux-gnu",
    "x86_64-linux-musl",
    "x86_64-linux-gnux32",
    "x86_64-unknown-freebsd",
    "x86_64-unknown-fuchsia",
    "x86_64-unknown-openbsd",
    "x86_64-unknown-netbsd",
    "aarch64-linux-android30",
    "aarch64_be-linux-gnu",
    "armv6-linux-gnueabi",
    "thumbv7-linux-gnueabihf",
    "riscv32-linux-gnu",
];

const fn both(words: &'static [&'static str]) -> Group {
    Group { machines: &[""], compile: words, link: words, remote: &[] }
}

/// What the driver tells the linker too.
const fn told(words: &'static [&'static str], remote: &'static [&'static str]) -> Group {
    Group { machines: &[""], compile: words, link: words, remote }
}

const fn compile(words: &'static [&'static str]) -> Group {
    Group { machines: &[""], compile: words, link: &[], remote: &[] }
}

const fn link(words: &'static [&'static str], remote: &'static [&'static str]) -> Group {
    Group { machines: &[""], compile: &[], link: words, remote }
}

const fn on(machines: &'static [&'static str], group: Group) -> Group {
    Group { machines, ..group }
}

const X86: &[&str] = &["x86_64"];
const INTEL: &[&str] = &["x86_64", "i386"];
const AARCH64: &[&str] = &["aarch64"];
const ARM: &[&str] = &["armv", "thumbv"];
const RISCV: &[&str] = &["riscv"];
/// Where functions may be split.
const SPLIT: &[&str] = &["x86_64", "aarch64"];

/// What is drawn from.
pub const GROUPS: &[Group] = &[
    compile(&["-O0"]),
    compile(&["-O1"]),
    compile(&["-Os"]),
    compile(&["-Oz"]),
    compile(&["-O3"]),
    link(&["-O0"], &[]),
    link(&["-O1"], &[]),
    link(&["-O3"], &[]),
    link(&["-Os"], &[]),
    both(&["-O3"]),
    link(&["-Wl,--lto-O1"], &[]),
    link(&["-Wl,--lto-O3"], &[]),
    link(&["-Wl,--lto-O0,--lto-CGO0"], &[]),
    link(&["-Wl,--lto-CGO0"], &[]),
    link(&["-Wl,--lto-CGO1"], &[]),
    link(&["-Wl,--lto-CGO3"], &[]),
    link(&["-Wl,-mllvm,-inline-threshold=1"], &["-mllvm", "-inline-threshold=1"]),
    link(&["-Wl,-mllvm=-inline-threshold=1000"], &["-mllvm", "-inline-threshold=1000"]),
    link(&["-Wl,-plugin-opt=-import-instr-limit=0"], &[]),
    link(&["-Wl,-mllvm,-align-all-functions=5"], &["-mllvm", "-align-all-functions=5"]),
    link(&["-Wl,-mllvm,-enable-machine-outliner=always"], &["-mllvm", "-enable-machine-outliner=always"]),
    link(&["-Wl,-mllvm,-global-isel"], &["-mllvm", "-global-isel"]),
    link(&["-Wl,-mllvm,-split-machine-functions"], &["-Xclang", "-fsplit-machine-functions"]),
    link(&["-Wl,-mllvm,-basic-block-address-map"], &[]),
    link(
        &["-Wl,-mllvm,-unique-basic-block-section-names,--lto-basic-block-sections=all"],
        &["-Xclang", "-fbasic-block-sections=all"],
    ),
    link(&["-Wl,-mllvm,-code-model=medium"], &["-Xclang", "-mcmodel=medium"]),
    link(&["-Wl,-mllvm,-vector-library=LIBMVEC"], &["-Xclang", "-fveclib=libmvec"]),
    link(&["-Wl,-mllvm,-emulated-tls"], &["-femulated-tls"]),
    link(&["-Wl,-mllvm,-enable-tlsdesc"], &["-Xclang", "-enable-tlsdesc"]),
    link(&["-Wl,-mllvm,-stack-size-section"], &["-fstack-size-section"]),
    link(&["-Wl,-mllvm,-fp-contract=fast"], &[]),
    link(&["-Wl,-mllvm,-frame-pointer=all"], &["-Xclang", "-mframe-pointer=all"]),
    link(&["-Wl,-mllvm,-unique-section-names=0"], &["-fno-unique-section-names"]),
    link(&["-Wl,-mllvm,-xray-function-index"], &[]),
    link(&["-Wl,-mllvm,-disable-tail-calls"], &[]),
    link(&["-Wl,-mllvm,-force-dwarf-frame-section"], &["-fforce-dwarf-frame"]),
    link(&["-Wl,-mllvm,-dwarf-version=4"], &[]),
    link(&["-Wl,-mllvm,-no-integrated-as"], &[]),
    link(&["-Wl,-mllvm,-mc-relax-all"], &["-Xclang", "-mrelax-all"]),
    link(&["-Wl,-mllvm,-crel"], &["-Xclang", "--crel"]),
    link(&["-Wl,-mllvm,-save-temp-labels"], &["-Xclang", "-msave-temp-labels"]),
    on(INTEL, link(&["-Wl,-mllvm,-x86-relax-relocations=0"], &["-Xclang", "-mrelax-relocations=no"])),
    link(&["-Wl,--icf=all"], &[]),
    Group { machines: &[""], compile: &["-faddrsig"], link: &["-Wl,--icf=safe"], remote: &[] },
    link(&["-Wl,--gc-sections"], &[]),
    link(&["-Wl,-Bsymbolic"], &[]),
    link(&["-Wl,--strip-debug"], &[]),
    link(&["-Wl,--strip-all"], &[]),
    link(&["-Wl,--lto-basic-block-sections=all"], &["-Xclang", "-fbasic-block-sections=all"]),
    on(SPLIT, link(&["-fbasic-block-sections=all"], &["-fbasic-block-sections=all"])),
    on(SPLIT, link(&["-fsplit-machine-functions"], &["-mllvm", "-split-machine-functions=1"])),
    on(SPLIT, both(&["-funique-basic-block-section-names", "-fbasic-block-sections=all"])),
    both(&["-ffunction-sections", "-fdata-sections"]),
    link(&["-fno-function-sections"], &[]),
    link(&["-fno-data-sections"], &[]),
    both(&["-fno-unique-section-names"]),
    told(&["-femulated-tls"], &["-femulated-tls"]),
    both(&["-g"]),
    both(&["-g", "-gdwarf-4"]),
    both(&["-g", "-gz"]),
    told(&["-g", "-glldb"], &["-Xclang", "-debugger-tuning=lldb"]),
    told(&["-g", "-gsce"], &["-Xclang", "-debugger-tuning=sce"]),
    both(&["-gline-tables-only"]),
    compile(&["-g", "-gsimple-template-names"]),
    compile(&["-fdebug-types-section", "-g"]),
    told(&["-fstack-size-section"], &["-fstack-size-section"]),
    both(&["-ffat-lto-objects"]),
    both(&["-flto=thin"]),
    link(&["-flto-jobs=2"], &[]),
    compile(&["-fsplit-lto-unit"]),
    both(&["-fwhole-program-vtables"]),
    link(&["-Wl,--lto-whole-program-visibility"], &[]),
    compile(&["-fvisibility=hidden"]),
    both(&["-fvisibility=hidden", "-fsanitize=cfi", "-fno-sanitize-trap=none", "-fsanitize-trap=cfi"]),
    both(&["-fsanitize=undefined", "-fsanitize-trap=all"]),
    compile(&["-fstack-protector-strong"]),
    compile(&["-fstack-clash-protection"]),
    compile(&["-ftrivial-auto-var-init=pattern"]),
    compile(&["-fpatchable-function-entry=2"]),
    compile(&["-finstrument-functions"]),
    compile(&["-fno-plt"]),
    compile(&["-fsemantic-interposition"]),
    compile(&["-fno-direct-access-external-data"]),
    compile(&["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    both(&["-fno-omit-frame-pointer"]),
    both(&["-ffast-math"]),
    both(&["-ffp-contract=off"]),
    both(&["-ffp-contract=fast"]),
    compile(&["-fdenormal-fp-math=preserve-sign"]),
    both(&["-fno-signed-zeros"]),
    both(&["-fno-jump-tables"]),
    both(&["-fno-vectorize", "-fno-slp-vectorize"]),
    both(&["-fno-unroll-loops"]),
    both(&["-fmerge-all-constants"]),
    both(&["-fno-merge-all-constants"]),
    both(&["-ffreestanding"]),
    both(&["-fno-builtin"]),
    both(&["-fwrapv"]),
    both(&["-fno-strict-aliasing"]),
    both(&["-fno-common"]),
    both(&["-mrelax-all"]),
    both(&["-falign-functions=32"]),
    both(&["-falign-loops=32"]),
    both(&["-fno-zero-initialized-in-bss"]),
    both(&["-ftls-model=initial-exec"]),
    both(&["-fexceptions"]),
    both(&["-fopenmp-simd"]),
    both(&["-foptimization-record-file=remarks.yaml"]),
    both(&["-Wa,--noexecstack"]),
    both(&["-fident"]),
    both(&["-fno-ident"]),
    both(&["-fmacro-prefix-map=./="]),
    both(&["-fno-use-init-array"]),
    both(&["-fverbose-asm"]),
    both(&["-fno-addrsig"]),
    told(&["-fglobal-isel"], &["-mllvm", "-global-isel=1"]),
    told(&["-fno-global-isel"], &["-mllvm", "-global-isel=0"]),
    told(&["-mno-outline"], &["-mllvm", "-enable-machine-outliner=never"]),
    on(&["aarch64", "armv", "thumbv"], told(&["-moutline"], &["-mllvm", "-enable-machine-outliner"])),
    both(&["-w"]),
    on(X86, told(&["-fveclib=libmvec", "-ffast-math"], &["-fveclib=libmvec"])),
    on(AARCH64, told(&["-fveclib=SLEEF", "-ffast-math"], &["-fveclib=SLEEF"])),
    on(X86, both(&["-mcmodel=large"])),
    on(X86, both(&["-mcmodel=medium", "-mlarge-data-threshold=4"])),
    on(X86, both(&["-march=haswell"])),
    on(X86, both(&["-march=x86-64-v4", "-mprefer-vector-width=512"])),
    on(X86, link(&["-march=haswell"], &[])),
    on(X86, compile(&["-march=haswell"])),
    on(X86, both(&["-mtune=skylake"])),
    on(X86, both(&["-mno-red-zone"])),
    on(X86, both(&["-mfentry", "-pg"])),
    on(X86, both(&["-fcf-protection=full"])),
    on(X86, both(&["-mtls-dialect=gnu2"])),
    on(X86, both(&["-mindirect-branch-cs-prefix"])),
    on(X86, both(&["-mretpoline"])),
    on(X86, both(&["-mharden-sls=all"])),
    on(INTEL, both(&["-mstackrealign"])),
    on(INTEL, both(&["-mno-sse2", "-mno-sse4.1"])),
    on(INTEL, both(&["-mfunction-return=thunk-extern"])),
    on(INTEL, both(&["-masm=intel"])),
    on(INTEL, both(&["-Wa,-mrelax-relocations=no"])),
    on(AARCH64, both(&["-mbranch-protection=standard"])),
    on(AARCH64, both(&["-mcpu=neoverse-v1"])),
    on(AARCH64, both(&["-march=armv9-a"])),
    on(AARCH64, both(&["-moutline-atomics"])),
    on(AARCH64, both(&["-mtls-dialect=trad"])),
    on(AARCH64, both(&["-ffixed-x18", "-fsanitize=shadow-call-stack"])),
    on(AARCH64, both(&["-mfix-cortex-a53-835769"])),
    on(AARCH64, both(&["-mharden-sls=all"])),
    on(AARCH64, both(&["-mcmodel=tiny"])),
    on(AARCH64, both(&["-msve-vector-bits=256", "-march=armv9-a"])),
    on(ARM, both(&["-mthumb"])),
    on(ARM, both(&["-marm"])),
    on(ARM, both(&["-mfpu=neon"])),
    on(ARM, told(&["-mcpu=cortex-a15"], &["-mcpu=cortex-a15"])),
    on(ARM, both(&["-mlong-calls"])),
    on(ARM, both(&["-mexecute-only"])),
    on(ARM, both(&["-mtp=soft"])),
    on(ARM, both(&["-mno-unaligned-access"])),
    on(RISCV, both(&["-mno-relax"])),
    on(&["riscv64"], both(&["-march=rv64gcv"])),
    on(&["riscv64"], both(&["-mcpu=sifive-u74"])),
    on(RISCV, both(&["-mcmodel=medany"])),
    on(&["riscv64"], both(&["-march=rv64imac", "-mabi=lp64"])),
    on(&["s390x"], both(&["-march=z15"])),
    on(&["s390x"], both(&["-mbackchain"])),
    on(&["powerpc64le"], both(&["-mcpu=pwr10"])),
    on(&["powerpc64le"], both(&["-mlong-double-64"])),
    on(&["loongarch64"], both(&["-mlasx"])),
    on(&["loongarch64"], both(&["-mcmodel=medium"])),
    on(&["mips"], both(&["-mno-abicalls", "-fno-pic"])),
    on(&["mips"], both(&["-mxgot"])),
];
