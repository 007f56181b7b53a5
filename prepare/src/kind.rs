//! The kind of a file, decided by its content alone: bitcode, native object, library, archive, text.
//!
//! Knows nothing of names, suffixes or links. Magic numbers are those of LLVM's `identify_magic`
//! (`llvm/lib/BinaryFormat/Magic.cpp`); a COFF object, which has none, must have a whole section table to count.

use std::fmt;
use std::path::Path;

use object::read::elf::{Dyn, ProgramHeader};
use object::read::elf::{ElfFile, FileHeader};
use object::read::macho::MachHeader;
use object::read::{FileKind, Object, ObjectKind, ObjectSection, coff, pe, wasm, xcoff};
use object::{Architecture, SubArchitecture, elf};
use serde::{Deserialize, Serialize};

use crate::error::PrepareError;
use crate::input::Input;
pub use crate::native::{Format, Machine, Native};

/// The kind of a file. The serialised form is an object with a `class` and, where there is one, `format` and `machine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "kebab-case")]
pub enum Kind {
    /// LLVM bitcode.
    Bitcode {
        /// Inside the wrapper that Darwin's tools put around it.
        wrapped: bool,
    },
    /// A relocatable ELF object that carries its own bitcode in a section `.llvm.lto`.
    FatLto(Native),
    /// A relocatable object, or a COFF import object.
    Native(Native),
    /// A shared library.
    SharedLibrary(Native),
    /// A program, position-independent ones included.
    Executable(Native),
    /// An archive of any format.
    Archive {
        /// It only names its members; their content lies in files of their own.
        thin: bool,
    },
    /// A Mach-O universal file: one slice for each architecture.
    Universal,
    /// UTF-8 text: a linker script, a `.tbd`.
    Text,
    /// None of these.
    Other,
    /// No bytes at all.
    Empty,
}

impl Kind {
    /// Whether a linker takes it as a relocatable input: bitcode, FatLTO or native.
    pub fn is_object(self) -> bool {
        matches!(self, Self::Bitcode { .. } | Self::FatLto(_) | Self::Native(_))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bitcode { wrapped: false } => out.write_str("bitcode"),
            Self::Bitcode { wrapped: true } => out.write_str("wrapped bitcode"),
            Self::FatLto(native) => write!(out, "{native} object with bitcode (FatLTO)"),
            Self::Native(native) => write!(out, "{native} object"),
            Self::SharedLibrary(native) => write!(out, "{native} shared library"),
            Self::Executable(native) => write!(out, "{native} executable"),
            Self::Archive { thin: false } => out.write_str("archive"),
            Self::Archive { thin: true } => out.write_str("thin archive"),
            Self::Universal => out.write_str("Mach-O universal file"),
            Self::Text => out.write_str("text"),
            Self::Other => out.write_str("unknown data"),
            Self::Empty => out.write_str("empty file"),
        }
    }
}

/// Classifies a file by its content. An unreadable file or one that is not regular is an error.
pub fn classify_file(path: &Path) -> Result<Kind, PrepareError> {
    Ok(classify(&Input::open(path)?))
}

/// Raw bitcode: `BC` and 0xC0DE.
pub(crate) const BITCODE: &[u8] = b"BC\xC0\xDE";
/// The wrapper: version, offset, size and CPU type follow as `u32`, little endian.
const WRAPPER: &[u8] = b"\xDE\xC0\x17\x0B";
const FAT_LTO_SECTION: &str = ".llvm.lto";

