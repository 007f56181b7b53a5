//! Compares the contents of a native object with those of its module.
//!
//! A compiler that was given another module, or none, writes a whole object all the same. Which contents are certain the
//! planner says (`contents.rs`). Symbols are judged for the formats and machines below, sections where the format has a section
//! for a list of constructors. Knows nothing of bitcode.

use std::collections::HashSet;

use distlto_planner::contents::{Constructors, Contents, Required};
use object::{Architecture, BinaryFormat, Object, ObjectSection, ObjectSymbol, SymbolKind};

/// How many symbols a message names.
const NAMED: usize = 3;
/// Suffix that a link appends to the name of a local symbol that other modules refer to.
const PROMOTED: &[u8] = b".llvm.";
/// Suffix that control-flow integrity appends to the name of a function; the jump table gets the plain name.
const CHECKED: &[u8] = b".cfi";
/// Prefix of a variable's name on targets without thread-local storage.
const EMULATED: &[u8] = b"__emutls_v.";

/// Where the objects of a format list the functions to call before `main` and after it (LLVM's `getStaticCtorSection`).
struct Lists {
    /// How the names of sections begin that list functions to be called before `main`.
    before_main: &'static [&'static [u8]],
    /// None where the format has no such list.
    after_main: &'static [&'static [u8]],
    /// Whether a compiler's object names the module's source file.
    names_source: bool,
}

const ELF: Lists = Lists {
    before_main: &[b".init_array", b".ctors", b".preinit_array"],
    after_main: &[b".fini_array", b".dtors"],
    names_source: true,
};
/// For MSVC and for MinGW.
const COFF: Lists =
    Lists { before_main: &[b".CRT$XC", b".ctors"], after_main: &[b".CRT$XT", b".dtors"], names_source: true };
/// A constructor registers the destructors, and LLVM removes those that do nothing.
const MACHO: Lists = Lists { before_main: &[b"__mod_init_func"], after_main: &[], names_source: false };

/// Returns a sentence about the missing contents of an object.
pub(super) fn missing(file: &object::File<'_>, contents: &Contents) -> Option<String> {
    if !is_judged(file) {
        return None;
    }
    let defined = Defined::of(file);
    let lacking: Vec<_> = contents.symbols.iter().filter(|required| !defined.has(required)).collect();
    if !lacking.is_empty() {
        return Some(format!("it does not define {}", names(&lacking)));
    }
    let lists = match file.format() {
        BinaryFormat::Elf => ELF,
        BinaryFormat::Coff => COFF,
        BinaryFormat::MachO => MACHO,
        // WebAssembly has no section for the list.
        _ => return None,
    };
    let names: HashSet<&[u8]> = file.sections().filter_map(|section| section.name_bytes().ok()).collect();
    let has = |starts: &[&[u8]]| names.iter().any(|name| starts.iter().any(|start| name.starts_with(start)));
    // Mach-O has the segment before the name, and perhaps type and attributes after it.
    let name_of = |section: &[u8]| match file.format() {
        BinaryFormat::MachO => {
            section.split(|&byte| byte == b',').nth(1).unwrap_or(section).trim_ascii().to_vec()
        }
        _ => section.to_vec(),
    };
    let lacks = |section: &&Vec<u8>| !names.contains(name_of(section).as_slice());
    if let Some(section) = contents.sections.iter().find(lacks) {
        return Some(format!("it has no section {}", text(section)));
    }
    if contents.has_destructors && !lists.after_main.is_empty() && !has(lists.after_main) {
        return Some("it has no list of destructors".to_owned());
    }
    let constructors = contents.constructors.as_ref().filter(|_| !has(lists.before_main))?;
    without_list(file, constructors, lists.names_source)
}

/// Other machines may treat symbols in their own ways, as those of graphics processors do.
fn is_judged(file: &object::File<'_>) -> bool {
    use Architecture::{Aarch64, Arm, I386, Riscv32, Riscv64, Wasm32, X86_64};
    let machine = file.architecture();
    match file.format() {
        BinaryFormat::Elf => matches!(machine, X86_64 | I386 | Aarch64 | Arm | Riscv32 | Riscv64),
        BinaryFormat::MachO => matches!(machine, X86_64 | Aarch64),
        BinaryFormat::Wasm => machine == Wasm32,
        BinaryFormat::Coff => matches!(machine, X86_64 | I386 | Aarch64),
        _ => false,
    }
}

/// Names that an object defines for other files.
struct Defined<'d> {
    names: HashSet<&'d [u8]>,
    /// Those before a link's suffix.
    promoted: HashSet<&'d [u8]>,
}

impl<'d> Defined<'d> {
    fn of(file: &'d object::File<'_>) -> Self {
        let defined = file.symbols().filter(|symbol| !symbol.is_undefined() && !symbol.is_local());
        let names: HashSet<_> = defined.filter_map(|symbol| symbol.name_bytes().ok()).collect();
        let suffix = |name: &[u8]| name.windows(PROMOTED.len()).rposition(|found| found == PROMOTED);
        let promoted = names.iter().filter_map(|name| name.get(..suffix(name)?)).collect();
        Self { names, promoted }
    }

    fn has(&self, required: &Required) -> bool {
        let name = required.name.as_slice();
        let has = |parts: [&[u8]; 2]| self.names.contains(parts.concat().as_slice());
        self.names.contains(name)
            || (required.is_promoted && self.promoted.contains(name))
            || (required.is_thread_local && has([EMULATED, name]))
            || has([name, CHECKED])
    }
}

fn names(lacking: &[&Required]) -> String {
    let named: Vec<_> = lacking.iter().take(NAMED).map(|required| text(&required.name)).collect();
    let more = match lacking.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// An object without a list of constructors is right if the compiler has evaluated them. Then it has none of the functions that
/// only the list calls, and it names the module's source file where the format has a place for that.
fn without_list(file: &object::File<'_>, constructors: &Constructors, names_source: bool) -> Option<String> {
    let base = |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().map(<[u8]>::to_vec);
    let source = base(&constructors.source);
    let mut files = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::File);
    let is_source =
        |symbol: object::Symbol<'_, '_>| symbol.name_bytes().is_ok_and(|name| base(name) == source);
    if names_source && !files.any(is_source) {
        let source = text(&constructors.source);
        return Some(format!("it has no list of constructors, and does not name the source file {source}"));
    }
    let functions = file.symbols().filter(|symbol| symbol.is_local() && !symbol.is_undefined());
    let alone = functions.filter_map(|symbol| symbol.name_bytes().ok().map(<[u8]>::to_vec));
    let left = alone.into_iter().find(|name| constructors.alone.contains(name))?;
    Some(format!("it has no list of constructors, but the constructor {}", text(&left)))
}
