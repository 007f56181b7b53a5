//! The format and the machine of a native object, and the ones a target triple stands for.
//!
//! Knows nothing of archives or bitcode. The triple's grammar is LLVM's (`llvm/lib/TargetSupport/Triple.cpp`):
//! architecture first, then vendor, operating system and environment. The format follows from these.

use std::fmt;
use std::str::FromStr;

use object::{Architecture, SubArchitecture};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The target of a native file. Two objects link together only if these are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Native {
    /// The container.
    pub format: Format,
    /// The processor.
    pub machine: Machine,
}

/// The container of a native object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Linux, the BSDs, bare metal.
    #[serde(rename = "ELF")]
    Elf,
    /// Windows and UEFI, import objects included.
    #[serde(rename = "COFF")]
    Coff,
    /// Apple's systems.
    #[serde(rename = "Mach-O")]
    MachO,
    /// WebAssembly.
    #[serde(rename = "wasm")]
    Wasm,
    /// AIX.
    #[serde(rename = "XCOFF")]
    Xcoff,
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Elf => "ELF",
            Self::Coff => "COFF",
            Self::MachO => "Mach-O",
            Self::Wasm => "wasm",
            Self::Xcoff => "XCOFF",
        })
    }
}

impl fmt::Display for Native {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.format, self.machine)
    }
}

macro_rules! machines {
    ($($variant:ident $name:literal,)*) => {
        /// A processor with its byte order and pointer width, as far as they decide whether objects link together.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Machine {
            $(#[doc = $name] $variant,)*
            /// One that this crate has no name for.
            Unknown,
        }

        impl Machine {
            /// The name used in messages and manifests.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Unknown => "unknown machine" }
            }

            const NAMED: &'static [Self] = &[$(Self::$variant,)*];
        }
    };
}

machines! {
    X86_64 "x86-64", X32 "x32", X86 "x86", Aarch64 "aarch64", Aarch64Be "aarch64_be", Aarch64Ilp32 "aarch64_32",
    Arm64e "arm64e", Arm64ec "arm64ec", Arm "arm", ArmBe "armeb", RiscV32 "riscv32", RiscV64 "riscv64",
    PowerPc "powerpc", PowerPcLe "powerpcle", PowerPc64 "powerpc64", PowerPc64Le "powerpc64le",
    Mips "mips", MipsEl "mipsel", MipsN32 "mipsn32", MipsN32El "mipsn32el", Mips64 "mips64", Mips64El "mips64el",
    S390x "s390x", Sparc "sparc", Sparc64 "sparc64", LoongArch32 "loongarch32", LoongArch64 "loongarch64",
    Hexagon "hexagon", Avr "avr", Bpf "bpf", BpfBe "bpfeb", Msp430 "msp430", M68k "m68k", Csky "csky",
    Xtensa "xtensa", Wasm32 "wasm32", Wasm64 "wasm64",
}

impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == Self::Unknown.name() {
            return Ok(Self::Unknown);
        }
        let named = Self::NAMED.iter().find(|machine| machine.name() == text);
        named.copied().ok_or_else(|| format!("`{text}` is not a machine's name"))
    }
}

