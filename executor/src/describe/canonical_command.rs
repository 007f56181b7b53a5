//! A compiler's own (`-cc1`) command with canonical names: each word verbatim, but for names of files.
//!
//! The command is the driver's answer to `-###`, so it shows everything that a driver looks up for itself:
//! configuration files, `CCC_OVERRIDE_OPTIONS`, response files, the processor that `-march=native` is, defaults.
//! A word is one of these:
//!
//! - a name of this compilation (module, shard, object, other output): that of the canonical description, but for the name
//!   of split debug information, which stands in the object;
//! - an option with a file to read as its value, such as a profile, if the name of the file does not matter: the option
//!   and a canonical name;
//! - `-fdebug-compilation-dir=` and `-fcoverage-compilation-dir=`: left out, as the directory of a compilation from
//!   bitcode to ELF is recorded in the bitcode;
//! - an option that loads code, that writes a file besides the outputs, or that asks for the processor of the machine:
//!   results of such commands are not kept;
//! - any other word: as it is. If the word, or its part after an equals sign, names a file, that is an input under its
//!   name. A file that no tree of inputs can hold under its name binds the command to this machine.
//!
//! Where names can stand in an object (CodeView with the command line, `-fembed-bitcode`), they decide the result and bind the command to
//! its place ([`CanonicalCommand::names_matter`]). Which option is which is in `clang::cc1`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use camino::Utf8Path;
use distlto_planner::clang::cc1;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::options::{Code, Files};
use distlto_prepare::kind::{Format, Native};

use crate::execute::cc1::{SPLIT_FILE, Template, TemplateWord};
use distlto_prepare::frame::Framed;

/// The canonical name of an object.
pub const OBJECT: &str = "object.o";
/// The canonical name of its index shard.
pub const SHARD: &str = "shard.thinlto.bc";

/// The words of all compilations of one template.
#[derive(Debug)]
pub struct CanonicalCommand {
    parts: Vec<CanonicalWord>,
    /// Files that the words name: by canonical name, as they spell them.
    pub files: BTreeMap<String, String>,
    /// Files that stand in no tree of inputs, by name and content.
    elsewhere: Framed,
    /// Whether names of this compilation may stand in its object.
    pub names_matter: bool,
    /// Why the command can run on this machine only.
    pub local_only: Option<String>,
}

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CanonicalWord {
    Word(String),
    Module,
    /// The path of another output, by its index.
    Output(usize),
    /// Its name in objects.
    OutputName(usize),
}

/// Returns the canonical name of an output by its index.
pub fn output(at: usize) -> Cow<'static, str> {
    match at {
        0 => OBJECT.into(),
        _ => format!("output-{at}").into(),
    }
}

/// Parts of the names of LLVM's own options (`-mllvm`) that read or write files in ways that are not known here.
const LLVM_FILES: &[&str] =
    &["dir", "directory", "dot", "dump", "file", "filename", "output", "path", "view"];

/// Keeps the command line out of CodeView.
const NO_COMMAND_LINE: &[u8] = b"-gno-codeview-command-line";

/// Such options that are known to read and write none.
const NO_FILES: &[&str] = &["-use-source-filename-for-promoted-locals"];

impl CanonicalCommand {
    /// The words of a template. Relative names are taken from `directory`; `digests` knows files by such names. An error
    /// says why results of such commands are not kept.
    pub fn of(template: &Template, directory: &Path, digests: &FileDigests) -> Result<Self, String> {
        let mut words = Self {
            parts: Vec::new(),
            files: BTreeMap::new(),
            elsewhere: Framed::new("distlto files elsewhere 1"),
            names_matter: names_matter(&template.arguments),
            local_only: None,
        };
        let compiler = template.compiler.to_str();
        words.parts.push(CanonicalWord::Word(compiler.ok_or("the compiler's name is not UTF-8")?.to_owned()));
        let mut before: &[u8] = b"";
        for part in &template.arguments {
            match part {
                TemplateWord::Module | TemplateWord::ModuleBaseName => {
                    words.parts.push(CanonicalWord::Module)
                }
                TemplateWord::Shard => {
                    words.parts.push(CanonicalWord::Word(format!("-fthinlto-index={SHARD}")))
                }
                TemplateWord::Object => words.parts.push(CanonicalWord::Word(OBJECT.to_owned())),
                TemplateWord::Other(at) if before == SPLIT_FILE => {
                    words.parts.push(CanonicalWord::OutputName(*at))
                }
                TemplateWord::Other(at) => words.parts.push(CanonicalWord::Output(*at)),
                TemplateWord::Word(word) => {
                    let text = std::str::from_utf8(word).map_err(|_| format!("{word:?} is not UTF-8"))?;
                    let llvm = before == b"-mllvm";
                    if let Some(reason) = refusal(text, llvm) {
                        return Err(format!("{text} {reason}"));
                    }
                    words.word(text, llvm, directory, digests)?;
                }
            }
            before = if let TemplateWord::Word(word) = part { word } else { b"" };
        }
        if words.names_matter {
            words.local_only = Some("names of files stand in its object".to_owned());
        }
        Ok(words)
    }