/// Classifies bytes. Never fails: bytes of no other kind are `Text` or `Other`.
///
/// An ELF, Mach-O or wasm object is one by its header. So a truncated object keeps its kind, and its reader can report
/// that; see [`is_whole`].
pub fn classify(bytes: &[u8]) -> Kind {
    match bytes {
        [] => return Kind::Empty,
        _ if bytes.starts_with(BITCODE) => return Kind::Bitcode { wrapped: false },
        _ if bytes.starts_with(WRAPPER) => return Kind::Bitcode { wrapped: true },
        _ if bytes.starts_with(&object::archive::THIN_MAGIC) => return Kind::Archive { thin: true },
        _ if is_archive(bytes) => return Kind::Archive { thin: false },
        _ => {}
    }
    let kind = match FileKind::parse(bytes) {
        Ok(FileKind::Elf32) => elf_kind::<elf::FileHeader32<object::Endianness>>(bytes),
        Ok(FileKind::Elf64) => elf_kind::<elf::FileHeader64<object::Endianness>>(bytes),
        Ok(FileKind::MachO32) => macho_kind::<object::macho::MachHeader32<object::Endianness>>(bytes),
        Ok(FileKind::MachO64) => macho_kind::<object::macho::MachHeader64<object::Endianness>>(bytes),
        Ok(FileKind::MachOFat32 | FileKind::MachOFat64) => universal(bytes),
        Ok(FileKind::Coff) => coff_object::<object::pe::ImageFileHeader>(bytes),
        Ok(FileKind::CoffBig) => coff_object::<object::pe::AnonObjectHeaderBigobj>(bytes),
        Ok(FileKind::CoffImport) => coff_import(bytes),
        Ok(FileKind::Pe32) => pe::PeFile32::parse(bytes).ok().map(|file| image(&file)),
        Ok(FileKind::Pe64) => pe::PeFile64::parse(bytes).ok().map(|file| image(&file)),
        Ok(FileKind::Xcoff32) => xcoff_kind::<object::xcoff::FileHeader32>(bytes),
        Ok(FileKind::Xcoff64) => xcoff_kind::<object::xcoff::FileHeader64>(bytes),
        Ok(FileKind::Wasm) => wasm_kind(bytes),
        _ => None,
    };
    kind.unwrap_or(if is_text(bytes) { Kind::Text } else { Kind::Other })
}

/// The bitcode of raw, wrapped or FatLTO input; `None` if there is none or its place lies outside the input.
pub fn bitcode_of(bytes: &[u8]) -> Option<&[u8]> {
    match classify(bytes) {
        Kind::Bitcode { wrapped: false } => Some(bytes),
        Kind::Bitcode { wrapped: true } => {
            let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
            let (start, size) = (word(8)?, word(12)?);
            bytes.get(start..start.checked_add(size)?).filter(|inner| inner.starts_with(BITCODE))
        }
        Kind::FatLto(_) => {
            let file = object::File::parse(bytes).ok()?;
            file.section_by_name(FAT_LTO_SECTION)?.data().ok().filter(|inner| inner.starts_with(BITCODE))
        }
        _ => None,
    }
}

/// Returns whether every section of a native object, or the bitcode of a bitcode file, lies inside the bytes given. An
/// object of a compiler that was killed or ran out of space is not whole. `false` for other kinds.
pub fn is_whole(bytes: &[u8]) -> bool {
    match classify(bytes) {
        Kind::Bitcode { .. } => bitcode_of(bytes).is_some_and(|inner| inner.len() % 4 == 0),
        // Short import objects have no sections; their header has been checked against their size.
        Kind::Native(Native { format: Format::Coff, .. }) if coff_import(bytes).is_some() => true,
        Kind::FatLto(_) | Kind::Native(_) | Kind::SharedLibrary(_) | Kind::Executable(_) => {
            // The reader of Mach-O does without a symbol table that is cut off, and that comes last.
            if let Ok(FileKind::MachO64) = FileKind::parse(bytes) {
                let symbols =
                    mach_symbols_are_whole::<object::macho::MachHeader64<object::Endianness>>(bytes);
                if symbols.is_none() {
                    return false;
                }
            }
            object::File::parse(bytes).is_ok_and(|file| {
                file.sections().all(|section| section.data().is_ok() && section.name().is_ok())
            })
        }
        _ => false,
    }
}

fn is_archive(bytes: &[u8]) -> bool {
    use object::archive::{AIX_BIG_MAGIC, MAGIC, ZOS_MAGIC};
    [MAGIC, AIX_BIG_MAGIC, ZOS_MAGIC].iter().any(|magic| bytes.starts_with(magic))
}

