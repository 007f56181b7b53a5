//! A ThinLTO link of some lines of C by one compiler and one linker: bitcode, thin link, backend, final link.
//!
//! The commands are those of a link in two steps. Nothing of it outlives the trial.

use std::fs;
use std::io;
use std::path::Path;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::Spawner;
use distlto_planner::runner::Runner;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, path_of, word_of};
use tempfile::TempDir;

use crate::tool::ToolRunner;

/// The module.
pub const MODULE: &str = "check.o";
/// Its index shard.
pub const SHARD: &str = "check.o.thinlto.bc";
/// Its object.
pub const OBJECT: &str = "check.native.o";

const SOURCE: &str = "int distlto_check(int x) { return x * x + 1; }\n";
const COMMON: [&str; 3] = ["-O2", "-fPIC", "-c"];

/// The failure of a trial link.
pub struct TrialFailure {
    /// Which step.
    pub what: &'static str,
    /// The output of the program, or the system's error.
    pub said: String,
}

/// A link after its thin link, in a folder of its own.
pub struct Trial<'a> {
    folder: TempDir,
    compiler: Word,
    linker: Vec<Word>,
    spawner: &'a dyn Spawner,
    cancel: &'a Cancel,
}

impl<'a> Trial<'a> {
    /// Compiles a module and makes its shard. `thin_link` is the linker's option for a thin link alone.
    pub fn new(
        compiler: &str,
        linker: &[Word],
        thin_link: &str,
        spawner: &'a dyn Spawner,
        cancel: &'a Cancel,
    ) -> Result<Self, TrialFailure> {
        let what = "making a directory for a trial";
        let failed = |error: io::Error| TrialFailure { what, said: error.to_string() };
        let folder = tempfile::tempdir().map_err(failed)?;
        fs::write(folder.path().join("check.c"), SOURCE).map_err(failed)?;
        let mut linker = linker.to_vec();
        if let Some(program) = linker.first_mut() {
            *program = from_elsewhere(program);
        }
        let compiler = from_elsewhere(&word_of(compiler.into()));
        let trial = Self { folder, compiler, linker, spawner, cancel };
        trial.compile("compiling to ThinLTO bitcode", &["-flto=thin", "check.c", "-o", MODULE])?;
        trial.link("the thin link", &[thin_link, MODULE])?;
        Ok(trial)
    }

    /// Where its files are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The backend's options.
    pub fn backend() -> Vec<String> {
        let index = format!("-fthinlto-index={SHARD}");
        let own = ["-x", "ir", MODULE, &index, "-o", OBJECT];
        COMMON.iter().chain(&own).map(|&word| word.to_owned()).collect()
    }

    /// Does the rest of the link.
    pub fn finish(&self) -> Result<(), TrialFailure> {
        let options = Self::backend();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.step("the backend", std::slice::from_ref(&self.compiler), &options)?;
        self.link("the final link", &[OBJECT])
    }

    fn compile(&self, what: &'static str, words: &[&str]) -> Result<(), TrialFailure> {
        self.step(what, std::slice::from_ref(&self.compiler), &[&COMMON, words].concat())
    }

    fn link(&self, what: &'static str, words: &[&str]) -> Result<(), TrialFailure> {
        self.step(what, &self.linker, &[&["-shared", "-o", "check.so"], words].concat())
    }

    fn step(&self, what: &'static str, program: &[Word], words: &[&str]) -> Result<(), TrialFailure> {
        let runner =
            ToolRunner { spawner: self.spawner, cancel: self.cancel, directory: Some(self.folder.path()) };
        let words = words.iter().map(|word| word.as_bytes().to_vec());
        let command: Vec<Word> = program.iter().cloned().chain(words).collect();
        match runner.run(&command) {
            Ok(ended) if ended.status.success() => Ok(()),
            Ok(ended) => {
                Err(TrialFailure { what, said: format!("{}{}", lossy(&ended.stderr), ended.status) })
            }
            Err(error) => Err(TrialFailure { what, said: format!("{}: {error}", lossy(&program[0])) }),
        }
    }
}

/// The same program from another directory. One that is looked up in PATH keeps its name, by which its server is known.
fn from_elsewhere(program: &Word) -> Word {
    let found = || std::path::absolute(program_file(&path_of(program))?).ok();
    match program.contains(&b'/') {
        true => found().map_or_else(|| program.clone(), |file| word_of(file.into_os_string())),
        false => program.clone(),
    }
}
