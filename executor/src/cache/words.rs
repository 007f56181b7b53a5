//! What of a compiler's own (`-cc1`) command decides its object: each word verbatim, but for names and contents.
//!
//! The command is the driver's answer to `-###`, so whatever a driver looks up for itself stands in it in the open:
//! configuration files, `CCC_OVERRIDE_OPTIONS`, response files, the processor that `-march=native` is, defaults.
//! A word is one of these:
//!
//! - a name of this compilation (module, shard, object, other output): a place holder;
//! - an option whose value is a file that is read and whose name does not matter, such as a profile: the option and the
//!   file's content;
//! - `-fdebug-compilation-dir=` and `-fcoverage-compilation-dir=`: nothing, as the directory of a compilation from
//!   bitcode to ELF is recorded in the bitcode;
//! - an option that loads code, that writes a file besides the outputs, or that asks for the processor of the machine:
//!   results of such commands are not kept;
//! - any other word: as it is, and if it or what stands after an equals sign names a file, the file's content too.
//!
//! Where names can stand in an object (CodeView in COFF, `-fembed-bitcode`), they are to be taken verbatim
//! ([`Words::names_matter`]). Which option is which is in `clang::cc1`.

use std::collections::BTreeSet;
use std::path::Path;

use camino::Utf8Path;
use distlto_planner::clang::cc1;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::options::{Code, Files};
use distlto_prepare::kind::{Format, Native};

use super::framed::Framed;
use crate::execute::cc1::{Part, Template};

/// The words of a compiler's command as far as they decide its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// Stands for the words and for the contents of files that they name.
    pub digest: Digest,
    /// Files that the words name, as they spell them.
    pub files: BTreeSet<String>,
    /// Whether names of this compilation may stand in its object.
    pub names_matter: bool,
}

/// Parts of the names of LLVM's own options (`-mllvm`) that read or write files in ways that are not known here.
const LLVM_FILES: &[&str] =
    &["dir", "directory", "dot", "dump", "file", "filename", "output", "path", "view"];

impl Words {
    /// The words of a template. Relative names are taken from `directory`; `digests` knows files by such names. An error
    /// says why results of such commands are not kept.
    pub fn of(template: &Template, directory: &Path, digests: &FileDigests) -> Result<Self, String> {
        let mut framed = Framed::new("distlto words 1");
        let names_matter = names_matter(&template.arguments);
        let mut files = BTreeSet::new();
        let mut before: &[u8] = b"";
        for part in &template.arguments {
            match part {
                Part::Module => framed.add("module", ""),
                Part::ModuleBaseName => framed.add("module name", ""),
                Part::Shard => framed.add("shard", ""),
                Part::Object => framed.add("object", ""),
                Part::Other(at) => framed.add("output", at.to_le_bytes()),
                Part::Word(word) => {
                    let text = std::str::from_utf8(word).map_err(|_| format!("{word:?} is not UTF-8"))?;
                    let llvm = before == b"-mllvm";
                    if let Some(reason) = refusal(text, llvm) {
                        return Err(format!("{text} {reason}"));
                    }
                    let known = cc1::find(word);
                    let code = known.map_or(Code::Same, |known| known.option.code);
                    if let Some(known) = known.filter(|known| known.option.files == Files::Read) {
                        let (option, file) = text.split_at(text.len() - known.value.len());
                        framed.add("option", option);
                        framed.content("content", &look(file, digests)?);
                        files.insert(file.to_owned());
                    } else if names_matter || code != Code::Directory {
                        framed.add("word", text);
                        for name in names_in(text) {
                            let place = directory.join(name);
                            if place.is_file() {
                                framed.content("content", &look(name, digests)?);
                                files.insert(name.to_owned());
                            } else if llvm && place.is_dir() {
                                return Err(format!("{text} names a directory"));
                            }
                        }
                    }
                }
            }
            before = if let Part::Word(word) = part { word } else { b"" };
        }
        Ok(Self { digest: framed.finish(), files, names_matter })
    }
}

fn look(file: &str, digests: &FileDigests) -> Result<Digest, String> {
    digests.digest(Utf8Path::new(file)).map_err(|error| error.to_string())
}

/// Why results of commands with such a word are not kept. `llvm` says that it is an option of LLVM's own, or its value.
fn refusal(word: &str, llvm: bool) -> Option<&'static str> {
    let known = cc1::find(word.as_bytes()).map(|known| known.option.files);
    let files = match llvm {
        true => {
            let name = word.split('=').next().unwrap_or(word);
            word.starts_with('-') && name.split(['-', '_']).any(|part| LLVM_FILES.contains(&part))
        }
        false => word.starts_with('@') || known == Some(Files::Unnamed),
    };
    if word == "native" || word.ends_with("=native") {
        Some("asks for the processor of this machine")
    } else if known == Some(Files::Loaded) {
        Some("loads code that is not the compiler's")
    } else if files {
        Some("may read or write files that are not known")
    } else {
        None
    }
}

/// What of a word may be a file's name: all of it, and what stands after each equals sign.
fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let after = word.match_indices('=').map(|(at, _)| &word[at + 1..]);
    [word].into_iter().chain(after).filter(|name| !name.is_empty())
}

fn names_matter(arguments: &[Part]) -> bool {
    let words =
        || arguments.iter().filter_map(|part| if let Part::Word(word) = part { Some(word) } else { None });
    let triple = words().skip_while(|word| *word != b"-triple").nth(1);
    let format = triple.and_then(|triple| Native::of_triple(std::str::from_utf8(triple).ok()?));
    format.is_none_or(|native| native.format != Format::Elf)
        || words().any(|word| cc1::find(word).is_some_and(|known| known.option.code == Code::Names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_commands_whose_results_are_not_kept() {
        for word in [
            "-fpass-plugin=x.so",
            "-load",
            "-ftime-trace=x.json",
            "-save-temps=cwd",
            "-opt-record-file",
            "native",
        ] {
            assert!(refusal(word, false).is_some(), "{word}");
        }
        for word in ["-load=x.so", "-time-trace-file=x", "-dot-cfg-mssa=x", "-tune=native", "-mc-dump_file"] {
            assert!(refusal(word, true).is_some(), "{word}");
        }
        for word in [
            "-O2",
            "-target-cpu",
            "znver5",
            "-ffunction-sections",
            "-emit-obj",
            "-fprofile-sample-use=x",
            "file",
        ] {
            assert!(refusal(word, false).is_none(), "{word}");
        }
        for word in ["-inline-threshold=3", "-import-instr-limit=5", "-profile-summary-hot-count=3", "file"] {
            assert!(refusal(word, true).is_none(), "{word}");
        }
    }

    #[test]
    fn names_that_may_be_files() {
        let names: Vec<_> = names_in("-fbasic-block-sections=list=a=b").collect();
        assert_eq!(names, ["-fbasic-block-sections=list=a=b", "list=a=b", "a=b", "b"]);
    }
}