    fn word(
        &mut self,
        text: &str,
        llvm: bool,
        directory: &Path,
        digests: &FileDigests,
    ) -> Result<(), String> {
        let known = cc1::find(text.as_bytes());
        if let Some(known) = known.filter(|known| known.option.files == Files::Read) {
            let (option, file) = text.split_at(text.len() - known.value.len());
            let name = format!("file-{}", self.files.len());
            self.parts.push(CanonicalWord::Word(format!("{option}{name}")));
            self.files.insert(name, file.to_owned());
            return Ok(());
        }
        if !self.names_matter && known.is_some_and(|known| known.option.code == Code::Directory) {
            return Ok(());
        }
        self.parts.push(CanonicalWord::Word(text.to_owned()));
        for name in names_in(text) {
            let place = directory.join(name);
            if place.is_file() {
                if is_below(name) {
                    self.files.insert(name.to_owned(), name.to_owned());
                } else {
                    self.elsewhere.add("name", name);
                    self.elsewhere.content("content", &look(name, digests)?);
                    self.local_only = Some(format!("{text} names a file outside of the working directory"));
                }
            } else if llvm && place.is_dir() {
                return Err(format!("{text} names a directory"));
            }
        }
        Ok(())
    }

    /// Files that stand in no tree of inputs, by name and content.
    pub fn elsewhere(&self) -> Digest {
        self.elsewhere.clone().finish()
    }

    /// Returns the words of one compilation: `module` is the canonical name, `others` are its outputs besides the
    /// object.
    pub fn words_of<'a>(&'a self, module: &'a str, others: &[&'a str]) -> Vec<Cow<'a, str>> {
        let word = |part: &'a CanonicalWord| match part {
            CanonicalWord::Word(word) => word.into(),
            CanonicalWord::Module => module.into(),
            CanonicalWord::Output(at) => output(at + 1),
            CanonicalWord::OutputName(at) => others.get(*at).copied().unwrap_or_default().into(),
        };
        self.parts.iter().map(word).collect()
    }
}

/// Whether a tree of inputs can hold a file under this name.
pub fn is_below(name: &str) -> bool {
    !name.split('/').any(|part| matches!(part, "" | "." | ".."))
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
            word.starts_with('-')
                && !NO_FILES.contains(&word)
                && name.split(['-', '_']).any(|part| LLVM_FILES.contains(&part))
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

/// Returns the parts of a word that may be a file's name: all of it, and the rest after each equals sign.
pub fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let after = word.match_indices('=').map(|(at, _)| &word[at + 1..]);
    [word].into_iter().chain(after).filter(|name| !name.is_empty())
}

fn names_matter(arguments: &[TemplateWord]) -> bool {
    let words = || {
        arguments
            .iter()
            .filter_map(|part| if let TemplateWord::Word(word) = part { Some(word) } else { None })
    };
    let triple = words().skip_while(|word| *word != b"-triple").nth(1);
    let format = triple.and_then(|triple| Native::of_triple(std::str::from_utf8(triple).ok()?));
    let has_none = |native: Native| match native.format {
        Format::Elf | Format::MachO | Format::Wasm => true,
        // CodeView holds the command line, and no other name.
        Format::Coff => words().any(|word| word == NO_COMMAND_LINE),
        Format::Xcoff => false,
    };
    !format.is_some_and(has_none)
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
        for word in [
            "-use-source-filename-for-promoted-locals",
            "-inline-threshold=3",
            "-import-instr-limit=5",
            "-profile-summary-hot-count=3",
            "file",
        ] {
            assert!(refusal(word, true).is_none(), "{word}");
        }
    }

    #[test]
    fn names_that_may_be_files() {
        let names: Vec<_> = names_in("-fbasic-block-sections=list=a=b").collect();
        assert_eq!(names, ["-fbasic-block-sections=list=a=b", "list=a=b", "a=b", "b"]);
    }
}