fn elf_kind<Elf: FileHeader<Endian = object::Endianness>>(bytes: &[u8]) -> Option<Kind> {
    let header = Elf::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let native = Native { format: Format::Elf, machine: elf_machine(header) };
    let file = || ElfFile::<Elf>::parse(bytes).ok();
    match header.e_type(endian) {
        elf::ET_REL => {
            let fat = file().is_some_and(|file| file.section_by_name(FAT_LTO_SECTION).is_some());
            Some(if fat { Kind::FatLto(native) } else { Kind::Native(native) })
        }
        elf::ET_EXEC => Some(Kind::Executable(native)),
        elf::ET_DYN if is_pie(header, endian, bytes) => Some(Kind::Executable(native)),
        elf::ET_DYN => Some(Kind::SharedLibrary(native)),
        _ => None,
    }
}

/// Asks `object` for the machine of a file that has this header and nothing else: a cut-off section table does not
/// change the machine.
fn elf_machine<Elf: FileHeader<Endian = object::Endianness>>(header: &Elf) -> Machine {
    let mut alone = object::bytes_of(header).to_vec();
    let (tables, counts) = if header.is_class_64() { (32..48, 56..64) } else { (28..36, 44..52) };
    alone[tables].fill(0);
    alone[counts].fill(0);
    ElfFile::<Elf>::parse(alone.as_slice()).map_or(Machine::Unknown, |file| machine_of(&file))
}

fn machine_of<'data>(file: &impl Object<'data>) -> Machine {
    Machine::of(file.architecture(), file.sub_architecture(), file.is_little_endian())
}

/// Whether a dynamic ELF file is a program: linkers mark position-independent ones with `DF_1_PIE`.
fn is_pie<Elf: FileHeader<Endian = object::Endianness>>(
    header: &Elf,
    endian: Elf::Endian,
    bytes: &[u8],
) -> bool {
    let Ok(segments) = header.program_headers(endian, bytes) else { return false };
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok().flatten());
    dynamic.unwrap_or_default().iter().any(|entry| {
        let (tag, value): (u64, u64) = (entry.tag(endian).0 as u64, entry.val(endian));
        tag == elf::DT_FLAGS_1.0 as u64 && value & elf::DF_1_PIE.0 != 0
    })
}

fn macho_kind<Mach: MachHeader>(bytes: &[u8]) -> Option<Kind> {
    let header = Mach::parse(bytes, 0).ok()?;
    let endian = header.endian().ok()?;
    let sub = (header.cputype(endian) == object::macho::CPU_TYPE_ARM64
        && header.cpusubtype(endian).id() == object::macho::CPU_SUBTYPE_ARM64E)
        .then_some(SubArchitecture::Arm64E);
    let machine = Machine::of(mach_architecture(header.cputype(endian)), sub, header.is_little_endian());
    let native = Native { format: Format::MachO, machine };
    Some(match header.filetype(endian) {
        object::macho::MH_OBJECT => Kind::Native(native),
        object::macho::MH_EXECUTE => Kind::Executable(native),
        object::macho::MH_DYLIB | object::macho::MH_DYLIB_STUB | object::macho::MH_BUNDLE => {
            Kind::SharedLibrary(native)
        }
        _ => return None,
    })
}

fn mach_symbols_are_whole<Mach: MachHeader>(bytes: &[u8]) -> Option<()> {
    let header = Mach::parse(bytes, 0).ok()?;
    let endian = header.endian().ok()?;
    let mut commands = header.load_commands(endian, bytes, 0).ok()?;
    while let Some(command) = commands.next().ok()? {
        if let Some(table) = command.symtab().ok()? {
            table.symbols::<Mach, _>(endian, bytes).ok()?;
            let end = u64::from(table.stroff.get(endian)) + u64::from(table.strsize.get(endian));
            (end <= bytes.len() as u64).then_some(())?;
        }
    }
    Some(())
}

