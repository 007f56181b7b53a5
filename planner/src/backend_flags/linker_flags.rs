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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend_flags::of_distributed_line;
    use crate::dtlto;
    use crate::link_line::parse;

    fn line(line: &str) -> Vec<Argument> {
        parse(line.split_whitespace().map(|word| word.as_bytes().to_vec())).expect("a link line")
    }

    /// As LLVM 23 writes it, for a position-independent program with a profile.
    const JOB_FILE: &str = r#"{"common": {"linker_output": "p", "args": ["cc", "-c", "--target=x86_64-pc-linux-gnu", "-O2",
        "-faddrsig", "-ffunction-sections", "-fdata-sections", "-floop-interchange", "-fpic", "-mllvm", "-no-pgo-warn-mismatch",
        "-fprofile-sample-use=s.prof", "-Wno-unused-command-line-argument"], "inputs": ["s.prof"]},
        "jobs": [{"args": ["m.o", "-fthinlto-index=m.bc", "-o", "m.native.o"], "inputs": ["m.o", "m.bc"], "outputs": ["m.native.o"]}]}"#;

    #[test]
    fn what_the_linker_says_comes_first_and_what_it_leaves_out_follows() {
        let said = LinkerFlags::of(&dtlto::read(JOB_FILE.as_bytes(), "job").expect("a job file"));
        assert_eq!(said.inputs, ["s.prof"]);
        let options = "-pie --lto-sample-profile=s.prof --no-lto-pgo-warn-mismatch -mllvm -inline-threshold=3 -plugin-opt=mcpu=haswell";
        let extra = ["-fno-plt".to_owned()];
        let flags = of_distributed_line(&line(options), Some(&said), &extra).expect("flags");
        assert_eq!(
            flags.args.join(" "),
            "-O2 -faddrsig -ffunction-sections -fdata-sections -floop-interchange -fpic -mllvm -no-pgo-warn-mismatch \
             -Xclang -fprofile-sample-use=s.prof -mllvm -inline-threshold=3 -march=haswell -Wno-unused-command-line-argument -fno-plt"
        );
        assert_eq!(flags.inputs, ["s.prof"], "named once");
    }

    #[test]
    fn a_fixed_place_is_said_where_the_linker_says_nothing() {
        let said = LinkerFlags { args: vec!["-O3".to_owned()], ..LinkerFlags::default() };
        let flags = of_distributed_line(&line("--lto-O3 --no-pie"), Some(&said), &[]).expect("flags");
        assert_eq!(flags.args.join(" "), "-O3 -fno-pic -Wno-unused-command-line-argument");
    }

    #[test]
    fn a_question_has_what_changes_code_and_nothing_else() {
        let words = question(&line(
            "-pie -o p -m elf_x86_64 --lto-O3 -mllvm -x=1 a.o --start-lib b.o --end-lib -plugin-opt=mcpu=haswell -lc \
             --lto-sample-profile=s -save-temps --thinlto-jobs=3 --thinlto-remote-compiler-arg=-fno-pic -Map=m",
        ));
        let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        assert_eq!(
            words.join(" "),
            "-pie --lto-O3 -mllvm -x=1 -plugin-opt=mcpu=haswell --lto-sample-profile=s"
        );
    }
}
