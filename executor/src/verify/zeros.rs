//! Zeros where an object must hold something: a crash, a full disk or a network may leave such a file of the right
//! size.
//!
//! Such a file has whole pages of zeros, or only zeros after its header. Data may be zero, so that only code and the
//! tables of ELF are judged: a table that is all zeros, a whole page of zeros in code, and code that is nothing else.
//! Knows bytes and sections alone.

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, SectionKind, elf};

/// The unit in which file systems write data, and lose it.
const PAGE: usize = 4096;

/// Says where zeros are that cannot be right.
pub(super) fn damage(file: &object::File<'_>, bytes: &[u8]) -> Option<String> {
    let tables = match file {
        object::File::Elf32(_) => tables::<elf::FileHeader32<Endianness>>(bytes),
        object::File::Elf64(_) => tables::<elf::FileHeader64<Endianness>>(bytes),
        _ => None,
    };
    tables.or_else(|| code(file))
}

fn code(file: &object::File<'_>) -> Option<String> {
    let (mut size, mut zero) = (0, 0);
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let (Ok(data), Some((start, _))) = (section.data(), section.file_range()) else { continue };
        // Pages are those of the file.
        let before = usize::try_from(start).unwrap_or(0).wrapping_neg() % PAGE;
        let whole = data.get(before..).unwrap_or_default().chunks_exact(PAGE).position(is_zero);
        if let Some(page) = whole {
            let name = section.name().unwrap_or("?");
            return Some(format!(
                "a page of zeros in its code, at {} of section {name}",
                before + page * PAGE
            ));
        }
        size += data.len();
        zero += if is_zero(data) { data.len() } else { 0 };
    }
    (size > 0 && zero == size).then(|| "nothing but zeros for code".to_owned())
}

/// Tables of an ELF file that hold nothing, though they are not empty.
fn tables<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<String> {
    let header = H::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.section_headers(endian, bytes).ok()?;
    // The first one is empty in every file.
    for (index, section) in sections.iter().enumerate().skip(1) {
        let what = match section.sh_type(endian) {
            elf::SHT_NULL => return Some(format!("zeros in the place of its section header {index}")),
            elf::SHT_SYMTAB => "symbol table",
            elf::SHT_STRTAB => "string table",
            elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL => "table of relocations",
            elf::SHT_GROUP => "section group",
            _ => continue,
        };
        let data = section.data(endian, bytes).ok()?;
        // The first symbol and the first string are empty in every table.
        let empty = match section.sh_type(endian) {
            elf::SHT_SYMTAB => usize::try_from(section.sh_entsize(endian).into()).unwrap_or(0),
            elf::SHT_STRTAB => 1,
            _ => 0,
        };
        if data.len() > empty && is_zero(data) {
            return Some(format!("zeros in the place of its {what}, section {index}"));
        }
    }
    None
}

/// Ends at the first byte that is not.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}
