//! Running commands the way a person would read them: shown first, from the root of the repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The cargo that runs this program, without what that one told it of its own package: build scripts ask for it, and would
/// have half of the crates compiled again.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command.current_dir(root());
    command
}

/// The first executable of this name in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Shows a command as one would type it, the program by its name alone.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = [program].into_iter().chain(command.get_args());
    let words: Vec<String> = words
        .map(|word: &OsStr| {
            let word = word.to_string_lossy().into_owned();
            shlex::try_quote(&word).map_or_else(|_| word.clone(), |quoted| quoted.into_owned())
        })
        .collect();
    words.join(" ")
}

/// Shows a command, runs it, and fails when it fails.
pub fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", shown(command));
    quietly(command)
}

/// Runs a command and fails when it fails.
pub fn quietly(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{status}: {}", shown(command));
    }
    Ok(())
}

/// Runs a command and gives what it prints; fails when it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{}: {}", output.status, shown(command));
    }
    String::from_utf8(output.stdout).context("output is not UTF-8")
}

/// The program that writes the manual pages, which is not installed.
pub const MANUAL: &str = "manual";

/// What is built for users.
pub const PARTS: [&str; 4] = ["--lib", "--bins", "--example", MANUAL];

/// Builds distlto as users get it, all of its programs, and gives its path: one build for demo, install and benches. That
/// takes minutes the first time, so cargo says what it compiles.
pub fn distlto() -> Result<PathBuf> {
    run(cargo().args(["build", "--release", "--locked"]).args(PARTS))?;
    Ok(target().join("release/distlto"))
}

/// Removes a file or a directory, if there is one.
pub fn remove(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
    .with_context(|| format!("cannot remove {}", path.display()))
}
