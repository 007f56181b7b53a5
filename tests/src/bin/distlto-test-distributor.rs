//! The simplest DTLTO distributor, an oracle: runs lld's jobs one after the other and keeps what they made.
//!
//! `distlto-test-distributor KEEP [--then PROGRAM [OPTION...]] JOBFILE`: every native object is copied to
//! `KEEP/<number>.o`, and `KEEP/<number>.id` holds its module id. With `--then` the objects are removed and the program
//! is run as lld would run it; each of its objects has to be the same. The job file's format is described in LLVM's
//! DTLTO documentation.

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

fn main() -> ExitCode {
    match distribute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("distlto-test-distributor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn distribute() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [keep, then @ .., jobs] = arguments.as_slice() else {
        return Err("usage: distlto-test-distributor KEEP [--then PROGRAM [OPTION...]] JOBFILE".into());
    };
    let file: Value = serde_json::from_slice(&fs::read(jobs)?)?;
    let common = words(&file["common"]["args"])?;
    fs::create_dir_all(keep)?;
    let mut outputs = Vec::new();
    for (number, job) in file["jobs"].as_array().ok_or("no jobs")?.iter().enumerate() {
        let command: Vec<&str> = common.iter().copied().chain(words(&job["args"])?).collect();
        let status = Command::new(command[0]).args(&command[1..]).status()?;
        if !status.success() {
            return Err(format!("{status} from {command:?}").into());
        }
        let output = words(&job["outputs"])?[0];
        let kept = Path::new(keep).join(format!("{number}.o"));
        fs::copy(output, &kept)?;
        fs::write(kept.with_extension("id"), words(&job["inputs"])?[0])?;
        outputs.push((output, kept));
    }
    if then.is_empty() { Ok(()) } else { compare(then, jobs, &outputs) }
}

fn compare(
    then: &[OsString],
    jobs: &OsString,
    outputs: &[(&str, std::path::PathBuf)],
) -> Result<(), Box<dyn Error>> {
    let [word, program, options @ ..] = then else { return Err("expected --then PROGRAM".into()) };
    if word != "--then" {
        return Err("expected --then PROGRAM".into());
    }
    outputs.iter().try_for_each(|(output, _)| fs::remove_file(output))?;
    let status = Command::new(program).args(options).arg(jobs).status()?;
    if !status.success() {
        return Err(format!("{status} from {program:?}").into());
    }
    for (output, kept) in outputs {
        if fs::read(output).ok() != Some(fs::read(kept)?) {
            return Err(format!("{output} differs from {}, of a serial run", kept.display()).into());
        }
    }
    Ok(())
}

fn words(list: &Value) -> Result<Vec<&str>, Box<dyn Error>> {
    let list = list.as_array().ok_or("expected a list of strings")?;
    list.iter().map(|word| word.as_str().ok_or_else(|| "expected a string".into())).collect()
}