impl Serialize for Machine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Machine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Machine {
    /// The machine that `object` has read from a header.
    pub(crate) fn of(architecture: Architecture, sub: Option<SubArchitecture>, little: bool) -> Self {
        let order = |if_little, if_big| if little { if_little } else { if_big };
        match (architecture, sub) {
            (Architecture::Aarch64, Some(SubArchitecture::Arm64E)) => Self::Arm64e,
            (Architecture::Aarch64, Some(SubArchitecture::Arm64EC)) => Self::Arm64ec,
            (Architecture::Aarch64, _) => order(Self::Aarch64, Self::Aarch64Be),
            (Architecture::Aarch64_Ilp32, _) => Self::Aarch64Ilp32,
            (Architecture::Arm, _) => order(Self::Arm, Self::ArmBe),
            (Architecture::X86_64, _) => Self::X86_64,
            (Architecture::X86_64_X32, _) => Self::X32,
            (Architecture::I386, _) => Self::X86,
            (Architecture::Riscv32, _) => Self::RiscV32,
            (Architecture::Riscv64, _) => Self::RiscV64,
            (Architecture::PowerPc, _) => order(Self::PowerPcLe, Self::PowerPc),
            (Architecture::PowerPc64, _) => order(Self::PowerPc64Le, Self::PowerPc64),
            (Architecture::Mips, _) => order(Self::MipsEl, Self::Mips),
            (Architecture::Mips64_N32, _) => order(Self::MipsN32El, Self::MipsN32),
            (Architecture::Mips64, _) => order(Self::Mips64El, Self::Mips64),
            (Architecture::S390x, _) => Self::S390x,
            (Architecture::Sparc | Architecture::Sparc32Plus, _) => Self::Sparc,
            (Architecture::Sparc64, _) => Self::Sparc64,
            (Architecture::LoongArch32, _) => Self::LoongArch32,
            (Architecture::LoongArch64, _) => Self::LoongArch64,
            (Architecture::Hexagon, _) => Self::Hexagon,
            (Architecture::Avr, _) => Self::Avr,
            (Architecture::Bpf, _) => order(Self::Bpf, Self::BpfBe),
            (Architecture::Msp430, _) => Self::Msp430,
            (Architecture::M68k, _) => Self::M68k,
            (Architecture::Csky, _) => Self::Csky,
            (Architecture::Xtensa, _) => Self::Xtensa,
            (Architecture::Wasm32, _) => Self::Wasm32,
            (Architecture::Wasm64, _) => Self::Wasm64,
            _ => Self::Unknown,
        }
    }

    /// The machine of a triple's first component, with the environment where it changes the pointer width.
    fn of_triple_architecture(architecture: &str, environment: &str) -> Option<Self> {
        Some(match architecture {
            "x86_64" | "amd64" | "x86_64h" if environment.ends_with("x32") => Self::X32,
            "x86_64" | "amd64" | "x86_64h" => Self::X86_64,
            "x86" | "i386" | "i486" | "i586" | "i686" | "i786" => Self::X86,
            "arm64e" => Self::Arm64e,
            "arm64ec" => Self::Arm64ec,
            "arm64_32" | "aarch64_32" => Self::Aarch64Ilp32,
            "aarch64" | "arm64" if environment.ends_with("ilp32") => Self::Aarch64Ilp32,
            "aarch64" | "arm64" => Self::Aarch64,
            "aarch64_be" => Self::Aarch64Be,
            "riscv32" | "riscv32imac" | "riscv32imc" | "riscv32gc" => Self::RiscV32,
            "riscv64" | "riscv64gc" | "riscv64imac" => Self::RiscV64,
            "powerpc" | "ppc" | "ppc32" => Self::PowerPc,
            "powerpcle" | "ppcle" | "ppc32le" => Self::PowerPcLe,
            "powerpc64" | "ppc64" => Self::PowerPc64,
            "powerpc64le" | "ppc64le" => Self::PowerPc64Le,
            "mips" | "mipsr6" | "mipsisa32r6" => Self::Mips,
            "mipsel" | "mipsr6el" | "mipsisa32r6el" => Self::MipsEl,
            "mips64" | "mips64r6" | "mipsisa64r6" if environment.ends_with("abin32") => Self::MipsN32,
            "mips64el" | "mips64r6el" | "mipsisa64r6el" if environment.ends_with("abin32") => Self::MipsN32El,
            "mips64" | "mips64r6" | "mipsisa64r6" => Self::Mips64,
            "mips64el" | "mips64r6el" | "mipsisa64r6el" => Self::Mips64El,
            "s390x" | "systemz" => Self::S390x,
            "sparc" => Self::Sparc,
            "sparcv9" | "sparc64" => Self::Sparc64,
            "loongarch32" => Self::LoongArch32,
            "loongarch64" => Self::LoongArch64,
            "hexagon" => Self::Hexagon,
            "avr" => Self::Avr,
            "bpf" | "bpfel" | "bpf_le" => Self::Bpf,
            "bpfeb" | "bpf_be" => Self::BpfBe,
            "msp430" => Self::Msp430,
            "m68k" => Self::M68k,
            "csky" => Self::Csky,
            "xtensa" => Self::Xtensa,
            "wasm32" => Self::Wasm32,
            "wasm64" => Self::Wasm64,
            "armeb" | "thumbeb" => Self::ArmBe,
            arm if arm.starts_with("armv") || arm.starts_with("thumbv") => {
                if arm.ends_with("eb") {
                    Self::ArmBe
                } else {
                    Self::Arm
                }
            }
            "arm" | "thumb" | "xscale" => Self::Arm,
            _ => return None,
        })
    }
}

