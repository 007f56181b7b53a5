//! The slice of a Mach-O universal file that holds one architecture.
//!
//! Architecture names are those of `lipo` and `clang -arch` (`llvm/lib/Object/MachOObjectFile.cpp`).

use std::ops::Range;
use std::path::Path;

use object::macho::{self, FatArch32, FatArch64};
use object::read::macho::{FatArch, MachOFatFile};

use crate::error::PrepareError;

/// The byte range of the slice for `architecture`, or of the only slice there is.
pub fn slice(path: &Path, bytes: &[u8], architecture: Option<&str>) -> Result<Range<usize>, PrepareError> {
    let malformed = |place: &str, problem: String| PrepareError::Malformed {
        path: path.to_owned(),
        place: place.to_owned(),
        problem,
    };
    let slices = if bytes.starts_with(&macho::FAT_MAGIC_64.to_be_bytes()) {
        slices::<FatArch64>(bytes)
    } else {
        slices::<FatArch32>(bytes)
    };
    let slices = slices.map_err(|error| malformed("its header", error.to_string()))?;
    let present = || slices.iter().map(|slice| slice.name.as_str()).collect::<Vec<_>>().join(", ");
    let refuse =
        |problem: String| PrepareError::Architecture { path: path.to_owned(), problem, present: present() };
    let chosen = match (architecture, slices.as_slice()) {
        (Some(wanted), _) => slices
            .iter()
            .find(|slice| slice.name == wanted)
            .ok_or_else(|| refuse(format!("no slice for the architecture {wanted}")))?,
        (None, [only]) => only,
        (None, []) => return Err(malformed("its header", "it has no slice".to_owned())),
        (None, _) => return Err(refuse("a universal file, and no architecture chosen".to_owned())),
    };
    let range = usize::try_from(chosen.offset).ok().zip(usize::try_from(chosen.size).ok());
    let range = range.and_then(|(start, size)| Some(start..start.checked_add(size)?));
    range.filter(|range| range.end <= bytes.len()).ok_or_else(|| {
        let problem =
            format!("it claims {} bytes at {}, the file ends at {}", chosen.size, chosen.offset, bytes.len());
        malformed(&format!("slice {}", chosen.name), problem)
    })
}

struct Slice {
    name: String,
    offset: u64,
    size: u64,
}

fn slices<Fat: FatArch>(bytes: &[u8]) -> object::read::Result<Vec<Slice>> {
    let file = MachOFatFile::<Fat>::parse(bytes)?;
    let slice =
        |arch: &Fat| Slice { name: name(arch), offset: arch.offset().into(), size: arch.size().into() };
    Ok(file.arches().iter().map(slice).collect())
}

fn name<Fat: FatArch>(arch: &Fat) -> String {
    // The top byte of the subtype holds capabilities.
    let subtype = arch.cpusubtype().0 & 0x00ff_ffff;
    let name = match (arch.cputype(), subtype) {
        (macho::CPU_TYPE_X86, _) => "i386",
        (macho::CPU_TYPE_X86_64, 8) => "x86_64h",
        (macho::CPU_TYPE_X86_64, _) => "x86_64",
        (macho::CPU_TYPE_ARM64, 2) => "arm64e",
        (macho::CPU_TYPE_ARM64, _) => "arm64",
        (macho::CPU_TYPE_ARM64_32, _) => "arm64_32",
        (macho::CPU_TYPE_ARM, 5) => "armv4t",
        (macho::CPU_TYPE_ARM, 6) => "armv6",
        (macho::CPU_TYPE_ARM, 7) => "armv5e",
        (macho::CPU_TYPE_ARM, 8) => "xscale",
        (macho::CPU_TYPE_ARM, 9) => "armv7",
        (macho::CPU_TYPE_ARM, 11) => "armv7s",
        (macho::CPU_TYPE_ARM, 12) => "armv7k",
        (macho::CPU_TYPE_ARM, 14) => "armv6m",
        (macho::CPU_TYPE_ARM, 15) => "armv7m",
        (macho::CPU_TYPE_ARM, 16) => "armv7em",
        (macho::CPU_TYPE_POWERPC, _) => "ppc",
        (macho::CPU_TYPE_POWERPC64, _) => "ppc64",
        (cpu, subtype) => return format!("cputype-{}-{subtype}", cpu.0),
    };
    name.to_owned()
}
