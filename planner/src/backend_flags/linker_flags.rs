//! The words that a linker with DTLTO gives to every backend: the common words of its job file.
//!
//! The question to a linker is a link of a module without code, with the LTO options of a line ([`question`]). The
//! linker's job file holds the answer ([`LinkerFlags::of`]). Another LLVM gives its compiler other words, as LLVM 23
//! does with `-floop-interchange`. [`crate::dtlto::dropped`] handles the options that a linker leaves out. Starts no
//! process.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::dtlto::JobFile;
use crate::link_line::{Argument, options};
use crate::linker::options::of;
use crate::options::Code;
use crate::words::Word;

use super::UNUSED;

/// The words of every backend, and the files that they name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkerFlags {
    /// Compiler arguments, without the compiler and the target.
    pub args: Vec<String>,
    /// Files that the compiler reads because of them.
    pub inputs: Vec<Utf8PathBuf>,
}

impl LinkerFlags {
    /// Those of a job file.
    pub fn of(job_file: &JobFile) -> Self {
        // Each backend has a target and an object of its own.
        let is_own = |arg: &&String| *arg != "-c" && *arg != UNUSED && !arg.starts_with("--target=");
        Self {
            args: job_file.common_args.iter().skip(1).filter(is_own).cloned().collect(),
            inputs: job_file.common_inputs.clone(),
        }
    }

    /// Whether these words are among them, one after the other.
    pub(super) fn say(&self, words: &[String]) -> bool {
        !words.is_empty() && self.args.windows(words.len()).any(|said| said == words)
    }
}

/// Returns the words of a link line that may change the linker's words for its backends.
pub fn question(arguments: &[Argument]) -> Vec<Word> {
    let asks = |code| match code {
        Code::Linked(_)
        | Code::Level
        | Code::CodegenLevel
        | Code::Llvm
        | Code::Processor
        | Code::SampleProfile
        | Code::CsGenerate
        | Code::CsProfile
        | Code::MismatchWarning(_)
        | Code::BlockSections
        | Code::BlockAddressMap(_)
        | Code::UniqueBlockNames(_) => true,
        // These change no code, write files, load a plugin into the linker, or have no spelling for a compiler.
        _ => false,
    };
    let options = options(arguments).filter(|option| of(option).is_some_and(|known| asks(known.code)));
    options.flat_map(|option| &option.words).map(|word| word.clone().into_bytes()).collect()
}
