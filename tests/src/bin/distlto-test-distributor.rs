//! The simplest DTLTO distributor, an oracle: runs lld's jobs one after the other and keeps what they made.
//!
//! `distlto-test-distributor KEEP JOBFILE`: every native object is copied to `KEEP/<number>.o`, and `KEEP/<number>.id`
//! holds its module id. The job file's format is described in LLVM's DTLTO documentation.

use std::error::Error;
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
    let [keep, jobs] = arguments.as_slice() else {
        return Err("usage: distlto-test-distributor KEEP JOBFILE".into());
    };
    let file: Value = serde_json::from_slice(&fs::read(jobs)?)?;
    let common = words(&file["common"]["args"])?;
    fs::create_dir_all(keep)?;
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
    }
    Ok(())
}

fn words(list: &Value) -> Result<Vec<&str>, Box<dyn Error>> {
    let list = list.as_array().ok_or("expected a list of strings")?;
    list.iter().map(|word| word.as_str().ok_or_else(|| "expected a string".into())).collect()
}
