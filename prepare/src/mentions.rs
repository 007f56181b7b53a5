//! What native objects say of symbols beside defining them, and an object that says it for others.
//!
//! A linker makes one symbol of all that files say of a name: the narrowest visibility counts, whoever says it, and of common
//! symbols the largest alignment (the generic ELF ABI, "Symbol Table"). Knows nothing of links.

use std::collections::HashMap;

use object::elf::{self, SymbolInfo};
use object::read::elf::Sym;
use object::write::{Symbol, SymbolSection};
use object::{
    BinaryFormat, File, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SectionKind,
    SymbolFlags, SymbolIndex, SymbolKind, SymbolScope, write,
};

/// What an object expects of processors; an output expects it if all of its objects do.
const PROPERTIES: &str = ".note.gnu.property";

/// Who may see a symbol. The least of several counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// What is linked with it, and nobody who is given its address.
    Internal,
    /// What is linked with it.
    Hidden,
    /// Everybody, but what is linked with it sees no other one of the name.
    Protected,
    /// Everybody.
    #[default]
    Default,
}

/// What a native object says of symbols.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Common ones, with their alignments.
    pub common: HashMap<Vec<u8>, u64>,
    /// Those that not everybody may see, whether it defines them or not.
    pub narrowed: HashMap<Vec<u8>, Visibility>,
}

/// What an ELF object says; of any other file nothing.
pub fn mentions(bytes: &[u8]) -> Mentions {
    let mut found = Mentions::default();
    let Some(file) = relocatable(bytes) else { return found };
    for symbol in file.symbols().filter(ObjectSymbol::is_global) {
        let Ok(name) = symbol.name_bytes() else { continue };
        if let Some(alignment) = value(&file, symbol.index()).filter(|_| symbol.is_common()) {
            found.common.insert(name.to_vec(), alignment);
        }
        let visibility = match symbol.flags().elf_visibility() {
            Some(elf::STV_INTERNAL) => Visibility::Internal,
            Some(elf::STV_HIDDEN) => Visibility::Hidden,
            Some(elf::STV_PROTECTED) => Visibility::Protected,
            _ => continue,
        };
        found.narrowed.insert(name.to_vec(), visibility);
    }
    found
}

/// What is to be said of a symbol that others define.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Who may see it at most.
    pub visibility: Visibility,
    /// The least alignment of a common symbol, a power of two.
    pub alignment: Option<u64>,
}

/// An object that says this, and has no need of the symbols. It is for the machine of `like`, an object that is linked too, and
/// expects the same of processors. `None` where that is no ELF object.
pub fn saying(like: &[u8], claims: &[Claim<'_>]) -> Option<Vec<u8>> {
    let like = relocatable(like)?;
    let mut made = write::Object::new(BinaryFormat::Elf, like.architecture(), like.endianness());
    made.set_sub_architecture(like.sub_architecture());
    made.flags = like.flags();
    if let Some(section) = like.section_by_name(PROPERTIES) {
        let copy = made.add_section(Vec::new(), PROPERTIES.into(), SectionKind::Note);
        made.section_mut(copy).flags = SectionFlags::Elf { sh_type: elf::SHT_NOTE, sh_flags: elf::SHF_ALLOC };
        made.append_section_data(copy, section.data().ok()?, section.align());
    }
    for &Claim { name, visibility, alignment } in claims {
        let st_other = match visibility {
            Visibility::Internal => elf::STV_INTERNAL,
            Visibility::Hidden => elf::STV_HIDDEN,
            Visibility::Protected => elf::STV_PROTECTED,
            Visibility::Default => elf::STV_DEFAULT,
        };
        let st_info = match alignment {
            Some(_) => SymbolInfo::new(elf::STB_GLOBAL, elf::STT_OBJECT),
            None => SymbolInfo::new(elf::STB_WEAK, elf::STT_NOTYPE),
        };
        made.add_symbol(Symbol {
            name: name.to_vec(),
            value: alignment.unwrap_or(0),
            // The smallest of several common symbols gives way.
            size: alignment.map_or(0, |_| 1),
            kind: SymbolKind::Unknown,
            scope: SymbolScope::Dynamic,
            weak: alignment.is_none(),
            section: alignment.map_or(SymbolSection::Undefined, |_| SymbolSection::Common),
            flags: SymbolFlags::Elf { st_info, st_other: st_other.into() },
        });
    }
    made.write().ok()
}

/// A symbol's value as it is in the file: of a common one its alignment.
fn value(file: &File<'_>, index: SymbolIndex) -> Option<u64> {
    match file {
        File::Elf32(file) => Some(file.elf_symbol_table().symbol(index).ok()?.st_value(file.endian()).into()),
        File::Elf64(file) => Some(file.elf_symbol_table().symbol(index).ok()?.st_value(file.endian())),
        _ => None,
    }
}

fn relocatable(bytes: &[u8]) -> Option<File<'_>> {
    let file = File::parse(bytes).ok()?;
    (file.format() == BinaryFormat::Elf && file.kind() == ObjectKind::Relocatable).then_some(file)
}

#[cfg(test)]
mod tests {
    use object::{Architecture, Endianness};

    use super::*;

    #[test]
    fn what_is_said_of_symbols_is_heard() {
        let own = write::Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let own = own.write().expect("an object");
        let claims = [
            Claim { name: b"a", visibility: Visibility::Hidden, alignment: None },
            Claim { name: b"b", visibility: Visibility::Protected, alignment: Some(64) },
            Claim { name: b"c", visibility: Visibility::Default, alignment: Some(1) },
        ];
        let made = mentions(&saying(&own, &claims).expect("an object"));
        let narrowed = [(&b"a"[..], Visibility::Hidden), (b"b", Visibility::Protected)];
        assert_eq!(made.narrowed, narrowed.map(|(name, visibility)| (name.to_vec(), visibility)).into());
        assert_eq!(made.common, [(b"b".to_vec(), 64), (b"c".to_vec(), 1)].into());
        assert_eq!(saying(b"!<arch>\n", &claims), None);
        assert!(Visibility::Internal < Visibility::Hidden && Visibility::Protected < Visibility::Default);
    }
}
