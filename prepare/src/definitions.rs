//! What a native object defines that other files may define too: names, how they are taken out of it, and which names it
//! refers to without a need of them.
//!
//! Weak symbols go to the first file that defines them, COMDAT groups to the first that holds them. Two other definitions
//! of one name are an error, unless the linker is told to take the first. Knows nothing of links.

use std::collections::HashSet;

use object::elf::{self, FileHeader32, FileHeader64, SHF_EXCLUDE, SHT_SYMTAB};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{Endian, Endianness, FileKind, Object, ObjectKind, ObjectSymbol, SectionIndex, SymbolIndex};

/// Names of an object, by how definitions of them compete with those of other files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Symbols that stand aside for any earlier definition.
    pub weak: HashSet<Vec<u8>>,
    /// Symbols that stand aside for none, but for common ones, which only their size tells apart.
    pub strong: HashSet<Vec<u8>>,
    /// COMDAT groups.
    pub groups: HashSet<Vec<u8>>,
}

impl Definitions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.weak.is_empty() && self.strong.is_empty() && self.groups.is_empty()
    }
}

/// The definitions of an ELF object. What is none has none: the linker says what is wrong with it.
pub fn definitions(bytes: &[u8]) -> Definitions {
    let found = match FileKind::parse(bytes) {
        Ok(FileKind::Elf32) => Elf::<FileHeader32<Endianness>>::open(bytes).and_then(|elf| elf.definitions()),
        Ok(FileKind::Elf64) => Elf::<FileHeader64<Endianness>>::open(bytes).and_then(|elf| elf.definitions()),
        _ => return Definitions::default(),
    };
    found.unwrap_or_default()
}

/// The names that an ELF object refers to, and does without where no file defines them.
pub fn weak_references(bytes: &[u8]) -> HashSet<Vec<u8>> {
    let found = match FileKind::parse(bytes) {
        Ok(FileKind::Elf32) => {
            Elf::<FileHeader32<Endianness>>::open(bytes).and_then(|elf| elf.weak_references())
        }
        Ok(FileKind::Elf64) => {
            Elf::<FileHeader64<Endianness>>::open(bytes).and_then(|elf| elf.weak_references())
        }
        _ => return HashSet::new(),
    };
    found.unwrap_or_default()
}

/// The names that a shared library wants of whoever loads it; of any other file none.
pub fn references(bytes: &[u8]) -> HashSet<Vec<u8>> {
    names_of_library(bytes, |is_undefined| is_undefined)
}

/// The names that a shared library has for whoever loads it; of any other file none.
pub fn definitions_of_library(bytes: &[u8]) -> HashSet<Vec<u8>> {
    names_of_library(bytes, |is_undefined| !is_undefined)
}

fn names_of_library(bytes: &[u8], wanted: impl Fn(bool) -> bool) -> HashSet<Vec<u8>> {
    let Ok(file) = object::File::parse(bytes) else { return HashSet::new() };
    if file.kind() != ObjectKind::Dynamic {
        return HashSet::new();
    }
    let wanted = file.dynamic_symbols().filter(|symbol| wanted(symbol.is_undefined()));
    wanted.filter_map(|symbol| Some(symbol.name_bytes().ok()?.to_vec())).collect()
}

/// An ELF object without some of its definitions, as a linker takes it where another file has them: what defined a symbol
/// refers to it, and the sections of a group are gone. `None` for what is no such object.
pub fn without(bytes: &[u8], lost: &Definitions) -> Option<Vec<u8>> {
    match FileKind::parse(bytes).ok()? {
        FileKind::Elf32 => {
            Elf::<FileHeader32<Endianness>>::open(bytes).and_then(|elf| elf.without(lost, &ELF32)).ok()
        }
        FileKind::Elf64 => {
            Elf::<FileHeader64<Endianness>>::open(bytes).and_then(|elf| elf.without(lost, &ELF64)).ok()
        }
        _ => None,
    }
}

/// Where fields are in the records of a class of ELF files.
struct Fields {
    symbol_section: usize,
    section_flags_size: usize,
}

const ELF32: Fields = Fields { symbol_section: 14, section_flags_size: 4 };
const ELF64: Fields = Fields { symbol_section: 6, section_flags_size: 8 };
/// Behind name and type, in both classes.
const SECTION_FLAGS: usize = 8;

