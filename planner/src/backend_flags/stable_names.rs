//! Stable names: LLVM calls a local that an importer needs after the source file, not after the hash of its module.
//!
//! An edit changes that hash, and with it the code of all modules that import such a local. Does not check whether
//! modules share a source file. The option is that of `llvm/lib/Transforms/Utils/FunctionImportUtils.cpp`.

/// LLVM's option, without its hyphen.
const OPTION: &str = "use-source-filename-for-promoted-locals";

/// The words of a backend that has stable names; LLVM 16 and later know them.
pub const ARGUMENTS: [&str; 2] = ["-mllvm", "-use-source-filename-for-promoted-locals"];

/// LLVM's option by which all locals are promoted, needed or not.
const ALWAYS: &str = "always-rename-promoted-locals";

/// Whether a word has one of LLVM's options on the names of promoted locals, such as `-mllvm=-OPTION=false`.
pub fn is_of_names(word: &str) -> bool {
    word.split('=').any(|part| [OPTION, ALWAYS].contains(&part.trim_start_matches('-')))
}

/// A source's name as LLVM writes it into the names of promoted locals.
pub fn spelled(source: &str) -> String {
    source.bytes().map(|byte| if byte.is_ascii_alphanumeric() { byte.into() } else { '_' }).collect()
}

/// Says why two modules, each with its source, cannot have stable names in one link.
pub fn alike((one, first): (&str, &str), (other, second): (&str, &str)) -> String {
    match first == second {
        true => format!("{one} and {other} both come from {first}"),
        false => format!("{one} comes from {first} and {other} from {second}, which LLVM spells alike"),
    }
}