fn mach_architecture(cpu: object::macho::CpuType) -> Architecture {
    match cpu {
        object::macho::CPU_TYPE_ARM => Architecture::Arm,
        object::macho::CPU_TYPE_ARM64 => Architecture::Aarch64,
        object::macho::CPU_TYPE_ARM64_32 => Architecture::Aarch64_Ilp32,
        object::macho::CPU_TYPE_X86 => Architecture::I386,
        object::macho::CPU_TYPE_X86_64 => Architecture::X86_64,
        object::macho::CPU_TYPE_POWERPC => Architecture::PowerPc,
        object::macho::CPU_TYPE_POWERPC64 => Architecture::PowerPc64,
        _ => Architecture::Unknown,
    }
}

/// The magic is also that of Java classes, where the next word is a version; no universal file has 43 slices.
fn universal(bytes: &[u8]) -> Option<Kind> {
    (bytes.get(4..7) == Some(&[0, 0, 0]) && bytes[7] < 43).then_some(Kind::Universal)
}

/// A COFF object begins with its machine and nothing else to know it by, so all that its header says must hold:
/// no optional header, not an image, a symbol table and sections that lie within the file.
fn coff_object<Coff: coff::CoffHeader>(bytes: &[u8]) -> Option<Kind> {
    let file = coff::CoffFile::<&[u8], Coff>::parse(bytes).ok()?;
    let header = file.coff_header();
    let image = object::pe::IMAGE_FILE_EXECUTABLE_IMAGE | object::pe::IMAGE_FILE_DLL;
    // A plain header's bytes 16 and 17 are the size of an optional header; a bigobj has none.
    let optional = !Coff::is_type_bigobj() && bytes.get(16..18) != Some(&[0, 0]);
    if optional || header.characteristics().0 & image.0 != 0 {
        return None;
    }
    if header.number_of_sections() == 0 && header.number_of_symbols() == 0 {
        return None;
    }
    let whole = file.sections().all(|section| section.data().is_ok());
    whole.then(|| Kind::Native(Native { format: Format::Coff, machine: machine_of(&file) }))
}

/// A short import object: magic, machine, and the names of a symbol and its DLL, of the size the header says.
fn coff_import(bytes: &[u8]) -> Option<Kind> {
    let file = coff::ImportFile::parse(bytes).ok()?;
    let machine = Machine::of(file.architecture(), file.sub_architecture(), true);
    Some(Kind::Native(Native { format: Format::Coff, machine }))
}

fn image<'data, Pe: pe::ImageNtHeaders>(file: &pe::PeFile<'data, Pe>) -> Kind {
    let native = Native { format: Format::Coff, machine: machine_of(file) };
    match file.kind() {
        ObjectKind::Dynamic => Kind::SharedLibrary(native),
        _ => Kind::Executable(native),
    }
}

fn wasm_kind(bytes: &[u8]) -> Option<Kind> {
    let file = wasm::WasmFile::parse(bytes).ok();
    let machine = file.as_ref().map_or(Machine::Wasm32, machine_of);
    let native = Native { format: Format::Wasm, machine };
    // Only relocatable modules have the custom section "linking"
    // (https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md).
    let section = |name: &str| file.as_ref().is_some_and(|file| file.section_by_name(name).is_some());
    Some(if section("dylink.0") {
        Kind::SharedLibrary(native)
    } else if file.is_none() || section("linking") {
        Kind::Native(native)
    } else {
        Kind::Executable(native)
    })
}

fn xcoff_kind<X: xcoff::FileHeader>(bytes: &[u8]) -> Option<Kind> {
    let file = xcoff::XcoffFile::<X>::parse(bytes).ok()?;
    let native = Native { format: Format::Xcoff, machine: machine_of(&file) };
    Some(match file.kind() {
        ObjectKind::Dynamic => Kind::SharedLibrary(native),
        ObjectKind::Executable => Kind::Executable(native),
        _ => Kind::Native(native),
    })
}

/// Whether the first part of a file is UTF-8 without control characters other than white space.
fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(8192)];
    let text = match str::from_utf8(head) {
        Ok(text) => text,
        // The cut may fall inside a character.
        Err(error) if error.error_len().is_none() && head.len() < bytes.len() => {
            str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !c.is_ascii_whitespace())
}