impl Native {
    /// Returns the target of a compiler for this triple; `None` if the triple or its object format is not known here.
    pub fn of_triple(triple: &str) -> Option<Self> {
        let (architecture, rest) = triple.split_once('-').unwrap_or((triple, ""));
        let environment = rest.rsplit('-').next().unwrap_or("");
        let machine = Machine::of_triple_architecture(architecture, environment)?;
        let systems =
            ["darwin", "macos", "ios", "tvos", "watchos", "xros", "visionos", "driverkit", "bridgeos"];
        let system =
            |names: &[&str]| rest.split('-').any(|part| names.iter().any(|name| part.starts_with(name)));
        let format = if environment.ends_with("goff") || system(&["zos"]) {
            return None;
        } else if environment.ends_with("xcoff") || system(&["aix"]) {
            Format::Xcoff
        } else if environment.ends_with("macho") {
            Format::MachO
        } else if environment.ends_with("coff") {
            Format::Coff
        } else if environment.ends_with("elf") {
            Format::Elf
        } else if matches!(machine, Machine::Wasm32 | Machine::Wasm64) {
            Format::Wasm
        } else if system(&systems) {
            Format::MachO
        } else if system(&["windows", "win32", "cygwin", "mingw", "uefi"]) {
            Format::Coff
        } else {
            Format::Elf
        };
        Some(Self { format, machine })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(triple: &str) -> String {
        Native::of_triple(triple).map_or("none".to_owned(), |native| native.to_string())
    }

    #[test]
    fn triples_name_format_and_machine() {
        for (triple, expected) in [
            ("x86_64-pc-linux-gnu", "ELF x86-64"),
            ("x86_64-unknown-linux-gnux32", "ELF x32"),
            ("i686-pc-windows-msvc", "COFF x86"),
            ("x86_64-w64-mingw32", "COFF x86-64"),
            ("x86_64-pc-windows-msvc-elf", "ELF x86-64"),
            ("arm64-apple-macosx14.0.0", "Mach-O aarch64"),
            ("arm64e-apple-ios17", "Mach-O arm64e"),
            ("armv7a-none-linux-gnueabihf", "ELF arm"),
            ("thumbv7em-none-eabi", "ELF arm"),
            ("powerpc64le-unknown-linux-gnu", "ELF powerpc64le"),
            ("wasm32-unknown-unknown", "wasm wasm32"),
            ("riscv64gc-unknown-linux-gnu", "ELF riscv64"),
            ("powerpc64-ibm-aix", "XCOFF powerpc64"),
            ("s390x-ibm-zos", "none"),
            ("nonsense", "none"),
            ("", "none"),
        ] {
            assert_eq!(of(triple), expected, "{triple}");
        }
    }

    #[test]
    fn machine_names_are_distinct_and_read_back() {
        for machine in Machine::NAMED.iter().chain([&Machine::Unknown]) {
            assert_eq!(machine.name().parse(), Ok(*machine));
        }
    }
}
