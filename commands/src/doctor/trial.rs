//! A link of some lines by one compiler and one linker: bitcode, thin link, backend, final link.
//!
//! They are the commands that a link in two steps has. Nothing of it outlives the trial.

use std::fs;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::Spawner;
use distlto_planner::link_command::LinkCommand;
use distlto_planner::runner::Runner;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, path_of, word_of};

use crate::tool::ToolRunner;

const SOURCE: &str = "int distlto_doctor(int x) { return x * x + 1; }\n";

/// The failure of a trial link.
pub struct TrialFailure {
    /// Which step.
    pub what: &'static str,
    /// The output of the program, or the system's error.
    pub said: String,
}

/// Links.
pub fn link(
    link: &LinkCommand,
    compiler: &str,
    spawner: &dyn Spawner,
    cancel: &Cancel,
) -> Result<(), TrialFailure> {
    let place = "making a directory for a trial";
    let failed = |error: std::io::Error| TrialFailure { what: place, said: error.to_string() };
    let folder = tempfile::tempdir().map_err(failed)?;
    fs::write(folder.path().join("check.c"), SOURCE).map_err(failed)?;
    let runner = ToolRunner { spawner, cancel, directory: Some(folder.path()) };
    let step = |what, program: &[Word], words: &[&str]| {
        let words = words.iter().map(|word| word.as_bytes().to_vec());
        let command: Vec<Word> = program.iter().cloned().chain(words).collect();
        match runner.run(&command) {
            Ok(ended) if ended.status.success() => Ok(()),
            Ok(ended) => {
                Err(TrialFailure { what, said: format!("{}{}", lossy(&ended.stderr), ended.status) })
            }
            Err(error) => Err(TrialFailure { what, said: error.to_string() }),
        }
    };
    let compiler = [here(word_of(compiler.into()))];
    let mut linker = link.linker.clone();
    linker[0] = here(linker[0].clone());
    let common = ["-O2", "-fPIC", "-c"];
    let bitcode = [&common[..], &["-flto=thin", "check.c", "-o", "check.o"]].concat();
    step("compiling to ThinLTO bitcode", &compiler, &bitcode)?;
    let thin = ["-shared", "--plugin-opt=thinlto-index-only", "check.o", "-o", "check.so"];
    step("the thin link", &linker, &thin)?;
    let shard = "-fthinlto-index=check.o.thinlto.bc";
    let backend = [&common[..], &["-x", "ir", "check.o", shard, "-o", "native.o"]].concat();
    step("the backend", &compiler, &backend)?;
    step("the final link", &linker, &["-shared", "native.o", "-o", "check.so"])
}

/// The same program from another directory. One that is looked up in PATH keeps its name, by which its server is known.
fn here(program: Word) -> Word {
    let path = path_of(&program);
    match program.contains(&b'/') {
        true => program_file(&path)
            .and_then(|file| std::path::absolute(file).ok())
            .map_or(program, |file| word_of(file.into_os_string())),
        false => program,
    }
}
