//! Runs one command in a directory that holds its declared inputs and nothing else, without environment variables but
//! PATH if that is given, and keeps its declared outputs.
//!
//! So a rule that forgets to name an input, or needs PATH, fails here, as it would on a remote worker.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::run::succeed;

/// Runs `words` with `inputs` of `store`, and puts `outputs` there. All paths are relative to `store`.
pub fn run(
    store: &Path,
    words: &[String],
    inputs: &[String],
    outputs: &[String],
    path: Option<&OsStr>,
) -> Result<()> {
    let sandbox = sandbox_dir(store);
    if sandbox.exists() {
        fs::remove_dir_all(&sandbox)?;
    }
    fs::create_dir_all(&sandbox)?;
    for input in inputs {
        copy(&store.join(input), &sandbox.join(input))?;
    }
    for output in outputs {
        fs::create_dir_all(sandbox.join(output).parent().context("an output has a directory")?)?;
    }
    let (program, arguments) = words.split_first().context("an empty command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&sandbox).env_clear().envs(path.map(|path| ("PATH", path)));
    succeed(&mut command)?;
    for output in outputs {
        let made = sandbox.join(output);
        ensure!(made.exists(), "the command did not make {output}");
        no_links(&made)?;
        replace(&store.join(output), |place| copy(&made, place))?;
    }
    fs::remove_dir_all(&sandbox).context("cannot remove the sandbox")
}

/// Refuses symbolic links among outputs: those of a worker lead nowhere else.
fn no_links(made: &Path) -> Result<()> {
    ensure!(!made.is_symlink(), "{} is a symbolic link", made.display());
    if made.is_dir() {
        for entry in fs::read_dir(made)? {
            no_links(&entry?.path())?;
        }
    }
    Ok(())
}

fn sandbox_dir(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push("-sandbox");
    store.with_file_name(name)
}

/// Fills a place anew.
pub fn replace(place: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if place.is_dir() {
        fs::remove_dir_all(place)?;
    } else if place.exists() {
        fs::remove_file(place)?;
    }
    fs::create_dir_all(place.parent().context("a place has a directory")?)?;
    fill(place)
}

/// Copies a file or a directory, the files that links lead to in the links' place.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a file has a directory")?)?;
    fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {}", from.display()))
}

/// A number that stands for the contents of a file or a directory.
pub fn digest(path: &Path) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    add(path, &mut hasher).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hasher.finish())
}

fn add(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    if path.is_dir() {
        let mut names =
            fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            name.hash(hasher);
            add(&path.join(&name), hasher)?;
        }
    } else {
        fs::read(path)?.hash(hasher);
    }
    Ok(())
}