struct Elf<'a, H: FileHeader<Endian = Endianness>> {
    bytes: &'a [u8],
    endian: Endianness,
    headers: usize,
    sections: SectionTable<'a, H>,
    symbols: SymbolTable<'a, H>,
}

/// A COMDAT group: its name, where its section is, and its members.
type Group<'a> = (&'a [u8], usize, Vec<usize>);

impl<'a, H: FileHeader<Endian = Endianness>> Elf<'a, H> {
    fn open(bytes: &'a [u8]) -> object::read::Result<Self> {
        let header = H::parse(bytes)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, bytes)?;
        let symbols = sections.symbols(endian, bytes, SHT_SYMTAB)?;
        Ok(Self { bytes, endian, headers: place(header.e_shoff(endian)), sections, symbols })
    }

    /// Symbols that other files see, common ones left out: index, name, whether it is weak.
    fn defined(&self) -> impl Iterator<Item = object::read::Result<(usize, &'a [u8], bool)>> {
        let defined = self.symbols.enumerate().filter(|(_, symbol)| {
            !symbol.is_local() && !symbol.is_undefined(self.endian) && !symbol.is_common(self.endian)
        });
        defined.map(|(index, symbol)| {
            let name = self.symbols.symbol_name(self.endian, symbol)?;
            // Those that are to be unique stand aside like weak ones.
            Ok((index.0, name, symbol.st_bind() != elf::STB_GLOBAL))
        })
    }

    fn weak_references(&self) -> object::read::Result<HashSet<Vec<u8>>> {
        let weak = self
            .symbols
            .iter()
            .filter(|symbol| symbol.is_undefined(self.endian) && symbol.st_bind() == elf::STB_WEAK);
        weak.map(|symbol| Ok(self.symbols.symbol_name(self.endian, symbol)?.to_vec())).collect()
    }

    fn groups(&self) -> object::read::Result<Vec<Group<'a>>> {
        let mut found = Vec::new();
        for section in self.sections.iter() {
            let Some((flags, members)) = section.group(self.endian, self.bytes)? else { continue };
            if flags.contains(elf::GRP_COMDAT) {
                let signature = SymbolIndex(section.sh_info(self.endian) as usize);
                let name = self.symbols.symbol_name(self.endian, self.symbols.symbol(signature)?)?;
                let members = members.iter().map(|member| member.get(self.endian) as usize).collect();
                found.push((name, place(section.sh_offset(self.endian)), members));
            }
        }
        Ok(found)
    }

    fn definitions(&self) -> object::read::Result<Definitions> {
        let mut found = Definitions::default();
        for symbol in self.defined() {
            let (_, name, weak) = symbol?;
            let names = if weak { &mut found.weak } else { &mut found.strong };
            names.insert(name.to_vec());
        }
        found.groups = self.groups()?.into_iter().map(|(name, ..)| name.to_vec()).collect();
        Ok(found)
    }

    fn without(&self, lost: &Definitions, fields: &Fields) -> object::read::Result<Vec<u8>> {
        let mut bytes = self.bytes.to_vec();
        let mut write = |at: usize, field: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        let symbols = place(self.sections.section(self.symbols.section())?.sh_offset(self.endian));
        for symbol in self.defined() {
            let (index, name, weak) = symbol?;
            let names = if weak { &lost.weak } else { &lost.strong };
            if names.contains(name) {
                let at = symbols + index * size_of::<H::Sym>() + fields.symbol_section;
                write(at, &elf::SHN_UNDEF.0.to_ne_bytes());
            }
        }
        for (name, at, members) in self.groups()? {
            if !lost.groups.contains(name) {
                continue;
            }
            // No COMDAT group any more, so that it takes the name from no other file.
            write(at, &0_u32.to_ne_bytes());
            for member in members {
                let section = self.sections.section(SectionIndex(member))?;
                let flags = (section.sh_flags(self.endian) | SHF_EXCLUDE).0;
                let at = self.headers + member * size_of::<H::SectionHeader>() + SECTION_FLAGS;
                match fields.section_flags_size {
                    4 => write(at, &self.endian.write_u32(flags as u32)),
                    _ => write(at, &self.endian.write_u64(flags)),
                }
            }
        }
        Ok(bytes)
    }
}

/// A place in a file that was read; there is none behind what memory can hold.
fn place(offset: impl Into<u64>) -> usize {
    usize::try_from(offset.into()).unwrap_or(usize::MAX / 2)
}
