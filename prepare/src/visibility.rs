//! How far files let a symbol be seen: what native objects say of it, and an object that says it for others.
//!
//! A linker makes one symbol of all that files say of a name, and the narrowest visibility counts, whoever says it
//! ("Symbol Visibility" in the generic ELF ABI). Knows nothing of links.

use std::collections::{HashMap, HashSet};

use object::elf::{self, SymbolInfo};
use object::write::{Symbol, SymbolSection};
use object::{
    BinaryFormat, File, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SectionKind,
    SymbolFlags, SymbolKind, SymbolScope, write,
};

/// What an object expects of processors; an output expects it if all of its objects do.
const PROPERTIES: &str = ".note.gnu.property";

/// Who may see a symbol. The least of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// What is linked with it, and nobody who is given its address.
    Internal,
    /// What is linked with it.
    Hidden,
    /// Everybody, but what is linked with it sees no other one of the name.
    Protected,
    /// Everybody.
    Default,
}

/// What a native object says of symbols.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Common ones.
    pub common: HashSet<Vec<u8>>,
    /// Those that not everybody may see, whether it defines them or not.
    pub narrowed: HashMap<Vec<u8>, Visibility>,
}

/// What an ELF object says; of any other file nothing.
pub fn mentions(bytes: &[u8]) -> Mentions {
    let mut found = Mentions::default();
    let Some(file) = relocatable(bytes) else { return found };
    for symbol in file.symbols().filter(ObjectSymbol::is_global) {
        let Ok(name) = symbol.name_bytes() else { continue };
        if symbol.is_common() {
            found.common.insert(name.to_vec());
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

/// An object that refers to symbols, so that nobody else sees more of them, and has no need of them. It is for the machine
/// of `like`, an object that is linked too, and expects the same of processors. `None` where that is no ELF object.
pub fn references(like: &[u8], narrowed: &[(&[u8], Visibility)]) -> Option<Vec<u8>> {
    let like = relocatable(like)?;
    let mut made = write::Object::new(BinaryFormat::Elf, like.architecture(), like.endianness());
    made.set_sub_architecture(like.sub_architecture());
    made.flags = like.flags();
    if let Some(section) = like.section_by_name(PROPERTIES) {
        let copy = made.add_section(Vec::new(), PROPERTIES.into(), SectionKind::Note);
        made.section_mut(copy).flags = SectionFlags::Elf { sh_type: elf::SHT_NOTE, sh_flags: elf::SHF_ALLOC };
        made.append_section_data(copy, section.data().ok()?, section.align());
    }
    for &(name, visibility) in narrowed {
        let st_other = match visibility {
            Visibility::Internal => elf::STV_INTERNAL,
            Visibility::Hidden => elf::STV_HIDDEN,
            Visibility::Protected => elf::STV_PROTECTED,
            Visibility::Default => elf::STV_DEFAULT,
        };
        made.add_symbol(Symbol {
            name: name.to_vec(),
            value: 0,
            size: 0,
            kind: SymbolKind::Unknown,
            scope: SymbolScope::Unknown,
            weak: true,
            section: SymbolSection::Undefined,
            flags: SymbolFlags::Elf {
                st_info: SymbolInfo::new(elf::STB_WEAK, elf::STT_NOTYPE),
                st_other: st_other.into(),
            },
        });
    }
    made.write().ok()
}

fn relocatable(bytes: &[u8]) -> Option<File<'_>> {
    let file = File::parse(bytes).ok()?;
    (file.format() == BinaryFormat::Elf && file.kind() == ObjectKind::Relocatable).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_refers_to_symbols_says_how_far_they_are_seen() {
        let own = references_of_this_machine();
        let narrowed = [(&b"a"[..], Visibility::Hidden), (b"b", Visibility::Protected)];
        let made = mentions(&references(&own, &narrowed).expect("an object"));
        assert!(made.common.is_empty());
        assert_eq!(made.narrowed.len(), 2);
        assert_eq!(made.narrowed[&b"a"[..]], Visibility::Hidden);
        assert_eq!(made.narrowed[&b"b"[..]], Visibility::Protected);
        assert_eq!(references(b"!<arch>\n", &narrowed), None);
        assert!(Visibility::Internal < Visibility::Hidden && Visibility::Protected < Visibility::Default);
    }

    fn references_of_this_machine() -> Vec<u8> {
        use object::{Architecture, Endianness};
        write::Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little).write().unwrap()
    }
}
