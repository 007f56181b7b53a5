//! The `distlto` under test: built once per test process with the profile of the tests, unless
//! `DISTLTO_TEST_BIN` names one that is built. Knows its command line and where it keeps its state, nothing more.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::store;
use crate::toolchain::{profile_dir, repository};

/// The program under test.
pub fn binary() -> Result<&'static Path> {
    static BINARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BINARY.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    match built {
        Ok(path) => Ok(path),
        Err(error) => bail!("{error}"),
    }
}

/// Where the program under test lies, beside the other tools and libraries of distlto.
pub fn directory() -> Result<&'static Path> {
    binary()?.parent().context("a program lies in a directory")
}

fn build() -> Result<PathBuf> {
    if let Some(path) = env::var_os("DISTLTO_TEST_BIN") {
        return Ok(path.into());
    }
    Ok(cargo_build(&["--lib", "--bins", "--examples"])?.join("distlto"))
}

/// The cargo that runs this test, without what that one told it of its own package: build scripts ask for it, and would have
/// half of the crates compiled again, and once more by the next cargo.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let told = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command.current_dir(repository());
    command
}

/// `cargo xtask`, to be followed by a command of it; the very program, where `cargo xtask test` is what runs the tests.
pub fn xtask() -> Command {
    if let Some(program) = env::var_os("DISTLTO_TEST_XTASK") {
        let mut command = Command::new(program);
        command.current_dir(repository());
        return command;
    }
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--"]);
    command
}

/// Builds a part of distlto with the profile of the tests; gives the directory that holds it.
pub fn cargo_build(parts: &[&str]) -> Result<PathBuf> {
    let dir = profile_dir()?;
    let mut command = cargo();
    command.args(["build", "--quiet"]).args(parts);
    if dir.file_name() == Some(OsStr::new("release")) {
        command.arg("--release");
    }
    let status = command.status().context("cannot start cargo to build distlto")?;
    if !status.success() {
        bail!("distlto does not build");
    }
    Ok(dir)
}

/// The distributor under test.
pub fn distributor() -> Result<&'static Path> {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let directory = directory()?;
    Ok(PATH.get_or_init(|| directory.join("distlto-distribute")))
}

/// `distlto link -- `, to be followed by a linker command.
pub fn link() -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(["link", "--"]);
    Ok(command)
}

/// `distlto index --index DIRECTORY -- `, to be followed by a linker command.
pub fn index(directory: &Path) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(["index", "--index"]).arg(directory).arg("--");
    Ok(command)
}

/// `PATH` with the program and its stand-ins before all else, for graphs, which name them.
pub fn search_path() -> Result<OsString> {
    let inherited = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths([directory()?.to_owned()].into_iter().chain(env::split_paths(&inherited)))?)
}

/// Where the index of a link of `output` lies.
pub fn index_dir(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".distlto");
    name.into()
}

/// Where the record of a link of `output` lies, which is in the folder of a test.
pub fn state_dir(output: &Path) -> Result<PathBuf> {
    Ok(store::record_in(&store::of(output)?, output))
}

/// Removes all that is kept of links in the folder of a test.
pub fn forget(output: &Path) -> Result<()> {
    let store = store::of(output)?;
    fs::remove_dir_all(&store).with_context(|| format!("cannot remove {}", store.display()))
}

/// The native objects of the last link of `output`, by name.
pub fn objects(output: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    store::objects_in(&store::of(output)?, &state_dir(output)?)
}
